"""Ranks runs by a score and finds groups that tests can't tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from hallujudge.metrics import Outcome, ScoreDefinition
from hallujudge.metrics.framework.comparison import ComparisonSettings
from hallujudge.metrics.framework.intervals import FEW_CLUSTERS
from hallujudge.metrics.framework.significance import compact_letters

from ..errors import InvalidInputError
from .compare import corrected, data_notes, pair_of
from .gate import report_of
from .leaderboard_result import Leaderboard, LeaderboardRow, PairTest
from .options import CompareOptions, RunSource
from .pairing import PairedRuns, common_items
from .runs import RunData, checked_scores, read_runs
from .values import Pair

__all__ = ["leaderboard"]


def leaderboard(
    *runs: RunSource, score: str = "", options: CompareOptions | None = None
) -> Leaderboard:
    """Rank runs by a score, without judging anything again.

    All runs are ranked over the items that are scored in every one of them. Every pair is tested,
    and p-values are corrected by Holm's method for the number of pairs.

    Args:
        runs: Folders of runs, or reports that hold their items.
        score: The score's name; empty for the metric's first score with a better end.
        options: How runs are compared; its ``scores`` are not used.

    Raises:
        InvalidInputError: There are fewer than two runs, they were scored in different ways, the
            score is unknown or has no better end, or no item is scored in all runs.
        ArchiveError: A folder does not hold a complete run.
    """
    options = options or CompareOptions()
    settings = options.settings()
    data = read_runs(runs, options)
    chosen = _chosen(data[0], score)
    compared = _over_common_items(data, chosen)
    ranked = sorted(
        (
            (_row(run, each, chosen, options), each)
            for run, each in zip(data, compared, strict=True)
        ),
        key=lambda entry: entry[0].value * (-1 if chosen.direction == "higher" else 1),
    )
    rows = [row for row, _ in ranked]
    pairs = _pairs([each for _, each in ranked], chosen, settings)
    tests = tuple(_test(pair) for pair in pairs)
    return Leaderboard(
        metric=data[0].metric.name,
        variant=data[0].metric.variant,
        score=chosen.name,
        direction=chosen.direction,
        items=pairs[0].coverage.compared,
        runs=tuple(run.label for run in data),
        rows=_grouped(rows, tests, 1 - settings.confidence),
        tests=tests,
        confidence=settings.confidence,
        method=settings.text,
        notes=(*data_notes(data, options), *_notes(data, pairs)),
    )


def _chosen(run: RunData, name: str) -> ScoreDefinition:
    scores = checked_scores(run.metric, (name,) if name else ())
    directed = [score for score in scores if score.direction != "neither"]
    if not directed:
        raise InvalidInputError(
            f"{run.metric.name}'s {name} has no better end, so that runs can't be ranked by it; "
            "choose another score"
        )
    return directed[0]


def _over_common_items(runs: Sequence[RunData], score: ScoreDefinition) -> list[RunData]:
    """Return the runs over the items that all have.

    An item that is unscored in one run is unscored in all, unless the score is about such items.
    """
    common = common_items(runs)
    first = [replace(run, results={key: run.results[key] for key in common}) for run in runs]
    pairs = [PairedRuns.of(first[0], other) for other in first[1:]]
    if any(pair.about_unscored((score,)) for pair in pairs):
        return first
    shared = {
        key: result
        for key in common
        for run in runs
        if (result := run.results[key]).outcome is Outcome.UNSCORED
    }
    if len(shared) == len(common):
        raise InvalidInputError("no item is scored in all runs; see the coverage in report.json")
    return [replace(run, results={**run.results, **shared}) for run in first]


def _row(
    run: RunData, compared: RunData, score: ScoreDefinition, options: CompareOptions
) -> LeaderboardRow:
    found = report_of(compared, options.confidence).scores[score.name]
    if found.value is None:
        raise InvalidInputError(
            f"{score.name} of {run.name} is undefined over the items that all runs have; leave the "
            "run out, or choose another score"
        )
    return LeaderboardRow(
        rank=0,
        run=run.name,
        value=found.value,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        groups="",
        unscored=run.label.items - run.label.scored,
    )


def _pairs(
    runs: Sequence[RunData], score: ScoreDefinition, settings: ComparisonSettings
) -> tuple[Pair, ...]:
    if score.largest_of:
        raise InvalidInputError(
            f"{score.name} is the largest of several scores, for which there is no paired test; "
            "choose another score"
        )
    pairs = [
        pair_of(PairedRuns.of(first, second), (score,), settings)
        for first, second in combinations(runs, 2)
    ]
    return corrected(pairs, 1 - settings.confidence)


def _test(pair: Pair) -> PairTest:
    [found] = pair.differences
    assert found.difference is not None, "both scores are defined"
    assert found.p is not None, "scores without a test are refused"
    assert found.p_corrected is not None, "it was corrected"
    return PairTest(
        first=pair.first,
        second=pair.second,
        difference=found.difference,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p=found.p,
        p_corrected=found.p_corrected,
    )


def _grouped(
    rows: Sequence[LeaderboardRow], tests: Sequence[PairTest], level: float
) -> tuple[LeaderboardRow, ...]:
    """Return the rows with ranks and letters."""
    places = {row.run: place for place, row in enumerate(rows)}
    different = [(places[t.first], places[t.second]) for t in tests if t.p_corrected <= level]
    letters = compact_letters(len(rows), different)
    values = [row.value for row in rows]
    return tuple(
        replace(row, rank=values.index(row.value) + 1, groups=groups)
        for row, groups in zip(rows, letters, strict=True)
    )


def _notes(runs: Sequence[RunData], pairs: Sequence[Pair]) -> Iterator[str]:
    items = pairs[0].coverage.compared
    if most := max(run.label.items for run in runs) - items:
        yield (
            f"{most:,} items are not scored in every run and count for none; {items:,} are "
            "compared. Scores may differ from the reports."
        )
    fewest = min(pair.differences[0].clusters for pair in pairs)
    if fewest < FEW_CLUSTERS:
        yield (
            f"Intervals are unreliable below {FEW_CLUSTERS} clusters (images or videos); there are "
            f"{fewest}."
        )
