"""Extraction of claims from answers, by rules, a language model or sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hallujudge.metrics.framework.triplets import ClaimParts, Triplet

from ..errors import UnavailableError
from ..extractors.values import ExtractedTriplet, TripletExtractor
from ..llm.estimate import Estimate, PlannedCall, TokenCounter, estimate_calls
from .entry import FoundClaim
from .judge_factory import JudgeFactory
from .resources import Resources
from .spec import ScoreSpec

__all__ = ["EXTRACTORS", "ClaimExtractor", "ExtractedClaims", "extract"]

EXTRACTORS = ("rules", "llm", "sentences", "given")
"""The names of extractors; ``given``: answers come with claims, and nothing is extracted."""
_NO_EXTRACTOR = "the answer comes without claims, and the extractor is 'given'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedClaims:
    """The claims of an answer with their places, or the reason why extraction failed."""

    claims: tuple[ClaimParts, ...] = ()
    """The claims, in the order of the answer."""
    spans: tuple[tuple[int, int] | None, ...] = ()
    """The place of each claim; None if it is unknown."""
    reason: str = ""
    """Why extraction failed; empty: it succeeded."""
    detail: str = ""
    """A sentence about the reason."""


class ClaimExtractor:
    """Extracts claims with places from answers; failures are values, not errors.

    Args:
        name: One of :data:`EXTRACTORS`.
        factory: Provides the language model.
    """

    def __init__(self, name: str, factory: JudgeFactory) -> None:
        from ..extractors import RuleTripletExtractor
        from ..extractors.llm import SentenceExtractor

        self._name = name
        self._llm = factory.triplet_extractor() if name == "llm" else None
        self._rules: TripletExtractor = RuleTripletExtractor()
        self._sentences = SentenceExtractor()

    @property
    def label(self) -> str:
        """The extractor's label, for signatures."""
        if self._llm is not None:
            return self._llm.label
        labels = {"sentences": self._sentences.label, "given": "given"}
        return labels.get(self._name, self._rules.label)

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

    async def extract(self, texts: Sequence[str]) -> list[ExtractedClaims]:
        """Return the claims of each text, in order."""
        if not texts:
            return []
        if self._name == "given":
            return [ExtractedClaims(reason="CLAIMS_MISSING", detail=_NO_EXTRACTOR)] * len(texts)
        if self._llm is not None:
            return [
                ExtractedClaims(reason=result.reason, detail=result.detail)
                if result.found is None
                else _of_triplets(result.found)
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
        return [_of_triplets(found) for found in await self._rules.extract_many(texts)]


def _of_triplets(found: Sequence[ExtractedTriplet]) -> ExtractedClaims:
    return ExtractedClaims(
        claims=tuple(Triplet(*claim.parts) for claim in found),
        spans=tuple((claim.start, claim.end) if claim.end else None for claim in found),
    )


async def extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[FoundClaim]]:
    """Return the claims of each text with their places; a sentence is a claim of one string.

    Raises:
        UnavailableError: Extraction failed for a text.
    """
    extractor = ClaimExtractor(spec.options.get("extractor", EXTRACTORS[0]), resources.judges)
    extracted = await extractor.extract(texts)
    for index, found in enumerate(extracted):
        if found.reason:
            # An empty list would mean that the text makes no claims.
            raise UnavailableError(
                f"no claims could be extracted from text {index}: {found.reason}: {found.detail}",
                reason="EXTRACTION_FAILED",
            )
    return [
        [
            FoundClaim(
                start=span[0] if span else 0,
                end=span[1] if span else 0,
                claim=claim if isinstance(claim, Triplet) else claim.text,
            )
            for claim, span in zip(found.claims, found.spans, strict=True)
        ]
        for found in extracted
    ]
