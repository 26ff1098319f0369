"""Tri-HE: the share of an answer's claims that the image's scene graph does not support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from msgspec import Struct

from ..framework.arrays import FloatArray, np
from ..framework.asking import AskingProtocol, AskingStep, OwnAsking
from ..framework.claims import (
    ClaimParts,
    ClaimsMetric,
    ClaimVerdict,
    InvalidEntry,
    Triplet,
    Verdict,
    invalid_note,
    invalid_to_json,
)
from ..framework.columns_and_scores import Column, JudgedColumn, ScoreDefinition, share
from ..framework.metric import (
    PUBLISHED,
    OptionDefinition,
    Paper,
    SoftMetric,
    VariantDefinition,
    soft_option,
)
from ..framework.papers import paper
from ..framework.results import Item, ItemRecords, JsonValue, Picture, ScoredItem, UnscoredReason


class TriHeItem(Item, frozen=True, kw_only=True):
    """An answer to a question about an image, and the image's scene graph."""

    question: str = ""
    """What the model was asked about the image; empty where the archive does not say."""
    response: str | None = None
    """What the model wrote; None if only its claims are known."""
    claims: tuple[ClaimParts, ...] | None = None
    """Claims of the response; None if they are to be extracted."""
    reference_triplets: tuple[Triplet, ...] | None = None
    """The image's scene graph; None without a reference."""
    reference_objects: tuple[str, ...] = ()
    """Objects of the image that the triplets do not name."""
    human_scores: tuple[float, ...] = ()
    """Human scores of the response, one for each annotator, to compute agreement."""
    pictures: tuple[Picture, ...] = ()
    """The image itself, for a judge that sees; empty for others."""

    def records(self) -> ItemRecords:
        """Return the question; triplets and objects of the scene graph, each once; the image."""
        triplets = self.reference_triplets
        graph = None if triplets is None else sorted({tuple(each) for each in triplets})
        shown = [picture.sha256 for picture in self.pictures]
        known = graph, sorted(set(self.reference_objects))
        return ItemRecords(self.question, (*known, shown) if shown else known)


def checked_against_all(claim: ClaimVerdict) -> bool:
    """Return whether a judge compared a claim with the whole scene graph."""
    return claim.verdict is not Verdict.UNSCORED and not claim.references


class TriHeEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a response's Tri-HE scores."""

    claims: tuple[ClaimVerdict, ...]
    """Every claim with its verdict, in the order of the response."""
    extractor: str = ""
    """The extractor that found the claims; empty if they were given."""
    judging: tuple[dict[str, JsonValue], ...] = ()
    """The judges that were called, in order: verdicts, fallbacks, tokens, latency and cost."""
    scene_graph: tuple[Triplet, ...] = ()
    """The image's scene graph, if a claim was checked against all of it; such a claim has no
    references of its own."""
    human_scores: tuple[float, ...] = ()
    """Human scores of the response, one for each annotator."""
    invalid: tuple[InvalidEntry, ...] = ()
    """Triplets of a language model's reply that were rejected."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the claims with their extractor and judges, if these are known."""
        line: dict[str, JsonValue] = {"claims": [claim.to_json() for claim in self.claims]}
        if self.extractor:
            line["extractor"] = self.extractor
        if self.judging:
            line["judging"] = list(self.judging)
        if self.scene_graph:
            line["scene_graph"] = [list(triplet) for triplet in self.scene_graph]
        if self.human_scores:
            line["human_scores"] = list(self.human_scores)
        return line | invalid_to_json(self.invalid)


_PARTS = ("", "object_", "relation_")
_PART_MEANINGS = {
    "": "claims that the scene graph does not support",
    "object_": "claims with a wrong object",
    "relation_": "claims with a wrong relation between present objects",
}


def _question_score(part: str) -> ScoreDefinition:
    return share(
        f"{part}hallu_q",
        f"{_PART_MEANINGS[part]} / claims, mean over questions",
        f"{part}rate",
        "questions",
        direction="lower",
        count="",
    )


