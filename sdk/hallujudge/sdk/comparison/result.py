"""The comparison of runs with a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast

from hallujudge.metrics.framework.columns_and_scores import Direction
from hallujudge.metrics.framework.results import JsonValue

from ..report.report_text import ABSENT
from ..report.table_pages import Grid, Page, show_number, show_p, show_range
from .shown import Shown
from .values import Pair, RunLabel, ScoreDifference

__all__ = ["Comparison", "better_end", "sources_of"]

_KEYS = (
    "first",
    "second",
    "score",
    "direction",
    "first_value",
    "second_value",
    "difference",
    "ci_low",
    "ci_high",
    "p",
    "p_corrected",
    "finding",
    "clusters",
    "changed",
    "items",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Shown):
    """Runs compared with the first of them."""

    metric: str
    """The metric's name."""
    variant: str
    """The variant."""
    runs: tuple[RunLabel, ...]
    """The runs, the baseline first."""
    pairs: tuple[Pair, ...]
    """Each run after the first, compared with the first."""
    tests: int
    """How many tests Holm's correction is for."""
    confidence: float
    """Confidence level of the intervals; 1 minus the level of the tests."""
    method: str
    """How intervals and p-values were made; quote it with them."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""

    def __getitem__(self, score: str) -> ScoreDifference:
        """Return the difference of a score between the first two runs.

        Raises:
            KeyError: No score has that name.
        """
        return self.pairs[0][score]

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the comparison as plain values."""
        return cast("Mapping[str, JsonValue]", asdict(self))

    def page(self) -> Page:
        """Return the comparison as tables and sentences."""
        rows = [(pair, each) for pair in self.pairs for each in pair.differences]
        single = len(self.pairs) == 1
        names = (self.pairs[0].first, self.pairs[0].second) if single else ("first", "second")
        differences = Grid(
            title=f"Differences: {_subject(self.pairs)}",
            headings=(
                *(() if single else ("run",)),
                "score",
                "better end",
                *names,
                "difference",
                f"{self.confidence * 100:g}% interval",
                "p",
                "p (Holm)",
                f"{names[1] if single else 'run'} is",
            ),
            rows=tuple(_shown(pair, each, single=single) for pair, each in rows),
            keys=_KEYS,
            values=tuple(_values(pair, each) for pair, each in rows),
            spare=("better end", "p", "first", "second"),
        )
        return Page(
            title=f"{self.metric} ({self.variant}): comparison",
            grids=(
                differences,
                *(_corrected(pair, self.confidence) for pair in self.pairs if pair.corrected),
                *(_changes(pair) for pair in self.pairs if pair.changes),
            ),
            sentences=tuple(self._sentences()),
            notes=self.notes,
            sources={**sources_of(self.runs), "method": self.method},
        )

    def _sentences(self) -> list[str]:
        level = f"{1 - self.confidence:.4g}"
        return [
            *(
                f"{pair.second} against {pair.first}: {pair.coverage.compared:,} items are scored "
                f"in both; {pair.changed_items:,} of them have other statistics."
                for pair in self.pairs
            ),
            "Intervals: paired bootstrap over images or videos. p: permutation test that swaps "
            f"them between the runs. p (Holm): corrected for all {self.tests} tests of this "
            f"comparison. Runs are told apart if it is at most {level}; not told apart does not "
            "mean equal.",
        ]


def _corrected(pair: Pair, confidence: float) -> Grid:
    """Return the differences of scores that human labels correct."""
    return Grid(
        title=f"Corrected by human labels: {pair.second} against {pair.first}",
        headings=(
            "score",
            "better end",
            pair.first,
            pair.second,
            "difference",
            f"{confidence * 100:g}% interval",
            "labels",
            f"{pair.second} is",
        ),
        rows=tuple(
            (
                each.score,
                better_end(each.direction),
                show_number(each.first),
                show_number(each.second),
                show_number(each.difference, signed=True),
                show_range(each.ci_low, each.ci_high, signed=True),
                f"{each.labels[0]:,} and {each.labels[1]:,}",
                "not told apart" if each.finding == "none" else each.finding,
            )
            for each in pair.corrected
        ),
        keys=(
            "score",
            "direction",
            "first",
            "second",
            "difference",
            "ci_low",
            "ci_high",
            "finding",
        ),
        values=tuple(
            (
                each.score,
                each.direction,
                each.first,
                each.second,
                each.difference,
                each.ci_low,
                each.ci_high,
                each.finding,
            )
            for each in pair.corrected
        ),
    )


def sources_of(runs: tuple[RunLabel, ...]) -> dict[str, str]:
    """Return the name and signature of each run."""
    return {run.name: run.signature for run in runs}


def better_end(direction: Direction) -> str:
    """Return which end of a score is better; a dash if neither is."""
    return ABSENT if direction == "neither" else direction


def _subject(pairs: tuple[Pair, ...]) -> str:
    others = ", ".join(pair.second for pair in pairs)
    return f"{others} against {pairs[0].first}"


def _shown(pair: Pair, each: ScoreDifference, *, single: bool) -> tuple[str, ...]:
    return (
        *(() if single else (pair.second,)),
        each.score,
        better_end(each.direction),
        show_number(each.first),
        show_number(each.second),
        show_number(each.difference, signed=True),
        show_range(each.ci_low, each.ci_high, signed=True),
        show_p(each.p),
        show_p(each.p_corrected),
        "not told apart" if each.finding == "none" else each.finding,
    )


def _values(pair: Pair, each: ScoreDifference) -> tuple[str | int | float | None, ...]:
    return (
        pair.first,
        pair.second,
        each.score,
        each.direction,
        each.first,
        each.second,
        each.difference,
        each.ci_low,
        each.ci_high,
        each.p,
        each.p_corrected,
        each.finding,
        each.clusters,
        each.changed,
        pair.coverage.compared,
    )


def _changes(pair: Pair) -> Grid:
    """Return how single items changed, in the score's own direction."""
    counts = [
        (each, *_better_worse(each.direction, each.higher, each.lower)) for each in pair.changes
    ]
    return Grid(
        title=f"Items of {pair.second} against {pair.first}",
        headings=(
            "score of an item",
            "better is",
            "better",
            "worse",
            "same",
            "newly right",
            "newly wrong",
        ),
        rows=tuple(
            (
                each.score,
                better_end(each.direction),
                better,
                worse,
                f"{each.same:,}",
                *_newly(each.direction, each.newly_right, each.newly_wrong),
            )
            for each, better, worse in counts
        ),
        keys=("score", "direction", "higher", "lower", "same", "newly_right", "newly_wrong"),
        values=tuple(
            (
                each.score,
                each.direction,
                each.higher,
                each.lower,
                each.same,
                each.newly_right,
                each.newly_wrong,
            )
            for each in pair.changes
        ),
    )


def _better_worse(direction: str, higher: int, lower: int) -> tuple[str, str]:
    if direction == "neither":
        return f"{higher:,} higher", f"{lower:,} lower"
    better, worse = (higher, lower) if direction == "higher" else (lower, higher)
    return f"{better:,}", f"{worse:,}"


def _newly(direction: str, right: int, wrong: int) -> tuple[str, str]:
    return (ABSENT, ABSENT) if direction == "neither" else (f"{right:,}", f"{wrong:,}")
