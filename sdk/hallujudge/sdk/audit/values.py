"""Values of an audit: options, printed numbers, causes and their shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hallujudge.metrics.framework.results import JsonValue

__all__ = ["AuditOptions", "Cause", "ItemShare", "Printed", "Row", "ScoreAudit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What an archive's numbers are compared with, and how it is read."""

    references: tuple[str | Path, ...] = ()
    """Files of references, for archives without labels or objects."""
    printed: tuple[str, ...] = ()
    """Printed numbers, such as ``accuracy=0.854`` or ``f1=85.4%``; they replace those found."""
    harness: str = ""
    """The tool that printed the numbers; empty: it is told by the layout."""
    category: str = ""
    """The only category that the printed numbers are about, such as ``random``."""
    variant: str = ""
    """Our metric's variant; empty for its default."""
    join: str = "auto"
    """For POPE: how answers find their questions, as in ``hallujudge score pope``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number that a tool printed."""

    value: Fraction
    """The number as a fraction in [0, 1]."""
    unit: Fraction
    """The value of its last digit."""
    source: str
    """Where it is from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of an archive that is counted."""

    id: str
    """Id of the item."""
    response: str
    """What the model wrote; empty if the archive has no response."""
    label: str = ""
    """The right answer; empty where there are none."""
    category: str = ""
    """Category of the row, or several with commas; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause of a difference."""

    name: str
    """Name of the cause."""
    meaning: str
    """What it is, in a sentence."""
    items: int | None
    """How many rows it changes; None if it is about the number as a whole."""
    rows: int | None
    """How many rows count after it, repeated ones repeatedly; None as above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAudit:
    """One score, from the printed number to ours."""

    name: str
    """Name of the score."""
    printed: Printed | None
    """The printed number; None if there is none, and the steps begin at the re-derived one."""
    rederived: Fraction
    """The score by the tool's own rules, from the archive."""
    ours: Fraction
    """Our score."""
    shares: Mapping[str, Fraction]
    """Cause -> change of the score, in order; they add up to ours minus the first number."""

    @property
    def first(self) -> Fraction:
        """The number that the steps begin with."""
        return self.rederived if self.printed is None else self.printed.value

    def to_json(self) -> dict[str, JsonValue]:
        """Return the score as an object; ``exact`` has every number as a ratio."""
        exact = {name: str(share) for name, share in self.shares.items()}
        printed = self.printed
        return {
            "printed": None if printed is None else float(printed.value),
            "printed_in": "" if printed is None else printed.source,
            "rederived": float(self.rederived),
            "ours": float(self.ours),
            "difference": float(self.ours - self.first),
            "shares": {name: float(share) for name, share in self.shares.items()},
            "exact": {"first": str(self.first), "shares": dict(exact), "ours": str(self.ours)},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemShare:
    """What one row contributes to one cause."""

    cause: str
    """Name of the cause."""
    row: Row
    """The row."""
    before: Mapping[str, int]
    """How the row is counted before."""
    after: Mapping[str, int]
    """How the row is counted after; empty if it is not."""
    shares: Mapping[str, Fraction]
    """Score -> the row's share of the cause's share."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the line of the file of items."""
        row = self.row
        return {
            "cause": self.cause,
            "id": row.id,
            "category": row.category,
            "label": row.label,
            "response": row.response,
            "before": dict(self.before),
            "after": dict(self.after),
            "shares": {name: float(share) for name, share in self.shares.items()},
        }
