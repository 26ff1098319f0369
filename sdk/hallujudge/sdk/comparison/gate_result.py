"""The result of a gate: its checks, and whether all of them passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias, cast

from hallujudge.metrics.framework.results import JsonValue

from ..report.table_pages import Grid, Page, show_number, show_range
from .result import sources_of
from .shown import Shown
from .values import RunLabel

__all__ = ["CheckKind", "Decision", "Gate", "GateCheck"]

Decision: TypeAlias = Literal["shown", "observed", "possible"]
"""When a check fails: if its whole interval is beyond the limit (``shown``), if its value is
(``observed``), or if a part of its interval is (``possible``)."""

CheckKind: TypeAlias = Literal["regression", "maximum", "minimum", "unscored"]
"""What a check limits."""

_TOLD = {
    "regression": "worse than the baseline by",
    "maximum": "value",
    "minimum": "value",
    "unscored": "items without a score",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck:
    """One limit, and the number that it is for."""

    kind: CheckKind
    """What is limited."""
    score: str
    """The score's name; empty for the share of unscored items."""
    limit: float
    """The limit: the largest number that passes, for a minimum the smallest."""
    value: float
    """The number: how much worse the run is than the baseline, its score, or the share."""
    ci_low: float | None
    """Lower end of the number's interval; None without one."""
    ci_high: float | None
    """Upper end of the interval."""
    passed: bool
    """Whether the check passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Shown):
    """The checks of a run."""

    metric: str
    """The metric's name."""
    variant: str
    """The variant."""
    runs: tuple[RunLabel, ...]
    """The run, and its baseline if there is one."""
    checks: tuple[GateCheck, ...]
    """The checks, in the order in which they were given."""
    decide: Decision
    """When a check fails."""
    confidence: float
    """Confidence level of the intervals."""
    method: str
    """How intervals were made."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the gate as plain values."""
        return cast("Mapping[str, JsonValue]", {"passed": self.passed, **asdict(self)})

    def page(self) -> Page:
        """Return the checks as a table."""
        failed = sum(not check.passed for check in self.checks)
        grid = Grid(
            title=f"{failed} of {len(self.checks)} checks failed" if failed else "Passed",
            headings=(
                "check",
                "score",
                "limit",
                "found",
                f"{self.confidence * 100:g}% interval",
                "result",
            ),
            rows=tuple(map(_shown, self.checks)),
            keys=("kind", "score", "limit", "value", "ci_low", "ci_high", "passed"),
            values=tuple(tuple(asdict(check).values()) for check in self.checks),
        )
        return Page(
            title=f"{self.metric} ({self.variant}): gate",
            grids=(grid,),
            sentences=(_RULES[self.decide],),
            notes=self.notes,
            sources={**sources_of(self.runs), "method": self.method},
        )


_RULES: Mapping[Decision, str] = {
    "shown": "A check fails if its whole interval is beyond the limit.",
    "observed": "A check fails if its value is beyond the limit.",
    "possible": "A check fails if any part of its interval is beyond the limit.",
}


def _shown(check: GateCheck) -> tuple[str, ...]:
    sign = "at least " if check.kind == "minimum" else "at most "
    signed = check.kind == "regression"
    return (
        _TOLD[check.kind],
        check.score or "–",
        f"{sign}{check.limit:g}",
        show_number(check.value, signed=signed),
        show_range(check.ci_low, check.ci_high, signed=signed),
        "passed" if check.passed else "failed",
    )
