"""Summary of the reasons for unscored items and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.reasons import UnscoredReason

__all__ = ["UnscoredSummary"]

_SHOWN_REASONS = 5
_SHOWN_CHARS = 240


@dataclass(slots=True)
class _Reasons:
    """Count and first example of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, reason: str, item_id: str, detail: str) -> None:
        self.counts[reason] += 1
        self.examples.setdefault(reason, (item_id, detail))

    def lines(self, what: str, failed: str) -> list[str]:
        return [
            f"{count:,} {what if count > 1 else what[:-1]} {failed}: "
            f"{_told(reason, *self.examples[reason])}"
            for reason, count in self.counts.most_common(_SHOWN_REASONS)
        ]


class UnscoredSummary:
    """Collects the reasons of a run's unscored items and claims."""

    def __init__(self) -> None:
        self._items = _Reasons()
        self._claims = _Reasons()

    def add(self, results: Iterable[ItemResult]) -> None:
        """Count a batch of results."""
        for result in results:
            for claim in _unscored_claims(result):
                self._claims.add(claim.reason, result.id, claim.detail)
            if result.outcome is Outcome.UNSCORED:
                self._items.add(result.reason, result.id, result.detail)

    def notes(self) -> tuple[str, ...]:
        """Return one sentence for each reason, the most frequent first."""
        return (
            *self._items.lines("items", "unscored"),
            *self._claims.lines("claims", "without a verdict"),
        )


def _unscored_claims(result: ItemResult) -> list[ClaimVerdict]:
    claims = getattr(result.evidence, "claims", ())
    return [
        claim
        for claim in claims
        if isinstance(claim, ClaimVerdict) and claim.verdict is Verdict.UNSCORED and claim.reason
    ]


def _told(reason: str, item_id: str, detail: str) -> str:
    """Return a reason's sentence, an example and the next step."""
    known = UnscoredReason.__members__.get(reason)
    shown = detail if len(detail) <= _SHOWN_CHARS else f"{detail[:_SHOWN_CHARS]}…"
    example = f"Example: item {item_id}: {shown}".rstrip(": ").rstrip(".")
    if known is None:
        return f"{reason}. {example}."
    return f"{reason}. {known.sentence} {example}. Next step: {known.next_step}"
