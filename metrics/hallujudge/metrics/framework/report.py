"""The report of a run: scores, intervals, coverage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .result import JsonValue

__all__ = ["Bound", "Coverage", "Report", "Score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score over all items of a run or of a group."""

    name: str
    """The score's name."""
    value: float | None
    """The score: a fraction in [0, 1], or a count; None where it is not defined."""
    ci_low: float | None
    """Lower end of the interval; None where there is none."""
    ci_high: float | None
    """Upper end of the interval."""
    n: int
    """How many items the value is based on."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the score as ``report.json`` has it."""
        return {"value": self.value, "ci_low": self.ci_low, "ci_high": self.ci_high, "n": self.n}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a score could become if all unscored items and claims were at their best, or worst."""

    best: float
    """With every unscored item, and every claim without a verdict, at its best."""
    worst: float
    """With every unscored item, and every claim without a verdict, at its worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of what was sent could be scored."""

    items: int
    """Items sent."""
    scored: int
    """Items with a score."""
    unscored: int
    """Items without."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why, by reason."""
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
    """The scores of a run, and how they were made.

    Scores are read by name: ``report["chair_i"]`` is the :class:`Score`, ``report.chair_i`` its
    value.
    """

    metric: str
    """The metric's name."""
    variant: str
    """The variant."""
    signature: str
    """How exactly the numbers were made; quote it with them."""
    scores: Mapping[str, Score]
    """The scores by name."""
    coverage: Coverage
    """How much could be scored."""
    groups: Mapping[str, Mapping[str, Mapping[str, Score]]] = field(default_factory=dict)
    """The same scores by field and value."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """The sums that scores are made of."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings behind the signature, in full."""
    notes: tuple[str, ...] = ()
    """What a reader must know before quoting a number, one sentence each."""

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]

    def __contains__(self, name: object) -> bool:
        return name in self.scores

    def __iter__(self) -> Iterator[str]:
        # Without it Python would ask for report[0].
        return iter(self.scores)

    def __getattr__(self, name: str) -> float | None:
        # Only reached for names that are no field; scores are open-ended, so they live here.
        if name.startswith("_") or name not in self.scores:
            raise AttributeError(f"this {self.metric} report has no score {name!r}")
        return self.scores[name].value

    def signature_of(self, score: str) -> str:
        """The signature of one number: the score's name before the run's signature."""
        return f"{self.scores[score].name}|{self.signature}"

    def to_json(self) -> dict[str, JsonValue]:
        """The content of ``report.json``."""
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
        }

    def to_text(self) -> str:
        """The bytes of ``report.json``, decoded: the same for the same numbers, always."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(number: float) -> int | float:
    """A whole number without its point."""
    return int(number) if float(number).is_integer() else number
