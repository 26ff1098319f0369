"""Who decided in a run: verdicts by judge, those left to the next judge, and what calls took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .reasons import UnscoredReason
from .result import JsonValue

__all__ = ["JudgeShare", "JudgingCounts", "cascade_notes"]

# Sums of whole numbers do not depend on their order. Evidence has nine decimals.
_NANO = 10**9
_TOO_SMALL = str(UnscoredReason.MARGIN_TOO_SMALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeShare:
    """A judge's part in a run. Times of calls are left out, which differ between equal runs."""

    judge: str
    """Its name."""
    decided: int
    """Verdicts that count."""
    declined: Mapping[str, int] = field(default_factory=dict)
    """Reason -> claims on which it gave no verdict that counts."""
    calls: int = 0
    """Calls that were answered."""
    prompt_tokens: int = 0
    """Tokens sent."""
    completion_tokens: int = 0
    """Tokens received."""
    cost: float | None = None
    """Their price; None without prices."""

    @property
    def asked(self) -> int:
        """Claims that it was asked about."""
        return self.decided + sum(self.declined.values())

    @property
    def escalated(self) -> int:
        """Verdicts whose margin was too small."""
        return self.declined.get(_TOO_SMALL, 0)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the judge's part as ``report.json`` has it."""
        return {
            "judge": self.judge,
            "decided": self.decided,
            "declined": dict(self.declined),
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
        }


class JudgingCounts:
    """Sums of the judges' parts in items, in any order and any number of parts."""

    def __init__(self) -> None:
        self._sums: dict[str, Counter[str]] = {}
        self._declined: dict[str, Counter[str]] = {}

    def add(self, judging: Iterable[Mapping[str, Any]]) -> None:
        """Add the entries of an item's ``evidence.judging``."""
        for part in judging:
            sums, declined = self._of(part["judge"])
            sums.update(
                decided=part["answered"],
                calls=part["calls"],
                prompt_tokens=part["prompt_tokens"],
                completion_tokens=part["completion_tokens"],
            )
            if part["cost"] is not None:
                sums.update(cost=round(part["cost"] * _NANO), priced=1)
            declined.update({reason: row["claims"] for reason, row in part["declined"].items()})

    def merge(self, other: JudgingCounts) -> None:
        """Add the sums of another part."""
        for judge, sums in other._sums.items():
            mine, declined = self._of(judge)
            mine.update(sums)
            declined.update(other._declined[judge])

    def to_json(self) -> dict[str, JsonValue]:
        """Return the sums for :meth:`of`."""
        return {
            judge: [dict(sums), dict(self._declined[judge])] for judge, sums in self._sums.items()
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> JudgingCounts:
        """Return the sums of what :meth:`to_json` returned."""
        made = cls()
        for judge, (sums, declined) in values.items():
            made._sums[judge], made._declined[judge] = Counter(sums), Counter(declined)
        return made

    def shares(self) -> tuple[JudgeShare, ...]:
        """Return each judge's part, in the order in which they were asked."""
        if not self._sums:
            return ()
        return tuple(
            JudgeShare(
                judge=judge,
                decided=sums["decided"],
                declined=dict(sorted(self._declined[judge].items())),
                calls=sums["calls"],
                prompt_tokens=sums["prompt_tokens"],
                completion_tokens=sums["completion_tokens"],
                cost=sums["cost"] / _NANO if sums["priced"] else None,
            )
            for judge, sums in self._sums.items()
        )

    def _of(self, judge: str) -> tuple[Counter[str], Counter[str]]:
        return self._sums.setdefault(judge, Counter()), self._declined.setdefault(judge, Counter())


def cascade_notes(shares: Iterable[JudgeShare]) -> tuple[str, ...]:
    """Return who decided in a run whose first judge left verdicts to others; none without such.

    What was saved is estimated: the later judges are assumed to need as much for the claims that
    the first judge decided as for those that it left to them.
    """
    by_part = list(shares)
    if not by_part:
        return ()
    first = next((share for share in by_part if share.escalated), None)
    if first is None:
        return ()
    others = [share for share in by_part if share is not first and share.asked]
    decided = first.decided + sum(share.decided for share in others)
    parts = [
        f"{first.judge} decided {_of(first.decided, first.asked)} verdicts",
        f"{_of(first.escalated, first.asked)} had too small a margin",
        *(f"{share.judge} decided {_of(share.decided, first.asked)}" for share in others),
        f"{_of(first.asked - decided, first.asked)} are without a verdict",
    ]
    saved = [_saved(first, share) for share in others]
    return (f"Cascade: {'; '.join(parts)}.{''.join(filter(None, saved))}",)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})"


def _saved(first: JudgeShare, later: JudgeShare) -> str:
    """Return what a later judge would have taken for the verdicts of the first one."""
    if not later.calls:
        return ""
    times = first.decided / (first.asked - first.decided)
    cost = "" if later.cost is None else f", cost {later.cost * times:.4g} (spent {later.cost:.4g})"
    return (
        f" Saved, estimated: {later.calls * times:,.0f} calls of {later.judge} (made "
        f"{later.calls:,}){cost}."
    )
