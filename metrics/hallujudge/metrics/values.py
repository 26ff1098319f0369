"""Values that metrics give back: results of items, scores, coverage, reports.

Everything here is frozen and free of heavy imports, so that the SDK can be imported in a moment.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

__all__ = [
    "Bound",
    "ChairEvidence",
    "Coverage",
    "Evidence",
    "ItemResult",
    "JsonValue",
    "MentionVerdict",
    "Outcome",
    "Report",
    "Score",
]

JsonValue: TypeAlias = (
    "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] "
    "| tuple[JsonValue, ...] | None"
)


class Outcome(enum.Enum):
    """What became of an item."""

    SCORED = "scored"
    """It has statistics and counts in every score."""

    UNSCORED = "unscored"
    """It has none, and a reason says why. Never the same as wrong."""


class Evidence(Protocol):
    """What an item's outcome rests on; every protocol has its own shape."""

    def to_json(self) -> dict[str, JsonValue]:
        """The evidence as it stands in ``items.jsonl``."""
        ...


class MentionVerdict(NamedTuple):
    """An object that a caption mentions, and whether the image lacks it."""

    word: str
    """The word as the reading took it."""
    object: str
    """The object that it stands for."""
    start: int
    """First character of the mention in the caption."""
    end: int
    """One past its last character."""
    hallucinated: bool
    """Whether the object is absent from the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChairEvidence:
    """What a caption's CHAIR scores rest on."""

    mentions: tuple[MentionVerdict, ...]
    """Every mention, in the order of the caption."""
    missed: tuple[str, ...] = ()
    """Reference objects that the caption does not mention."""

    def to_json(self) -> dict[str, JsonValue]:
        """``mentioned`` and ``hallucinated`` as [word, object] pairs, with spans beside them."""
        wrong = [m for m in self.mentions if m.hallucinated]
        return {
            "mentioned": [[m.word, m.object] for m in self.mentions],
            "hallucinated": [[m.word, m.object] for m in wrong],
            "mentioned_spans": [[m.start, m.end] for m in self.mentions],
            "hallucinated_spans": [[m.start, m.end] for m in wrong],
            "missed": list(self.missed),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """One item's outcome, statistics and evidence."""

    id: str
    """The item's id."""
    group_id: str
    """What intervals are resampled by: the image or the video."""
    outcome: Outcome
    """Whether the item is scored."""
    reason: str = ""
    """Why it is not, such as ``RESPONSE_MISSING``."""
    detail: str = ""
    """The reason in words."""
    statistics: tuple[float, ...] = ()
    """What the aggregate is made of, one number for each of the metric's columns."""
    scores: Mapping[str, float | None] = field(default_factory=dict)
    """The item's own scores; None where one is not defined."""
    evidence: Evidence | None = None
    """What the outcome rests on."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values that results may be grouped by."""

    def to_json(self) -> dict[str, JsonValue]:
        """The line of ``items.jsonl``."""
        line: dict[str, JsonValue] = {
            "id": self.id,
            "group_id": self.group_id,
            "outcome": self.outcome.value,
        }
        if self.outcome is Outcome.UNSCORED:
            line["reason"] = self.reason
            line["detail"] = self.detail
        if self.fields:
            # Sorted: on the wire they have no order.
            line["fields"] = dict(sorted(self.fields.items()))
        line["scores"] = dict(self.scores)
        line["evidence"] = self.evidence.to_json() if self.evidence is not None else {}
        return line


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
    """How many items the value rests on."""

    def to_json(self) -> dict[str, JsonValue]:
        """The score as it stands in ``report.json``."""
        return {"value": self.value, "ci_low": self.ci_low, "ci_high": self.ci_high, "n": self.n}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a score could become if every unscored item were at its best, or at its worst."""

    best: float
    """With every unscored item at its best."""
    worst: float
    """With every unscored item at its worst."""


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
    """What the unscored items could change, by score; empty when there are none."""

    def to_json(self) -> dict[str, JsonValue]:
        """The coverage as it stands in ``report.json``."""
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
    """The named reading."""
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
    """Settings that stand in the signature, in full."""

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
        }

    def to_text(self) -> str:
        """The bytes of ``report.json``, decoded: the same for the same numbers, always."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(number: float) -> int | float:
    """A whole number without its point."""
    return int(number) if float(number).is_integer() else number
