"""Single items that differ between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias, TypeVar, cast

from hallujudge.metrics import ItemResult, ScoreDefinition
from hallujudge.metrics.framework.results import JsonValue

from ..runs.run_report import RunReport
from ..runs.stored_runs import read_run
from .options import CompareOptions, RunSource
from .pairing import PairedRuns
from .runs import read_runs

__all__ = ["Change", "ItemChange", "changed_items"]

_Value = TypeVar("_Value")

Change: TypeAlias = Literal[
    "better", "worse", "mixed", "other", "unscored in the second run", "unscored in the first run"
]
"""How an item changed from the first run to the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """An item with another outcome or other statistics in the second run."""

    id: str
    """The item's id."""
    group_id: str
    """Its cluster: the image or video."""
    change: Change
    """``better`` or ``worse`` by the item's own scores; ``mixed`` if scores disagree; ``other`` if
    none of them has a better end or none changed."""
    scores: Mapping[str, tuple[float | None, float | None]]
    """The item's own scores that changed, in the first run and in the second."""
    statistics: Mapping[str, tuple[float | None, float | None]]
    """The statistics that changed, in the same way."""
    reasons: tuple[str, str]
    """Why the item is unscored in each run; empty where it is scored."""
    evidence: Mapping[str, tuple[JsonValue, JsonValue]]
    """The parts of the evidence that changed, such as the hallucinated objects."""
    responses: tuple[JsonValue, JsonValue]
    """What each model wrote; None where the run does not hold it."""

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the change as a line of the file of changed items."""
        return cast("Mapping[str, JsonValue]", asdict(self))


def changed_items(
    first: RunSource, second: RunSource, *, options: CompareOptions | None = None
) -> Iterator[ItemChange]:
    """Yield the items of both runs that changed, in the order of the first run.

    Args:
        first: Folder of a run, or a report that holds its items.
        second: The run that is compared with it.
        options: Names of the runs, and fields of the signature that may differ.

    Raises:
        InvalidInputError: The runs were scored in different ways, or have no item in common.
        ArchiveError: A folder does not hold a complete run.
    """
    paired = PairedRuns.of(*read_runs((first, second), options or CompareOptions()))
    changed = [key for key in paired.common if _differs(paired, key)]
    told = _lines(first, frozenset(changed)), _lines(second, frozenset(changed))
    for key in changed:
        yield _change(paired, key, told[0][key], told[1][key])


def _differs(paired: PairedRuns, key: str) -> bool:
    one, other = paired.first.results[key], paired.second.results[key]
    return (one.outcome, one.statistics) != (other.outcome, other.statistics)


def _lines(source: RunSource, wanted: frozenset[str]) -> dict[str, Mapping[str, JsonValue]]:
    """Return evidence and response of the wanted items."""
    if isinstance(source, RunReport):
        return {
            item.id: {
                "evidence": item.evidence.to_json() if item.evidence else {},
                "response": cast("JsonValue", item.response),
            }
            for item in source.items
            if item.id in wanted
        }
    return {
        line["id"]: {name: line.get(name) for name in ("evidence", "response")}
        for line in read_run(source).lines()
        if line["id"] in wanted
    }


def _change(
    paired: PairedRuns,
    key: str,
    one_line: Mapping[str, JsonValue],
    other_line: Mapping[str, JsonValue],
) -> ItemChange:
    one, other = paired.first.results[key], paired.second.results[key]
    metric = paired.first.metric
    names = [column.name for column in metric.columns]
    scores = _different(one.scores, other.scores)
    return ItemChange(
        id=key,
        group_id=one.group_id,
        change=_kind(one, other, scores, metric.scores),
        scores=scores,
        statistics=_different(
            dict(zip(names, one.statistics, strict=False)),
            dict(zip(names, other.statistics, strict=False)),
        ),
        reasons=(one.reason, other.reason),
        evidence=_different(_mapping(one_line["evidence"]), _mapping(other_line["evidence"])),
        responses=(one_line["response"], other_line["response"]),
    )


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}


def _different(
    one: Mapping[str, _Value], other: Mapping[str, _Value]
) -> dict[str, tuple[_Value | None, _Value | None]]:
    """Return the entries that differ, with both values."""
    keys = dict.fromkeys((*one, *other))
    return {key: (one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)}


def _kind(
    one: ItemResult,
    other: ItemResult,
    scores: Mapping[str, tuple[float | None, float | None]],
    definitions: Iterable[ScoreDefinition],
) -> Change:
    if one.outcome is not other.outcome:
        return "unscored in the second run" if other.reason else "unscored in the first run"
    better = {
        (values[1] > values[0]) == (definition.direction == "higher")
        for definition in definitions
        if definition.direction != "neither"
        for values in [scores.get(definition.name, (None, None))]
        if values[0] is not None and values[1] is not None
    }
    if len(better) == 2:
        return "mixed"
    return {True: "better", False: "worse"}[better.pop()] if better else "other"  # type: ignore[return-value]
