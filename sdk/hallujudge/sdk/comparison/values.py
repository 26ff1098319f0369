"""Results of comparisons: plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hallujudge.metrics.framework.columns_and_scores import Direction

__all__ = [
    "CorrectedDifference",
    "Finding",
    "Pair",
    "PairCoverage",
    "RunLabel",
    "ScoreChanges",
    "ScoreDifference",
]

Finding: TypeAlias = Literal["better", "worse", "higher", "lower", "none"]
"""What a test shows of the second run; ``none`` shows neither a difference nor equality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLabel:
    """A run that is compared."""

    name: str
    """Name of the run."""
    source: str
    """Its folder; empty for a report in memory."""
    signature: str
    """Its signature."""
    items: int
    """How many items it has."""
    scored: int
    """How many of them are scored."""


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
        for difference in self.differences:
            if difference.score == score:
                return difference
        raise KeyError(score)
