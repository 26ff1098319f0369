"""The report of a run: scores, intervals, coverage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .judging import JudgeShare
from .result import JsonValue

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Bound", "Coverage", "Report", "Score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score over all items of a run or of a group."""

    name: str
    """The score's name."""
    value: float | None
    """The score: a fraction in [0, 1], or a count; None if undefined."""
    ci_low: float | None
    """Lower end of the interval; None without an interval."""
    ci_high: float | None
    """Upper end of the interval."""
    n: int
    """How many items the value is based on."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the score as ``report.json`` has it."""
        return {"value": self.value, "ci_low": self.ci_low, "ci_high": self.ci_high, "n": self.n}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Best and worst case of a score over all unscored items and claims."""

    best: float
    """The score with every unscored item and claim at its best."""
    worst: float
    """The score with every unscored item and claim at its worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Numbers of scored and unscored items."""

    items: int
    """Number of items."""
    scored: int
    """Number of scored items."""
    unscored: int
    """Number of unscored items."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Number of unscored items by reason."""
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    """What unscored items, and claims without a verdict in scored items, could change, by score;
    empty when there are none."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the coverage as ``report.json`` has it."""
        return {
            "items": self.items,
            "scored": self.scored,
            "unscored": self.unscored,
            "reasons": dict(self.reasons),
            "bounds": {
                name: {"best": bound.best, "worst": bound.worst}
                for name, bound in self.bounds.items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The scores of a run and their provenance.

    Scores are read by name: ``report["chair_i"]`` is the :class:`Score`, ``report.chair_i`` its
    value.
    """

    metric: str
    """The metric's name."""
    variant: str
    """The variant."""
    signature: str
    """The run's signature; quote it with the scores."""
    scores: Mapping[str, Score]
    """The scores by name."""
    coverage: Coverage
    """Numbers of scored and unscored items."""
    groups: Mapping[str, Mapping[str, Mapping[str, Score]]] = field(default_factory=dict)
    """The same scores by field and value."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """The sums that scores are computed from."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings behind the signature, in full."""
    notes: tuple[str, ...] = ()
    """Warnings about the scores, one sentence each."""
    judging: tuple[JudgeShare, ...] = ()
    """The judges' parts, in the order in which they were asked; empty if none was."""

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]

    def __contains__(self, name: object) -> bool:
        return name in self.scores

    def __iter__(self) -> Iterator[str]:
        # Without it Python would iterate by calling report[0].
        return iter(self.scores)

    def __getattr__(self, name: str) -> float | None:
        # Only called for names that are not fields. Score names depend on the metric.
        if name.startswith("_") or name not in self.scores:
            raise AttributeError(f"this {self.metric} report has no score {name!r}")
        return self.scores[name].value

    def records(self) -> list[dict[str, str | int | float | None]]:
        """Return one record for each score of the run and of its groups."""
        tables = [("", "", self.scores)]
        tables += [(key, value, s) for key, of in self.groups.items() for value, s in of.items()]
        return [
            {
                "group_by": key,
                "group": value,
                "score": name,
                "value": score.value,
                "ci_low": score.ci_low,
                "ci_high": score.ci_high,
                "n": score.n,
            }
            for key, value, scores in tables
            for name, score in scores.items()
        ]

    def to_pandas(self) -> DataFrame:
        """Return the scores of the run and of its groups as a DataFrame.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as err:
            # Not an extra of this package, which may not be published where pip looks.
            raise ImportError("report.to_pandas() needs pandas: pip install pandas") from err
        return DataFrame(self.records())

    def signature_of(self, score: str) -> str:
        """Return the signature of one score: its name before the run's signature."""
        return f"{self.scores[score].name}|{self.signature}"

    def to_json(self) -> dict[str, JsonValue]:
        """Return the content of ``report.json``."""
        return {
            "metric": self.metric,
            "variant": self.variant,
            "signature": self.signature,
            "scores": {name: score.to_json() for name, score in self.scores.items()},
            "groups": {
                key: {
                    value: {name: score.to_json() for name, score in scores.items()}
                    for value, scores in values.items()
                }
                for key, values in self.groups.items()
            },
            "coverage": self.coverage.to_json(),
            "totals": {name: _plain(total) for name, total in self.totals.items()},
            "settings": dict(self.settings),
            "notes": list(self.notes),
            "judging": [share.to_json() for share in self.judging],
        }

    def to_text(self) -> str:
        """Return the text of ``report.json``, which is deterministic."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(number: float) -> int | float:
    """Return a whole number as an integer."""
    return int(number) if float(number).is_integer() else number