def _image_score(part: str) -> ScoreDefinition:
    return share(
        f"{part}hallu_i",
        f"{_PART_MEANINGS[part]} / claims, mean over images",
        f"{part}image_rate",
        "images",
        direction="lower",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TriHeMetric(ClaimsMetric):
    """Tri-HE (Wu et al., Unified Triplet-Level Hallucination Evaluation, arXiv 2410.23114).

    Scores over the claims of answers to questions about images:

    * ``hallu_q`` = mean over questions of (hallucinated claims / claims), formula 1, section 3.2
    * ``hallu_i`` = mean over images of the mean over the image's questions, formula 2
    * ``object_…`` and ``relation_…`` = the same, but the numerator counts only claims with a wrong
      object, or with a wrong relation between two present objects. By section 3.1, a claim with a
      wrong object counts as object hallucination, whatever its relation is.

    A claim is hallucinated if its verdict is ``not_supported``. Questions of one image share
    their ``group_id``, which is also the cluster of intervals.

    ``published`` follows the released script, including its known bugs:

    * a claim without a verdict (``null``) stays in the denominator, which lowers the rate;
    * a hallucinated claim without a wrong object has a wrong relation, even without a named part;
    * answers without claims are silently dropped, and images without other answers with them. Here
      they are unscored: the scores are the same, and the coverage shows them;
    * an answer whose verdicts are all ``null`` has the rate 0 if they come from an archive. With a
      judge of this run it is unscored, because a failed judge must not produce a score.

    ``corrected`` leaves claims without a verdict out of the denominator. Claims without a named
    part count in ``hallu_q`` and ``hallu_i`` only.

    ``definition`` is ``corrected`` without prediction errors: claims whose parts are all in the
    scene graph, "yet pairs in a wrong way". Section 3.1 separates them from hallucinations, "to
    obtain unbiased hallucination evaluation results"; the judges of section 3.3, and so the printed
    rates, do not. They stay in the denominator, as claims of the answer.

    With ``soft``, a claim adds 1 - P(supported) to the hallucinated claims instead of 0 or 1, where
    P(supported) is the probability that its judge states. A claim without one adds 0 or 1 by its
    verdict. The scores of objects and relations count verdicts, as probabilities of wrong parts are
    not known.

    Bounds assume that each unscored answer has an image of its own.

    Attributes:
        variant: ``published``, ``corrected`` or ``definition``.
        judge: Name of the judge, for the signature.
        extractor: Name of the extractor, for the signature; ``given`` if claims were given.
        tentative: ``keep`` or ``omit`` hedged and conditional claims, for the signature.
        panel: Who votes, and how votes are combined, for the signature; empty without a panel.
        soft: ``yes`` counts probabilities instead of verdicts.
    """

    name: ClassVar[Literal["tri-he"]] = "tri-he"
    response_noun: ClassVar[str] = "answer"
    summary: ClassVar[str] = "Claims of answers that an image's scene graph does not support."
    papers: ClassVar[tuple[Paper, ...]] = (paper("tri-he"),)
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        PUBLISHED,
        VariantDefinition(
            name="corrected",
            meaning="Leaves claims without a verdict, and without a named part, out of the rates.",
        ),
        VariantDefinition(
            name="definition",
            meaning="As corrected; prediction errors (section 3.1) are not hallucinations.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        soft_option(
            "1 - P(supported)",
            "Needs a small judge, or a language model with log-probabilities. Claims without a "
            "probability count by their verdict.",
        ),
    )
    soft_scores: ClassVar[str] = (
        "in hallu_q and hallu_i a claim counts 1 - P(supported) instead of 0 or 1"
    )
    unit: ClassVar[Literal["questions"]] = "questions"
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="claims", meaning="claims in the denominator"),
        Column(name="hallucinated", meaning="claims that are not supported", integral=False),
        Column(name="hallucinated_objects", meaning="claims with a wrong object"),
        Column(name="hallucinated_relations", meaning="claims with a wrong relation"),
        Column(name="unscored_claims", meaning="claims without a verdict"),
        Column(name="without_probability", meaning="soft: claims that count by their verdict"),
        *(
            Column(name=f"{part}rate", meaning=f"{_PART_MEANINGS[part]} / claims", integral=False)
            for part in _PARTS
        ),
        Column(name="rejected_claims", meaning="invalid extracted claims that were left out"),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = tuple(
        make(part) for part in _PARTS for make in (_question_score, _image_score)
    )
    ranked_by: ClassVar[tuple[str, ...]] = ("hallu_i", "hallu_q")
    ranking_source: ClassVar[str] = (
        "Table 2 lists the models by hallu_i, with a language model as the judge."
    )
    judged: ClassVar[tuple[JudgedColumn, ...]] = (
        JudgedColumn(column="rate", of="claim", scores=("hallu_q", "hallu_i"), divided_by="claims"),
    )

    @classmethod
    def loads_models(cls, options: Mapping[str, str]) -> bool:  # noqa: ARG003 - whatever they are
        """Return True: the matcher, or a judge that is a model."""
        return True

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return the number of claims with a verdict."""
        # Only the denominator of ``published`` includes claims without a verdict.
        unscored = totals["unscored_claims"] if self.variant == "published" else 0
        return int(totals["claims"] - unscored)

    def unscored_reason(
        self, verdicts: Sequence[ClaimVerdict]
    ) -> tuple[UnscoredReason, str] | None:
        """Return why an answer with these verdicts has no score, as reason and detail, or None.

        Args:
            verdicts: The verdicts of the answer's claims.
        """
        # A null of an archive was the authors' judge, which the script counts as not hallucinated.
        if (
            verdicts
            and self.variant == "published"
            and all(
                claim.reason == UnscoredReason.VERDICT_NULL
                for claim in verdicts
                if claim.verdict is Verdict.UNSCORED
            )
        ):
            return None
        return ClaimsMetric.unscored_reason(self, verdicts)

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return how many claims were invalid, without a verdict, or without a probability."""
        return (
            *invalid_note("claims", totals["rejected_claims"]),
            *self._open_claims_note(int(totals["unscored_claims"])),
            *SoftMetric.notes_on(self, totals),
        )

    def _open_claims_note(self, count: int) -> tuple[str, ...]:
        """Return how claims of scored answers without a verdict count; nothing without any."""
        if not count:
            return ()
        counted = "such claims are left out of the rates"
        if self.variant == "published":
            counted = (
                "such claims count as not hallucinated, as in the released script; the variant "
                "corrected leaves them out"
            )
        claims = "claim of a scored answer has" if count == 1 else "claims of scored answers have"
        return (f"{count:,} {claims} no verdict; {counted}.",)

    def score_answer(
        self, verdicts: Sequence[ClaimVerdict], *, rejected: int = 0
    ) -> ScoredItem[None]:
        """Return the statistics of one answer that has a score.

        Args:
            verdicts: The verdicts of its claims.
            rejected: How many extracted claims were invalid, and are in no score.

        Raises:
            ValueError: The answer has no score; see :meth:`unscored_reason`.
        """
        self._check_score(verdicts)
        claims, wrong, objects, relations, *others = self._counts(verdicts)
        numerators = (wrong, objects, relations)
        rates = tuple(number / claims for number in numerators)
        return ScoredItem(
            statistics=(claims, *numerators, *others, *rates, rejected),
            scores={f"{part}hallu_q": rate for part, rate in zip(_PARTS, rates, strict=True)},
            evidence=None,
        )

    def _counts(self, verdicts: Sequence[ClaimVerdict]) -> tuple[float, ...]:
        """Return an answer's first columns."""
        wrong = [claim for claim in verdicts if self.is_hallucinated(claim)]
        known = [claim for claim in verdicts if claim.verdict is not Verdict.UNSCORED]
        objects = sum(claim.part is not None and claim.part.is_object for claim in wrong)
        # Judges that name no wrong part: the claim is wrong, but neither kind is known.
        nameless = sum(claim.part is None for claim in wrong)
        published = self.variant == "published"
        hallucinated, without = self._counted(known, len(wrong))
        return (
            len(verdicts if published else known),
            hallucinated,
            objects,
            # The released script counts every other wrong claim as a wrong relation.
            len(wrong) - objects - (0 if published else nameless),
            len(verdicts) - len(known),
            without,
        )

    def is_hallucinated(self, claim: ClaimVerdict) -> bool:
        """Return whether a claim counts as hallucinated."""
        if claim.prediction_error and self.variant == "definition":
            return False
        return ClaimsMetric.is_hallucinated(self, claim)

    def soft_weight(self, claim: ClaimVerdict) -> float:
        """Return what a claim with a verdict adds: 1 - P(supported), or 0 or 1 by its verdict."""
        if claim.prediction_error and self.variant == "definition":
            return 0.0
        return ClaimsMetric.soft_weight(self, claim)

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return each image's own mean rates, and a column of ones that counts images."""
        questions = clusters["questions"]
        # An image's mean is a mean of its questions' rates, so that each image weighs the same.
        means = {
            f"{part}image_rate": np.divide(
                clusters[f"{part}rate"],
                questions,
                out=np.zeros_like(questions),
                where=questions != 0,
            )
            for part in _PARTS
        }
        return {**clusters, **means, "images": (questions != 0).astype(np.float64)}

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every claim without a verdict supported, or not supported.

        At worst, such a claim has a wrong part of the kind that a score counts. The denominator of
        ``published`` includes these claims already; that of ``corrected`` does not.
        """
        unscored = items["unscored_claims"]
        claims = items["claims"] if self.variant == "published" else items["claims"] + unscored
        wrong = 0.0 if best else unscored
        counts = {
            name: items[name] + wrong
            for name in ("hallucinated", "hallucinated_objects", "hallucinated_relations")
        }
        rates = {
            f"{part}rate": number / claims
            for part, number in zip(_PARTS, counts.values(), strict=True)
        }
        return {**items, **counts, **rates, "claims": claims}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return only supported claims at best, and none at worst.

        The number of claims is the largest of a scored answer; the rates do not depend on it. At
        worst, every claim has a wrong part of the kind that a score counts.
        """
        claims = float(observed["claims"].max(initial=1.0))
        wrong, rate = (0.0, 0.0) if best else (claims, 1.0)
        return {
            "claims": claims,
            "hallucinated": wrong,
            "hallucinated_objects": wrong,
            "hallucinated_relations": wrong,
            **{f"{part}rate": rate for part in _PARTS},
        }


