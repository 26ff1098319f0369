"""Results of comparisons: frozen values, shown as text, tables and pages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from hallujudge.metrics.framework.columns_and_scores import Direction

from ..report.report_text import ABSENT, interval_heading, show_number, show_range
from ..report.table_pages import Grid, Page, Shown, show_p, values_of
from .named_runs import RunLabel, notes_of_row, sources_of

Finding: TypeAlias = Literal["better", "worse", "higher", "lower", "none"]
"""What a test shows of the second run; ``none`` shows neither a difference nor equality."""

# Columns of the machine-readable formats.
_KEYS = (
    "first", "second", "score", "direction", "first_value", "second_value", "difference",
    "ci_low", "ci_high", "p", "p_corrected", "finding", "clusters", "changed", "items",
)  # fmt: skip
_CORRECTED_KEYS = (
    "score", "direction", "first", "second", "difference", "ci_low", "ci_high", "finding",
)  # fmt: skip
_CHANGES_KEYS = ("score", "direction", "higher", "lower", "same", "newly_right", "newly_wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Shown):
    """Runs compared with the first of them."""

    schema = "comparison"

    metric: str
    """The metric's name."""
    variant: str
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

    def page(self) -> Page:
        """Return the comparison as tables and sentences."""
        rows = [(pair, each) for pair in self.pairs for each in pair.differences]
        labels = {run.name: run for run in self.runs}
        single = len(self.pairs) == 1
        names = (self.pairs[0].first, self.pairs[0].second) if single else ("first", "second")
        differences = Grid(
            title=f"Differences: {_subject(self.pairs)}",
            headings=(
                *(() if single else ("run",)),
                *_headings(names, self.confidence),
                "p",
                "p (Holm)",
                f"{names[1] if single else 'run'} is",
            ),
            rows=tuple(_shown(pair, each, single=single) for pair, each in rows),
            keys=_KEYS,
            values=tuple(
                # The fields of ScoreDifference have the order of _KEYS.
                (pair.first, pair.second, *asdict(each).values(), pair.coverage.compared)
                for pair, each in rows
            ),
            # The finding says more than these, which a narrow terminal leaves out first.
            spare=("better end", "p", "first", "second"),
            notes=tuple(notes_of_row((labels[p.first], labels[p.second])) for p, _ in rows),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCoverage:
    """Which items two runs have in common. Only items that are scored in both are compared."""

    compared: int
    """Items that are scored in both runs."""
    unscored_first: int
    """Items of both runs that are unscored in the first run only."""
    unscored_second: int
    """Items of both runs that are unscored in the second run only."""
    unscored_both: int
    """Items that are unscored in both runs."""
    only_first: int
    """Items that the second run does not have."""
    only_second: int
    """Items that the first run does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDifference:
    """The difference of a score between two runs, over the items that are scored in both."""

    score: str
    """The score's name."""
    direction: Direction
    """Which end of the range is better."""
    first: float | None
    """The score of the first run; None if undefined."""
    second: float | None
    """The score of the second run."""
    difference: float | None
    """Second minus first."""
    ci_low: float | None
    """Lower end of the difference's interval; None without an interval."""
    ci_high: float | None
    """Upper end of the interval."""
    p: float | None
    """Two-sided p-value of the permutation test; None without a test."""
    p_corrected: float | None
    """The p-value after Holm's correction for all tests of the comparison."""
    finding: Finding
    """What the corrected p-value shows of the second run."""
    clusters: int
    """How many clusters (images or videos) count in the score."""
    changed: int
    """How many of them have other statistics in the second run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedDifference:
    """The difference of a score that human labels correct in both runs."""

    score: str
    """The score's name."""
    direction: Direction
    """Which end of the range is better."""
    first: float
    """The corrected score of the first run, over all its items."""
    second: float
    """The corrected score of the second run."""
    difference: float
    """Second minus first."""
    ci_low: float
    """Lower end of the difference's interval."""
    ci_high: float
    """Upper end of the interval."""
    labels: tuple[int, int]
    """Labels of the first and of the second run."""
    finding: Finding
    """What the interval shows of the second run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChanges:
    """How many items have another score of their own in the second run."""

    score: str
    """The score's name."""
    direction: Direction
    """Which end of the range is better."""
    higher: int
    """Items with a higher score in the second run."""
    lower: int
    """Items with a lower score in the second run."""
    same: int
    """Items with the same score in both."""
    newly_wrong: int
    """Items with the best possible score in the first run and another in the second."""
    newly_right: int
    """Items with the best possible score in the second run and another in the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two runs, and how the second differs from the first."""

    first: str
    """Name of the first run."""
    second: str
    """Name of the second run."""
    coverage: PairCoverage
    """Which items are compared."""
    differences: tuple[ScoreDifference, ...]
    """The differences of the scores."""
    changes: tuple[ScoreChanges, ...]
    """How single items changed, for scores that an item has of its own."""
    changed_items: int
    """How many compared items have other statistics in the second run."""
    corrected: tuple[CorrectedDifference, ...] = ()
    """Differences of scores corrected by human labels, if both runs are calibrated."""

    def __getitem__(self, score: str) -> ScoreDifference:
        """Return the difference of a score.

        Raises:
            KeyError: No score has that name.
        """
        return {each.score: each for each in self.differences}[score]


def _corrected(pair: Pair, confidence: float) -> Grid:
    """Return the differences of scores that human labels correct."""
    return Grid(
        title=f"Corrected by human labels: {pair.second} against {pair.first}",
        headings=(*_headings((pair.first, pair.second), confidence), "labels", f"{pair.second} is"),
        rows=tuple(
            (
                *_cells(each),
                f"{each.labels[0]:,} and {each.labels[1]:,}",
                _found(each.finding),
            )
            for each in pair.corrected
        ),
        keys=_CORRECTED_KEYS,
        values=values_of(pair.corrected, _CORRECTED_KEYS),
    )


def _headings(names: tuple[str, str], confidence: float) -> tuple[str, ...]:
    """Return the headings over :func:`_cells`."""
    return ("score", "better end", *names, "difference", interval_heading(confidence))


def _cells(each: ScoreDifference | CorrectedDifference) -> tuple[str, ...]:
    """Return what each difference shows of its score."""
    return (
        each.score,
        better_end(each.direction),
        show_number(each.first),
        show_number(each.second),
        show_number(each.difference, signed=True),
        show_range(each.ci_low, each.ci_high, signed=True),
    )


def _found(finding: Finding) -> str:
    return "not told apart" if finding == "none" else finding


def better_end(direction: Direction) -> str:
    """Return which end of a score is better; a dash if neither is."""
    return ABSENT if direction == "neither" else direction


def _subject(pairs: tuple[Pair, ...]) -> str:
    others = ", ".join(pair.second for pair in pairs)
    return f"{others} against {pairs[0].first}"


def _shown(pair: Pair, each: ScoreDifference, *, single: bool) -> tuple[str, ...]:
    return (
        *(() if single else (pair.second,)),
        *_cells(each),
        show_p(each.p),
        show_p(each.p_corrected),
        _found(each.finding),
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
        keys=_CHANGES_KEYS,
        values=values_of(pair.changes, _CHANGES_KEYS),
    )


def _better_worse(direction: str, higher: int, lower: int) -> tuple[str, str]:
    # Without a better end, more is neither better nor worse.
    if direction == "neither":
        return f"{higher:,} higher", f"{lower:,} lower"
    better, worse = (higher, lower) if direction == "higher" else (lower, higher)
    return f"{better:,}", f"{worse:,}"


def _newly(direction: str, right: int, wrong: int) -> tuple[str, str]:
    return (ABSENT, ABSENT) if direction == "neither" else (f"{right:,}", f"{wrong:,}")
