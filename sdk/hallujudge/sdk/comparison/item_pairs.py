"""Joins two runs by item id: clusters of items, and the items that differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Literal, TypeAlias, TypeVar, cast

from hallujudge.metrics import ItemResult, Metric, Outcome, ScoreDefinition, Tally
from hallujudge.metrics.framework.comparison import PairedClusters
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.metrics.framework.statistics_table import Clusters

from ..errors import InvalidInputError
from ..runs.run_report import RunReport
from ..runs.stored_runs import read_run
from .compared_runs import CompareOptions, RunData, read_runs
from .named_runs import RunSource
from .results import PairCoverage, ScoreChanges

# Ids that an error names of each run.
_NAMED = 3

_Value = TypeVar("_Value")

Change: TypeAlias = Literal[
    "better", "worse", "mixed", "other", "unscored in the second run", "unscored in the first run"
]
"""How an item changed from the first run to the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRuns:
    """Two runs and the ids of their common items."""

    first: RunData
    """The run that the other is compared with."""
    second: RunData
    """The run that is compared."""
    common: Sequence[str]
    """The ids of both, in the order of the first run."""

    @classmethod
    def of(cls, first: RunData, second: RunData) -> PairedRuns:
        """Join two runs.

        Raises:
            InvalidInputError: They can't be joined, or no item is scored in both.
        """
        return cls(first=first, second=second, common=common_items((first, second)))

    def coverage(self) -> PairCoverage:
        """Count the items of both, of one, and those that are unscored.

        Raises:
            InvalidInputError: No item is scored in both runs.
        """
        # Items that the variant leaves out in both runs are not part of its data.
        counted = [key for key in self.common if self.first.counts(key) or self.second.counts(key)]
        one = [self.first.scored(key) for key in counted]
        other = [self.second.scored(key) for key in counted]
        outcomes = list(zip(one, other, strict=True))
        # Differences over no items would be undefined, without saying why.
        if (True, True) not in outcomes:
            raise InvalidInputError(
                f"no item is scored in both {self.first.name} and {self.second.name}; the reasons "
                "are in their report.json"
            )
        return PairCoverage(
            compared=outcomes.count((True, True)),
            unscored_first=outcomes.count((False, True)),
            unscored_second=outcomes.count((True, False)),
            unscored_both=outcomes.count((False, False)),
            only_first=len(self.first.results) - len(self.common),
            only_second=len(self.second.results) - len(self.common),
        )

    def compared(self) -> Iterator[tuple[ItemResult, ItemResult]]:
        """Yield both results of each item that is scored in both runs."""
        for one, other in self._results():
            if one.outcome is other.outcome is Outcome.SCORED:
                yield one, other

    def clusters(
        self, scores: Iterable[ScoreDefinition]
    ) -> Iterator[tuple[tuple[ScoreDefinition, ...], PairedClusters]]:
        """Yield scores with the clusters that they are compared over.

        An item that is unscored in one run counts in no score of either. Scores that say how many
        answers could not be parsed are the exception: they count just these items.
        """
        scores = tuple(scores)
        about_unscored = self.about_unscored(scores)
        rest = tuple(score for score in scores if score not in about_unscored)
        if rest:
            yield rest, self._paired(self._masked())
        # These count unscored items, which the masked results leave out.
        if about_unscored:
            with_rows = ((a, b) for a, b in self._results() if a.statistics and b.statistics)
            yield about_unscored, self._paired(with_rows)

    def changes(self, scores: Iterable[ScoreDefinition]) -> Iterator[ScoreChanges]:
        """Yield how the items' own scores changed, for scores that items have of their own."""
        pairs = [(one.scores, other.scores) for one, other in self.compared()]
        for score in scores:
            found = [(a.get(score.name), b.get(score.name)) for a, b in pairs]
            known = [(a, b) for a, b in found if a is not None and b is not None]
            if known:
                yield _changes(score, known)

    def changed_items(self) -> int:
        """Count the compared items with other statistics."""
        return sum(one.statistics != other.statistics for one, other in self.compared())

    def _results(self) -> Iterator[tuple[ItemResult, ItemResult]]:
        return ((self.first.results[key], self.second.results[key]) for key in self.common)

    def _masked(self) -> Iterator[tuple[ItemResult, ItemResult]]:
        """Yield the results; an item that is unscored in one run has that result in both.

        Metrics whose unscored items have statistics then treat both runs alike: for example, a pair
        of questions with an unscored one is left out as a whole.
        """
        for one, other in self._results():
            if one.outcome is other.outcome:
                both = (one, other) if one.outcome is Outcome.SCORED else (one, one)
            else:
                unscored = one if one.outcome is Outcome.UNSCORED else other
                both = (unscored, unscored)
            if both[0].statistics:
                yield both

    def _paired(self, results: Iterable[tuple[ItemResult, ItemResult]]) -> PairedClusters:
        first, second = _tallied(self.first.metric, results)
        assert (first.keys == second.keys).all(), "the same items have the same clusters"
        return PairedClusters(first=first.columns, second=second.columns)

    def about_unscored(self, scores: Sequence[ScoreDefinition]) -> tuple[ScoreDefinition, ...]:
        """Return the scores that are defined over unscored items alone."""
        rows = [
            (result, result)
            for pair in self._results()
            for result in pair
            if result.outcome is Outcome.UNSCORED and result.statistics
        ]
        if not rows:
            return ()
        columns = _tallied(self.first.metric, rows)[0].columns
        # A score over unscored rows alone that has a value is about just these rows.
        totals = {name: column.sum(keepdims=True) for name, column in columns.items()}
        return tuple(
            score
            for score in scores
            if not math.isnan(score.value({name: totals[name] for name in score.columns})[0])
        )


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
    # Statistics are in memory already; lines, with evidence and responses, are read for these
    # alone.
    changed = [key for key in paired.common if _differs(paired, key)]
    # An item that was paired by its question has another id in the second run.
    names = [[run.results[key].id for key in changed] for run in (paired.first, paired.second)]
    # Only these items' lines are kept: a run may have a million.
    one, other = map(_lines, (first, second), map(frozenset, names))
    for key, mine, theirs in zip(changed, *names, strict=True):
        yield _change(paired, key, one[mine], other[theirs])


