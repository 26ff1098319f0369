"""Ranks runs by a score and finds groups that tests can't tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, TypedDict

from hallujudge.metrics import Metric, Outcome, ScoreDefinition
from hallujudge.metrics.framework.comparison import ComparisonSettings, compact_letters
from hallujudge.metrics.framework.intervals import FEW_CLUSTERS
from hallujudge.sdk.archives.stored_files import read_stored
from hallujudge.sdk.comparison.compared_runs import (
    CompareOptions,
    RunData,
    checked_scores,
    read_runs,
)
from hallujudge.sdk.comparison.differences import data_notes, own_notes, tested_pairs
from hallujudge.sdk.comparison.item_pairs import PairedRuns, common_items
from hallujudge.sdk.comparison.named_runs import RunSource, renamed_models
from hallujudge.sdk.comparison.results import Pair
from hallujudge.sdk.comparison.table_cells import differing_unparsed_rates
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.runs.manifest import OVERVIEW

from .leaderboard_tables import Leaderboard, LeaderboardRow, Leaderboards, PairTest

# A run is in the folder MODEL/METRIC of the overview.
_RUN_PARTS = 2


def leaderboard(
    *runs: RunSource, score: str = "", options: CompareOptions | None = None
) -> Leaderboard:
    """Rank runs by a score, without judging anything again.

    All runs are ranked over the items that are scored in every one of them. Every pair is tested,
    and p-values are corrected by Holm's method for the number of pairs. Runs whose score is
    undefined are not ranked, and a note names them. Where that leaves no two runs, they are ranked
    by the metric's next score that is defined, unless a score is named.

    Args:
        runs: Folders of runs, or reports that hold their items.
        score: The score's name; empty for the one that ranks models by the metric's declaration.
        options: How runs are compared; its ``scores`` are not used.

    Raises:
        InvalidInputError: There are fewer than two runs, they were scored in different ways, the
            score is unknown, has no better end or is undefined, or no item is scored in all runs.
        ArchiveError: A folder does not hold a complete run.
    """
    options = options or CompareOptions()
    settings = options.settings()
    data = read_runs(runs, options)
    ranking = _ranking(data, score, options)
    chosen, rows = ranking.score, ranking.rows
    pairs = _pairs(ranking.runs, chosen, settings)
    tests = tuple(_test(pair) for pair in pairs)
    return Leaderboard(
        metric=data[0].metric.name,
        variant=data[0].metric.variant,
        score=chosen.name,
        direction=chosen.direction,
        # By now the runs share their items and, unless the score is about unscored ones, which of
        # them are scored: any pair has their number.
        items=pairs[0].coverage.compared,
        runs=tuple(run.label for run in data),
        rows=_grouped(rows, tests, 1 - settings.confidence),
        tests=tests,
        confidence=settings.confidence,
        method=settings.text,
        notes=(
            *data_notes(data, options),
            *ranking.notes,
            *_notes(ranking.runs, pairs),
            *own_notes(data),
        ),
        unparsed=_unparsed(data, chosen.name),
    )


def leaderboards(
    folder: str | Path, *, score: str = "", options: CompareOptions | None = None
) -> Leaderboards:
    """Rank the models of an overview by each of its metrics.

    Args:
        folder: The folder that ``hallujudge score all`` wrote.
        score: The score's name; empty for the one that each metric declares.
        options: How runs are compared. Names of runs are the models of the overview.

    Raises:
        InvalidInputError: No metric has several runs that can all be ranked together.
        ArchiveError: The folder does not hold an overview.
    """
    options = options or CompareOptions()
    boards: dict[str, Leaderboard] = {}
    left_out: list[str] = []
    for name, runs in runs_of(Path(folder), options.model_names).items():
        if len(runs) == 1:
            left_out.append(f"{name} has the run of {next(iter(runs))} alone")
            continue
        try:
            # The names are replaced already, and would not be found a second time.
            named = replace(options, names=options.names or tuple(runs), model_names={})
            boards[name] = leaderboard(*runs.values(), score=score, options=named)
        # A metric whose runs can't be ranked must not hide the boards of the others.
        except (InvalidInputError, ArchiveError) as err:
            left_out.append(f"{name}: {err}")
    if not boards:
        why = "; ".join(left_out) or "it has no runs"
        raise InvalidInputError(
            f"{folder}: no metric has several runs that can all be ranked together: {why}. To rank "
            "some runs of one metric, give their folders in place of this one"
        )
    return Leaderboards(boards=boards, left_out=tuple(left_out))


def runs_of(
    folder: Path, model_names: Mapping[str, str] | None = None
) -> dict[str, dict[str, Path]]:
    """Return name -> model -> folder of the runs of an overview, which may have been moved.

    Args:
        folder: The folder of the overview.
        model_names: Name of a model in the overview -> its name in tables.

    Raises:
        ArchiveError: The folder does not hold an overview.
        InvalidInputError: No model has a name that is replaced, or two runs get one name.
    """
    found: dict[str, dict[str, Path]] = {}
    advice = "give the folder that hallujudge score all wrote"
    overview = read_stored(folder / OVERVIEW, _Overview, "overview", "an overview", advice)
    names = renamed_models([run["model"] for run in overview["runs"]], model_names or {})
    for run in overview["runs"]:
        # Only the end of the path, since the folder of the overview may have been moved.
        place = Path(*Path(run["folder"]).parts[-_RUN_PARTS:])
        model, runs = names[run["model"]], found.setdefault(run["name"], {})
        if model in runs:
            raise InvalidInputError(
                f"{folder}: two runs of {run['name']} get the name {model!r:.80}, one of them of "
                f"the model {run['model']!r:.80}; give one of them another name"
            )
        runs[model] = folder / place
    return found


class _OverviewRun(TypedDict):
    """What a leaderboard needs of a run of ``score all``."""

    name: str
    model: str
    folder: str


class _Overview(TypedDict):
    """The same of all runs."""

    runs: list[_OverviewRun]


def ranking_scores(metric: Metric, name: str = "") -> tuple[ScoreDefinition, ...]:
    """Return the scores that rank runs: the named one, or those that the metric declares, in order.

    Raises:
        InvalidInputError: The score is unknown or has no better end.
    """
    scores = checked_scores(metric, (name,) if name else metric.ranked_by)
    if any(score.direction == "neither" for score in scores):
        raise InvalidInputError(
            f"{metric.name}'s {name} has no better end, so that runs can't be ranked by it; "
            "choose another score"
        )
    return scores


def _over_common_items(runs: Sequence[RunData], score: ScoreDefinition) -> list[RunData]:
    """Return the runs over the items that all have; none if no item is scored in all of them.

    An item that is unscored in one run is unscored in all, unless the score is about such items.
    """
    # An item that one run left out would make the others' scores incomparable.
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
    if not any(key not in shared and first[0].counts(key) for key in common):
        return []
    return [replace(run, results={**run.results, **shared}) for run in first]


class _Ranking(NamedTuple):
    """Runs that a score ranks."""

    score: ScoreDefinition
    rows: list[LeaderboardRow]
    """The runs by rank."""
    runs: list[RunData]
    """The same, over the items that all have."""
    notes: tuple[str, ...] = ()
    """What is not ranked, and why."""


def _ranking(data: Sequence[RunData], name: str, options: CompareOptions) -> _Ranking:
    """Rank runs by the named score; without a name, by the first one that two runs have.

    Raises:
        InvalidInputError: No two runs have a defined score.
    """
    metric = data[0].metric
    main, *declared = ranking_scores(metric, name)
    if (found := _ranked(data, main, options)) is not None:
        return found
    if not _over_common_items(data, main):
        raise InvalidInputError("no item is scored in all runs; see the coverage in report.json")
    # The largest of several scores has no paired test, which a leaderboard needs.
    rest = (s for s in metric.scores if s.direction != "neither" and not s.largest_of)
    others = (*declared, *(score for score in rest if score is not main))
    found = next(filter(None, (_ranked(data, each, options) for each in others)), None)
    undefined = f"{main.name} is undefined over the items that the runs have in common"
    if found is None:
        raise InvalidInputError(f"{undefined}, and so are all others; see the coverage of the runs")
    if name:
        raise InvalidInputError(f"{undefined}; rank by another score, such as {found.score.name}")
    note = f"{undefined}, so that {found.score.name} ranks them."
    return found._replace(notes=(note, *found.notes))


def _ranked(
    data: Sequence[RunData], score: ScoreDefinition, options: CompareOptions
) -> _Ranking | None:
    """Return the runs by rank; None if fewer than two have the score."""
    # Not strict: where no item is scored in all runs, there is nothing to zip.
    compared = zip(data, _over_common_items(data, score), strict=False)
    rows = [(_row(run, each, score, options), each) for run, each in compared]
    known = [(row, each) for row, each in rows if row is not None]
    if len(known) == len(data):
        sign = -1 if score.direction == "higher" else 1
        # The sort is stable: runs with equal scores keep the order in which they were given.
        known.sort(key=lambda entry: entry[0].value * sign)
        return _Ranking(score, [row for row, _ in known], [each for _, each in known])
    # Its own items say whether a run has the score; the common ones may be those of another run.
    own = [run for run in data if _row(run, run, score, options) is not None]
    if not 1 < len(own) < len(data) or (found := _ranked(own, score, options)) is None:
        return None
    out = [run.name for run in data if run not in own]
    notes = [f"not ranked: {each}, whose {score.name} is undefined." for each in out]
    return found._replace(notes=(*notes, *found.notes))


def _unparsed(data: Sequence[RunData], ranked_by: str) -> dict[str, dict[str, float | None]]:
    """Return the rates of unparsed answers that differ, other than the score that ranks."""
    names = differing_unparsed_rates(data[0].metric, [run.original for run in data])
    return {
        name: {run.name: run.original.scores[name].value for run in data}
        for name in names
        if name != ranked_by
    }


def _row(
    run: RunData, compared: RunData, score: ScoreDefinition, options: CompareOptions
) -> LeaderboardRow | None:
    """Return the row of a run; None if its score is undefined."""
    found = compared.report(options.confidence).scores[score.name]
    if found.value is None:
        return None
    return LeaderboardRow(
        # Ranks and letters depend on the other rows: _grouped sets them.
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
    pairs = [PairedRuns.of(first, second) for first, second in combinations(runs, 2)]
    return tested_pairs([(pair, (score,)) for pair in pairs], settings)


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
        # Runs with equal values share the better rank.
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
