"""Extraction of claims and keywords from responses, by rules or a language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimParts, InvalidEntry, Modality, Triplet
from hallujudge.metrics.framework.metric import OptionDefinition

from ..errors import InvalidInputError, UnavailableError
from ..extractors import (
    SYNONYMS,
    DescriptionPair,
    ExtractedTriplet,
    PairKeywords,
    TripletExtractor,
)
from ..extractors.library_extractors import shared_extractor
from ..extractors.llm_extractor_base import Extraction
from ..extractors.llm_extractors import LlmKeywordExtractor, LlmTripletExtractor, SentenceExtractor
from ..extractors.rules.rule_extractors import (
    RuleCounts,
    RuleKeywordExtractor,
    RuleTripletExtractor,
)
from ..llm.estimate import Estimate, PlannedCall, TokenCounter, estimate_calls
from ..llm.prompt_templates import PROMPT_PRESET, marks_of, preset_in
from ..threads import RULES_EFFORT, map_cpu, of_each
from .found_claims import FoundClaim
from .resources import Offers, Resources
from .spec import ScoreSpec

_ExtractorT = TypeVar("_ExtractorT")
EXTRACTORS = ("rules", "spacy", "llm", "sentences", "given")
"""The names of extractors; with ``given``, answers come with claims."""
GIVEN = "given"
"""The extractor name for items that come with keywords: nothing is extracted."""
DEFAULT_PIPELINE = "en_core_web_sm"
"""The spaCy pipeline that is used if none is named."""
EXTRACT_PROMPT = "prompt"
"""The option that holds a user's own prompt of the extractor ``llm``."""
TENTATIVE = ("keep", "omit")
"""Whether hedged and conditional claims are kept."""
_MARKING = ("rules", "spacy")
"""The extractors that mark tentative claims."""
_TENTATIVE_MODALITIES = (Modality.HEDGED, Modality.CONDITIONAL)
_NO_EXTRACTOR = "the answer comes without claims, and the extractor is 'given'"


class ExtractedClaims(Struct, frozen=True, kw_only=True):
    """The claims of an answer with their places, or the reason why extraction failed."""

    claims: tuple[ClaimParts, ...] = ()
    """The claims, in the order of the answer."""
    spans: tuple[tuple[int, int] | None, ...] = ()
    """The place of each claim; None if it is unknown."""
    modalities: tuple[Modality | None, ...] = ()
    """How the answer puts each claim; empty if unknown."""
    omitted: int = 0
    """How many tentative claims were left out."""
    invalid: tuple[InvalidEntry, ...] = ()
    """Claims of a language model's reply that were rejected."""
    reason: str = ""
    """Why extraction failed; empty if it succeeded."""
    detail: str = ""
    """A sentence about the reason."""

    def placed(self) -> Iterator[tuple[ClaimParts, tuple[int, int] | None, Modality | None]]:
        """Yield each claim with its place and modality."""
        unknown = (None,) * len(self.claims)
        yield from zip(self.claims, self.spans, self.modalities or unknown, strict=True)


