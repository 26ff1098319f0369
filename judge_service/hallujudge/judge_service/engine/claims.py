"""Claims out of answers, whoever takes them."""

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
"""Who takes claims from answers; ``given``: nobody, they come with their claims."""
_NO_EXTRACTOR = "no claims came with the answer, and nobody is asked to take them from it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedClaims:
    """An answer's claims with their places, or why there are none."""

    claims: tuple[ClaimParts, ...] = ()
    """The claims, in the order of the answer."""
    spans: tuple[tuple[int, int] | None, ...] = ()
    """Where each stands; None where that isn't known."""
    reason: str = ""
    """Why the answer could not be read; empty: it could."""
    detail: str = ""
    """The reason in words."""


class ClaimExtractor:
    """Any extractor as this pipeline needs it: claims with places, failures as values.

    Args:
        name: One of :data:`EXTRACTORS`.
        factory: Makes the language model's.
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
        """The extractor's own label."""
        if self._llm is not None:
            return self._llm.label
        labels = {"sentences": self._sentences.label, "given": "given"}
        return labels.get(self._name, self._rules.label)

    @property
    def reads_texts(self) -> bool:
        """Whether it takes claims from texts at all, rather than from nobody."""
        return self._name != "given"

    async def planned(self, text: str) -> PlannedCall | None:
        """Return the call that a text needs; None if it needs none."""
        return None if self._llm is None else await self._llm.planned(text)

    async def estimates(
        self, calls: Iterable[PlannedCall], counter: TokenCounter | None
    ) -> list[Estimate]:
        """What calls would take; empty where no language model is asked."""
        if self._llm is None:
            return []
        return [await estimate_calls("llm extractor", self._llm.client, calls, counter)]

    async def extract(self, texts: Sequence[str]) -> list[ExtractedClaims]:
        """The claims of each text, in order."""
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
    """Claims of each text with their places; sentences are keywords of their whole length."""
    source = ClaimExtractor(spec.options.get("extractor", EXTRACTORS[0]), resources.judges)
    extracted = await source.extract(texts)
    for index, found in enumerate(extracted):
        if found.reason:
            # An empty list would say that the text claims nothing.
            raise UnavailableError(
                f"no claims could be taken from text {index}: {found.reason}: {found.detail}",
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
