"""Counts of the reasons for unscored items and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.results import JsonValue

__all__ = ["ReasonCounts", "UnscoredCounts"]

_DETAIL_CHARS = 240


@dataclass(slots=True)
class ReasonCounts:
    """Count and first example of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    """Reason -> count."""
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Reason -> id and detail of its first item."""

    def add(self, reason: str, item_id: str, detail: str) -> None:
        """Count one."""
        self.counts[reason] += 1
        if reason not in self.examples:
            cut = len(detail) > _DETAIL_CHARS
            self.examples[reason] = (item_id, f"{detail[:_DETAIL_CHARS]}…" if cut else detail)

    def merge(self, later: ReasonCounts) -> None:
        """Add the counts of later items."""
        self.counts.update(later.counts)
        for reason, example in later.examples.items():
            self.examples.setdefault(reason, example)

    def to_json(self) -> dict[str, JsonValue]:
        """Return reason -> count, id and detail."""
        return {reason: [n, *self.examples[reason]] for reason, n in self.counts.items()}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReasonCounts:
        """Return the counts of what :meth:`to_json` returned."""
        made = cls()
        for reason, (count, item_id, detail) in values.items():
            made.counts[reason] = count
            made.examples[reason] = (item_id, detail)
        return made


@dataclass(slots=True)
class UnscoredCounts:
    """Reasons for a run's unscored items and claims."""

    items: ReasonCounts = field(default_factory=ReasonCounts)
    """Of items."""
    claims: ReasonCounts = field(default_factory=ReasonCounts)
    """Of claims, in scored and unscored items."""

    def add(self, results: Sequence[ItemResult]) -> None:
        """Count a batch of results."""
        for result in results:
            if result.outcome is Outcome.UNSCORED:
                self.items.add(result.reason, result.id, result.detail)
        # One of each kind tells whether there are claims to look through; most kinds have none.
        kinds = {type(result.evidence): result.evidence for result in results}
        if any(hasattr(evidence, "claims") for evidence in kinds.values()):
            for result in results:
                for claim in _unscored_claims(result):
                    self.claims.add(claim.reason, result.id, claim.detail)

    def merge(self, later: UnscoredCounts) -> None:
        """Add the counts of later items."""
        self.items.merge(later.items)
        self.claims.merge(later.claims)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the counts as a journal has them; empty if everything is scored."""
        kinds = {"items": self.items.to_json(), "claims": self.claims.to_json()}
        return {name: counts for name, counts in kinds.items() if counts}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> UnscoredCounts:
        """Return the counts of what :meth:`to_json` returned."""
        return cls(
            items=ReasonCounts.of(values.get("items", {})),
            claims=ReasonCounts.of(values.get("claims", {})),
        )


def _unscored_claims(result: ItemResult) -> list[ClaimVerdict]:
    claims = getattr(result.evidence, "claims", ())
    return [
        claim
        for claim in claims
        if isinstance(claim, ClaimVerdict) and claim.verdict is Verdict.UNSCORED and claim.reason
    ]