_GENERAL = (
    "Describe this image. Say all that helps to answer this question, without answering it yet: "
    "{{question}}"
)
_TRIPLETS = (
    "List what this image shows that helps to answer this question, without answering it yet: "
    "{{question}}\nWrite one fact a line, as (object, relation, object)."
)
_BLIND = (
    "This is a description of an image:\n{{description}}\n\nAnswer this question about the image "
    "from the description alone: {{question}}"
)
_SEEING = (
    "This is a description of the image:\n{{description}}\n\nAnswer this question about the "
    "image: {{question}}"
)


# Name, meaning, the first prompt, the second one, and whether the image is shown again.
_IN_TWO_STEPS = (
    (
        "general-description",
        "A description, then the answer from it without the image (Eyes-Close).",
        *(_GENERAL, _BLIND, False),
    ),
    (
        "triplet-description",
        "Triplets, then the answer from them without the image (Triplet + Eyes-Close).",
        *(_TRIPLETS, _BLIND, False),
    ),
    (
        "triplet-with-image",
        "Triplets, then the answer from them and the image (Triplet).",
        *(_TRIPLETS, _SEEING, True),
    ),
)


ASKING = {
    "tri-he": OwnAsking(
        protocols=(
            AskingProtocol(steps=(AskingStep(prompt="{{question}}"),)),
            *(
                AskingProtocol(
                    name=name,
                    meaning=meaning,
                    steps=(
                        AskingStep(name="description", prompt=described),
                        AskingStep(prompt=answered, shows=shows),
                    ),
                )
                for name, meaning, described, answered, shows in _IN_TWO_STEPS
            ),
        ),
        id=("image_id", "id", "image"),
        response="response",
        inside="instance",
        kept=(),
        max_tokens=1024,
    )
}
"""How questions are asked: as they are, and with the mitigations of section 5.4, whose names are
those of Tables 5 and 6."""