class ClaimExtractor:
    """Extracts claims with places from answers; failures are values, not errors.

    Args:
        options: The spec's options.
        resources: Provides the language model.
        counts: Whether rules also claim how many of a thing a response says there are.

    Raises:
        InvalidInputError: The options contradict each other, a prompt can't be used, or a pipeline
            has no suitable parser.
        MissingExtraError: spaCy or the pipeline is not installed.
        NotFoundError: A caller of a server names a pipeline that is not offered.
    """

    def __init__(
        self, options: Mapping[str, str], resources: Resources, *, counts: bool = False
    ) -> None:
        name = options.get("extractor", EXTRACTORS[0])
        tentative = options.get("tentative_claims", TENTATIVE[0])
        if tentative != TENTATIVE[0] and name not in _MARKING:
            raise InvalidInputError(
                f"the option tentative_claims is {tentative!r}, but the extractor {name!r} does "
                f"not mark tentative claims; use the extractor {' or '.join(_MARKING)}"
            )
        self._name = name
        self._omits = tentative != TENTATIVE[0]
        self._counts = RuleCounts() if counts and name in _MARKING else None
        self._llm = llm_extractor(LlmTripletExtractor, name, options, resources)
        self._triplets: TripletExtractor = RuleTripletExtractor()
        if name == "spacy":
            self._triplets = _parsing(options, resources.offers)
        self._sentences = SentenceExtractor()

    @property
    def label(self) -> str:
        """The extractor's label, for signatures."""
        if self._llm is not None:
            return self._llm.label
        labels = {"sentences": self._sentences.label, "given": "given"}
        label = labels.get(self._name, self._triplets.label)
        return label if self._counts is None else f"{label}+{self._counts.label}"

    @property
    def reads_texts(self) -> bool:
        """Whether it extracts claims from responses; ``given`` does not."""
        return self._name != "given"

    async def planned(self, text: str) -> PlannedCall | None:
        """Return the call that a text needs, or None if it needs no call."""
        return None if self._llm is None else await self._llm.planned(text)

    async def estimates(
        self, calls: Iterable[PlannedCall], counter: TokenCounter | None
    ) -> list[Estimate]:
        """Return the cost of calls; empty if the extractor is not a language model."""
        if self._llm is None:
            return []
        return [await estimate_calls("llm extractor", self._llm.client, calls, counter)]

    async def extract(
        self, texts: Sequence[str], questions: Sequence[str] = ()
    ) -> list[ExtractedClaims]:
        """Return the claims of each text, in order.

        Args:
            texts: The texts.
            questions: The question that each text answers; empty if there are none.
        """
        if not texts:
            return []
        if self._name == "given":
            return [ExtractedClaims(reason="CLAIMS_MISSING", detail=_NO_EXTRACTOR)] * len(texts)
        if self._llm is not None:
            return [
                ExtractedClaims(reason=result.reason, detail=result.detail)
                if result.found is None
                # Replies of a language model mark no claim as tentative.
                else _of_triplets(result.found, omits=False, invalid=result.invalid)
                for result in await self._llm.try_many(texts)
            ]
        if self._name == "sentences":
            return [
                ExtractedClaims(
                    claims=tuple(sentence for sentence, _ in found),
                    spans=tuple((span.start, span.end) for _, span in found),
                )
                for found in await self._sentences.extract_many(texts)
            ]
        found = await self._triplets.extract_many(texts, questions)
        if self._counts is not None:
            counts = await self._counts.extract_many(texts)
            found = [with_counts(*pair) for pair in zip(found, counts, strict=True)]
        return [_of_triplets(each, omits=self._omits) for each in found]


def with_counts(
    found: Sequence[ExtractedTriplet], counts: Sequence[ExtractedTriplet]
) -> list[ExtractedTriplet]:
    """Return the claims of a text with its counts, in the text's order.

    A count is put as the claim around it is: "there may be two dogs" is a guess.
    """
    more = [
        replace(
            count,
            modality=next((c.modality for c in found if c.start < count.end <= c.end), None),
        )
        for count in counts
    ]
    return sorted((*found, *more), key=lambda claim: claim.start)


def _of_triplets(
    found: Sequence[ExtractedTriplet], *, omits: bool, invalid: tuple[InvalidEntry, ...] = ()
) -> ExtractedClaims:
    kept = [claim for claim in found if not (omits and claim.modality in _TENTATIVE_MODALITIES)]
    return ExtractedClaims(
        claims=tuple(Triplet(*claim.parts) for claim in kept),
        # A claim in other words than the answer's has no place in it, and ends at 0.
        spans=tuple((claim.start, claim.end) if claim.end else None for claim in kept),
        modalities=tuple(claim.modality for claim in kept),
        omitted=len(found) - len(kept),
        invalid=invalid,
    )


def extract_prompt_option(slots: Sequence[str]) -> OptionDefinition:
    """Return the option that holds a user's own prompt of the extractor ``llm``."""
    return OptionDefinition(
        name=EXTRACT_PROMPT,
        meaning="Own prompt of the extractor llm.",
        details=f"The text has the marks {marks_of(slots)}.",
        file=True,
    )


CLAIM_OPTIONS = (
    OptionDefinition(
        name="extractor",
        choices=EXTRACTORS,
        meaning="Claim extractor.",
        details="rules, spacy, llm: triplets; sentences: whole sentences; given: in the file.",
    ),
    OptionDefinition(
        name="tentative_claims",
        choices=TENTATIVE,
        meaning="Hedged and conditional claims.",
        details="keep scores them, omit leaves them out; rules and spacy mark them.",
    ),
    extract_prompt_option(("response",)),
    OptionDefinition(
        name="spacy_pipeline",
        default=DEFAULT_PIPELINE,
        meaning="Installed spaCy pipeline of the extractor spacy.",
    ),
)
"""Options of metrics that extract claims from responses."""