def common_items(runs: Sequence[RunData]) -> list[str]:
    """Return the ids that all runs have, in the order of the first run.

    Raises:
        InvalidInputError: There are none.
    """
    first, *others = runs
    common = [key for key in first.results if all(key in run.results for run in others)]
    if not common:
        known = ", ".join(f"{run.name} has {_examples(run.results)}" for run in runs)
        raise InvalidInputError(
            f"no item id is in all runs: {known}. Give runs over the same items"
        )
    return common


def _examples(results: Mapping[str, ItemResult]) -> str:
    shown = ", ".join(f"{key!r:.40}" for key in islice(results, _NAMED))
    return f"{shown}, …" if len(results) > _NAMED else shown or "no items"


def _tallied(
    metric: Metric, pairs: Iterable[tuple[ItemResult, ItemResult]]
) -> tuple[Clusters, Clusters]:
    """Add up pairs of results, each side for itself."""
    rows = list(pairs)
    first, second = (Tally.of(metric, (row[side] for row in rows), signed=False) for side in (0, 1))
    return first.clusters(), second.clusters()


def _changes(score: ScoreDefinition, known: Sequence[tuple[float, float]]) -> ScoreChanges:
    best = {"higher": score.high, "lower": score.low}.get(score.direction)
    return ScoreChanges(
        score=score.name,
        direction=score.direction,
        higher=sum(b > a for a, b in known),
        lower=sum(b < a for a, b in known),
        same=sum(a == b for a, b in known),
        # Without a better end, best is None and equals no score.
        newly_wrong=sum(a == best != b for a, b in known),
        newly_right=sum(b == best != a for a, b in known),
    )


def _differs(paired: PairedRuns, key: str) -> bool:
    one, other = paired.first.results[key], paired.second.results[key]
    # Not by evidence, which may differ where no score does.
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
    # In the order of the runs, which a set would not keep.
    keys = dict.fromkeys((*one, *other))
    return {key: (one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)}


def _kind(
    one: ItemResult,
    other: ItemResult,
    scores: Mapping[str, tuple[float | None, float | None]],
    definitions: Iterable[ScoreDefinition],
) -> Change:
    if one.outcome is not other.outcome:
        # The outcomes differ, so that the one with a reason is the unscored one.
        return "unscored in the second run" if other.reason else "unscored in the first run"
    better = {
        # Only scores that changed are here: what is not higher is lower.
        (values[1] > values[0]) == (definition.direction == "higher")
        for definition in definitions
        if definition.direction != "neither"
        for values in [scores.get(definition.name, (None, None))]
        if values[0] is not None and values[1] is not None
    }
    if len(better) == 2:
        return "mixed"
    return {True: "better", False: "worse"}[better.pop()] if better else "other"  # type: ignore[return-value]