def llm_extractor(
    made_by: Callable[..., _ExtractorT],
    name: str,
    options: Mapping[str, str],
    resources: Resources,
    **own: str | int,
) -> _ExtractorT | None:
    """Return the extractor ``llm``, with the user's own prompt; None for another extractor.

    Args:
        made_by: Its class.
        name: The name of the extractor.
        options: The spec's options.
        resources: Provides the language model.
        own: What the class takes besides the prompt.

    Raises:
        InvalidInputError: A prompt comes with another extractor, or can't be used.
    """
    prompt = options.get(EXTRACT_PROMPT, "")
    if name == "llm":
        return resources.judges.extractor(made_by, prompt=prompt, **own)
    if prompt:
        raise InvalidInputError(
            f"the option {EXTRACT_PROMPT} is a prompt of the extractor llm, but the extractor is "
            f"{name!r}; use the extractor llm"
        )
    return None


def _parsing(options: Mapping[str, str], offers: Offers | None) -> TripletExtractor:
    pipeline = options.get("spacy_pipeline") or DEFAULT_PIPELINE
    if offers is not None:
        offers.check("spacy_pipeline", options.get("spacy_pipeline", ""), offers.pipelines)
    return shared_extractor(pipeline)


async def extract_claims(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources, *, counts: bool = False
) -> list[list[FoundClaim]]:
    """Return the claims of each text with their places; a sentence is a claim of one string.

    Args:
        spec: Names the extractor.
        texts: The texts.
        resources: Provides the language model.
        counts: Whether rules also claim numbers.

    Raises:
        UnavailableError: Extraction failed for a text.
    """
    extractor = ClaimExtractor(spec.options, resources, counts=counts)
    extracted = await extractor.extract(texts)
    for index, found in enumerate(extracted):
        if found.reason:
            raise no_claims(index, found.reason, found.detail)
    return [
        [
            FoundClaim(
                start=span[0] if span else 0,
                end=span[1] if span else 0,
                claim=claim if isinstance(claim, Triplet) else claim.text,
                modality=modality,
            )
            for claim, span, modality in found.placed()
        ]
        for found in extracted
    ]


def no_claims(index: int, reason: str, detail: str) -> UnavailableError:
    """Return the error for a text whose claims are not known; no claims would say it makes none."""
    return UnavailableError(
        f"no claims could be extracted from text {index}: {reason}: {detail}",
        reason="EXTRACTION_FAILED",
    )


class PairExtractor:
    """Extracts keywords with places from pairs of descriptions; failures are values, not errors.

    Args:
        options: The spec's options.
        resources: Provides the language model.

    Raises:
        InvalidInputError: Synonyms are transferred, or a prompt is given, but the extractor is not
            a language model.
    """

    def __init__(self, options: Mapping[str, str], resources: Resources) -> None:
        name = self.name = options.get("extractor", EXTRACTORS[0])
        synonyms, preset = options.get("synonyms", SYNONYMS[0]), preset_in(options)
        if synonyms != SYNONYMS[0] and name != "llm":
            raise InvalidInputError(
                f"the option synonyms is {synonyms!r}, but the extractor {name!r} keeps the words "
                "of each description; use the extractor llm"
            )
        if preset and (options.get(EXTRACT_PROMPT) or name != "llm"):
            raise InvalidInputError(
                f"the option {PROMPT_PRESET} is a prompt of the extractor llm; use the extractor "
                "llm, without a prompt of your own"
            )
        self._rules = RuleKeywordExtractor()
        self._llm = llm_extractor(
            LlmKeywordExtractor, name, options, resources, synonyms=synonyms, preset=preset
        )

    @property
    def label(self) -> str:
        """The extractor's label, for signatures."""
        if self.name == GIVEN:
            return GIVEN
        return self._llm.label if self._llm is not None else self._rules.label

    async def extract(self, pairs: Sequence[DescriptionPair]) -> list[Extraction[PairKeywords]]:
        """Return the keywords of both descriptions of each pair, in order.

        A language model reads a pair in one call; rules read each description separately.

        Raises:
            InvalidInputError: There are descriptions, but the extractor is ``given``.
        """
        if not pairs:
            return []
        if self.name == GIVEN:
            raise InvalidInputError(
                "extractor 'given' extracts nothing from texts; use 'rules' or 'llm'"
            )
        if self._llm is not None:
            return await self._llm.try_many(pairs)
        # Descriptions of several models have one reference, and each text is read once.
        texts = list(
            dict.fromkeys(text for pair in pairs for text in (pair.reference, pair.predicted))
        )
        keywords = await map_cpu(
            of_each(self._rules.extract), texts, chars=lambda text: RULES_EFFORT * len(text)
        )
        known = dict(zip(texts, keywords, strict=True))
        return [
            Extraction(
                found=PairKeywords(reference=known[pair.reference], predicted=known[pair.predicted])
            )
            for pair in pairs
        ]
