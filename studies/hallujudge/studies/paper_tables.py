"""The paper's table: models by scores, crossed by any keys, with the best value marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hallujudge.metrics import Score, ScoreDefinition
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.intervals import FEW_CLUSTERS
from hallujudge.metrics.framework.tally import MISSING, GroupCodes
from hallujudge.sdk.archives.json_files import named
from hallujudge.sdk.comparison.compared_runs import (
    CompareOptions,
    RunData,
    checked_scores,
    metrics_of,
    read_runs,
)
from hallujudge.sdk.comparison.differences import data_notes, tested_pairs
from hallujudge.sdk.comparison.item_pairs import PairedRuns
from hallujudge.sdk.comparison.named_runs import (
    METRIC,
    MODEL,
    RunSource,
    keys_of,
    notes_of_runs,
    renamed_models,
    run_name,
    run_names,
)
from hallujudge.sdk.comparison.table_cells import (
    BEST,
    SCORE,
    Entry,
    TableCell,
    TableLayout,
    Tested,
    best_of,
    different_sizes,
    differing_unparsed_rates,
    rivals_of,
    shared_signatures,
    table_cells,
    table_grid,
)
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.report.report_text import counted
from hallujudge.sdk.report.table_pages import Page, Shown
from hallujudge.sdk.runs.manifest import OVERVIEW

from .leaderboards import ranking_scores, runs_of

_Key = tuple[str, ...]
# A run, and the values of its own keys.
_Labelled = tuple[RunData, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable(Shown):
    """Runs as the table of a paper."""

    schema = "paper-table"

    rows: _Key
    """Keys of the rows."""
    columns: _Key
    """Keys of the columns."""
    cells: tuple[TableCell, ...]
    runs: Mapping[str, str]
    """Name of each run -> its signature."""
    tests: int
    """How many tests Holm's correction is for."""
    confidence: float
    """Confidence level of the intervals; 1 minus the level of the tests."""
    method: str
    """How intervals and p-values were made."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""

    def page(self) -> Page:
        """Return the table and what its marks mean."""
        title = f"{', '.join(self.rows)} by {', '.join(self.columns)}"
        if SCORE not in (*self.rows, *self.columns):
            title = f"{', '.join(dict.fromkeys(cell.score for cell in self.cells))}: {title}"
        return Page(
            title="Table",
            grids=(table_grid(title, self.cells, self.rows, self.columns),),
            sentences=tuple(self._sentences()),
            notes=self.notes,
            sources={**self.runs, **({"method": self.method} if self.tests else {})},
        )

    def narrow_page(self) -> Page:
        """Return the same for a terminal: of columns for several metrics, a table for each."""
        whole = self.page()
        metrics = dict.fromkeys(cell.keys.get(METRIC, "") for cell in self.cells)
        if METRIC not in self.columns or len(metrics) < 2:
            return whole
        of = {m: [cell for cell in self.cells if cell.keys[METRIC] == m] for m in metrics}
        grids = [table_grid(m, cells, self.rows, self.columns) for m, cells in of.items()]
        return replace(whole, grids=tuple(grids))

    def _sentences(self) -> Iterator[str]:
        if any(cell.best for cell in self.cells):
            yield BEST
        if self.tests:
            yield (
                "* differs from the best: p (Holm) of the paired permutation test, corrected for "
                f"{counted(self.tests, 'test')}, is at most {1 - self.confidence:.4g}."
            )


def paper_table(
    *runs: RunSource, layout: TableLayout | None = None, options: CompareOptions | None = None
) -> PaperTable:
    """Put the scores of runs into one table, without judging anything again.

    Each value is that of the run's own report. In each column, the models are compared with the
    best one over the items that both have scored; p-values are corrected by Holm's method.

    Args:
        runs: Folders of runs of any metrics, or reports that hold their items; or the one folder
            that ``hallujudge score all`` wrote.
        layout: What the table shows.
        options: How runs are compared. Names are models, or keys with values: ``llava``, or
            ``model=llava,split=random``.

    Raises:
        InvalidInputError: An option is wrong, a key is unknown, or two values have one cell.
        ArchiveError: A folder does not hold a complete run.
    """
    layout, options = layout or TableLayout(), options or CompareOptions()
    settings = options.settings()
    layout.check()
    sources, labels = _labelled(runs, options)
    layout = _with_metric(layout, {label[METRIC] for label in labels})
    data, notes = _read(sources, labels, options)
    labelled = list(zip(data, labels, strict=True))
    shown = (*layout.rows, *layout.columns)
    _refuse_unknown(shown, data, labels, options)
    ranking = {} if options.scores or SCORE in shown else _ranking(data, options)
    if options.scores and SCORE in shown:
        # Models that could be parsed in part only may look good in the chosen scores.
        unparsed = _unparsed_rates(data)
        options = replace(options, scores=tuple(dict.fromkeys((*options.scores, *unparsed))))
    entries = [
        entry for run, label in labelled for entry in _entries(run, label, shown, options, ranking)
    ]
    tested, untested = _tested(entries, options) if layout.tests else ({}, ())
    return PaperTable(
        rows=tuple(layout.rows),
        columns=tuple(layout.columns),
        cells=tuple(table_cells(entries, layout, tested)),
        runs=shared_signatures(
            (label[METRIC], run_name(label), run.label.signature) for run, label in labelled
        ),
        tests=len(tested),
        confidence=settings.confidence,
        method=settings.text,
        notes=(
            *notes,
            *untested,
            *different_sizes(
                (label[METRIC], run_name(label), run.label.items) for run, label in labelled
            ),
            *_unscored(labelled),
            *_own_notes(labelled),
        ),
    )


def _labelled(
    runs: Sequence[RunSource], options: CompareOptions
) -> tuple[list[RunSource], list[dict[str, str]]]:
    """Return the runs, each with the values of its own keys."""
    only = runs[0] if len(runs) == 1 else None
    if isinstance(only, (str, Path)) and (Path(only) / OVERVIEW).exists():
        named = [
            (folder, {MODEL: model, "task": name})
            for name, models in runs_of(Path(only), options.model_names).items()
            for model, folder in models.items()
        ]
        sources: list[RunSource] = [folder for folder, _ in named]
        labels = [label for _, label in named]
    else:
        sources = list(runs)
        # Runs of several metrics may be of one model, so that names may be equal.
        if options.names and len(options.names) != len(sources):
            raise InvalidInputError(
                f"{counted(len(options.names), 'name')} for {counted(len(sources), 'run')}; give "
                "one name for each run"
            )
        labels = [keys_of(name) for name in options.names or run_names(sources, ())]
        models = renamed_models([label[MODEL] for label in labels], options.model_names)
        labels = [label | {MODEL: models[label[MODEL]]} for label in labels]
    keys = {key for label in labels for key in label}
    if lacking := [label for label in labels if label.keys() != keys]:
        key = next(iter(sorted(keys - lacking[0].keys())))
        raise InvalidInputError(
            f"the run {run_name(lacking[0])!r:.80} has no value of the key {key!r:.40}; give each "
            "run the same keys"
        )
    metrics = metrics_of(sources)
    return sources, [
        label | {METRIC: metric} for label, metric in zip(labels, metrics, strict=True)
    ]


def _with_metric(layout: TableLayout, metrics: set[str]) -> TableLayout:
    """Return the layout with the metric before the scores if there are several."""
    # Several metrics may have scores of one name, such as accuracy, which can't share a column.
    if len(metrics) == 1 or METRIC in (*layout.rows, *layout.columns):
        return layout
    return replace(layout, columns=(METRIC, *layout.columns))


def _read(
    sources: Sequence[RunSource], labels: Sequence[Mapping[str, str]], options: CompareOptions
) -> tuple[list[RunData], tuple[str, ...]]:
    """Return the items of each run; those of runs that are compared are paired.

    Runs that can't be compared are read alone, with a note.
    """
    families: dict[_Key, list[int]] = {}
    for place, label in enumerate(labels):
        # Runs that differ in the model alone are rivals in the table, and must be comparable.
        families.setdefault(tuple(v for k, v in label.items() if k != MODEL), []).append(place)
    found: dict[int, RunData] = {}
    notes: list[str] = []
    for places in families.values():
        names = [run_name(labels[place]) for place in places]
        given = [sources[place] for place in places]
        own = replace(options, names=names, model_names={})
        try:
            data = read_runs(given, own, least=1)
            notes += data_notes(data, own)
        except InvalidInputError as err:
            alone = [
                read_runs([each], replace(own, names=[name]), least=1)[0]
                for each, name in zip(given, names, strict=True)
            ]
            data = tuple(replace(run, comparable=False) for run in alone)
            notes.append(f"not tested: {err}")
        found |= dict(zip(places, data, strict=True))
    return [found[place] for place in range(len(sources))], tuple(notes)


def _unparsed_rates(data: Sequence[RunData]) -> Iterator[str]:
    """Yield the rates of unparsed answers that differ between the runs of a metric."""
    for each in _by_metric(data).values():
        yield from differing_unparsed_rates(each[0].metric, [run.original for run in each])


def _by_metric(data: Sequence[RunData]) -> dict[str, list[RunData]]:
    runs: dict[str, list[RunData]] = {}
    for run in data:
        runs.setdefault(run.metric.name, []).append(run)
    return runs


def _ranking(data: Sequence[RunData], options: CompareOptions) -> dict[str, str]:
    """Return metric -> the first of the scores that rank models that all of its runs have."""
    found = {}
    for metric, each in _by_metric(data).items():
        # The last one is taken whatever its value, so that a single one needs no report.
        *others, last = ranking_scores(each[0].metric)
        reports = [run.report(options.confidence) for run in each] if others else []
        known = (
            score
            for score in others
            if all(report.scores[score.name].value is not None for report in reports)
        )
        found[metric] = next(known, last).name
    return found


def _entries(
    run: RunData,
    label: Mapping[str, str],
    shown: Sequence[str],
    options: CompareOptions,
    ranking: Mapping[str, str],
) -> Iterator[Entry]:
    """Yield the scores of a run, for each group of the fields that the table shows."""
    wanted = [ranking[run.metric.name]] if ranking else options.scores
    definitions = {score.name: score for score in _known(run, wanted)}
    fields = [key for key in shown if key not in label and key != SCORE]
    for group, data, scores in _parts(run, fields, options.confidence):
        for name, definition in definitions.items():
            if name in scores:
                keys = {**label, **group, SCORE: name}
                yield Entry(
                    keys=keys,
                    score=scores[name],
                    definition=definition,
                    data=data,
                    notes=run.label.notes,
                )


def _known(run: RunData, wanted: Sequence[str]) -> tuple[ScoreDefinition, ...]:
    """Return the scores of a run that are wanted; all if none is."""
    known = {score.name for score in run.metric.scores}
    # Scores are named for all runs, whose metrics need not have each of them.
    found = [name for name in wanted if name in known]
    return checked_scores(run.metric, found) if found or not wanted else ()


def _parts(
    run: RunData, fields: Sequence[str], confidence: float
) -> Iterator[tuple[dict[str, str], RunData, Mapping[str, Score]]]:
    """Yield each group of several fields with its items and scores."""
    if len(fields) > 1:
        for value, part in _by_field(run, fields[0]):
            for group, data, scores in _parts(part, fields[1:], confidence):
                yield {fields[0]: value, **group}, data, scores
        return
    # Groups are scored as those of a report, where a repeated item may count once.
    report = run.report(confidence, fields)
    if not fields:
        yield {}, run, report.scores
        return
    parts = dict(_by_field(run, fields[0]))
    for value, scores in report.groups.get(fields[0], {}).items():
        yield {fields[0]: value}, parts[value], scores


def _by_field(run: RunData, key: str) -> Iterator[tuple[str, RunData]]:
    """Yield the values of a field with their items; an item may list several values."""
    codes = GroupCodes(split=key in run.metric.split_fields)
    groups: dict[str, list[str]] = {}
    for item_id, result in run.results.items():
        for value in codes.parts(result.fields.get(key, MISSING)):
            groups.setdefault(value, []).append(item_id)
    for value in sorted(groups):
        yield value, replace(run, results={each: run.results[each] for each in groups[value]})


def _refuse_unknown(
    shown: Sequence[str],
    data: Sequence[RunData],
    labels: Sequence[Mapping[str, str]],
    options: CompareOptions,
) -> None:
    """Refuse keys that neither a run nor an item has, and scores that no metric has."""
    fields = {name for run in data for result in run.results.values() for name in result.fields}
    keys = dict.fromkeys((*labels[0], SCORE, *sorted(fields)))
    if unknown := [key for key in shown if key not in keys]:
        raise InvalidInputError(
            f"no run and no item has the key {unknown[0]!r:.40}; known are {named(list(keys))}. "
            "Score with the key in group_by=…, or name the runs key=value"
        )
    scores = dict.fromkeys(score.name for run in data for score in run.metric.scores)
    if unknown := [name for name in options.scores if name not in scores]:
        raise InvalidInputError(
            f"no run has a score {unknown[0]!r:.40}; {choose_from(unknown[0], scores)}"
        )


def _tested(
    entries: Sequence[Entry], options: CompareOptions
) -> tuple[dict[int, Tested], tuple[str, ...]]:
    """Return the test of each entry against the best of its rivals, by its place, and notes."""
    # A pair of runs is joined once for all scores whose best it has.
    # By identity, since runs can't be hashed; entries keep them alive.
    pairs: dict[tuple[int, int], tuple[PairedRuns, dict[str, int]]] = {}
    problems: dict[str, None] = {}
    for best, place in _against_best(entries):
        one, two = entries[best].data, entries[place].data
        if one is None or two is None or not (one.comparable and two.comparable):
            continue
        try:
            pair = pairs.get((id(one), id(two))) or (PairedRuns.of(one, two), {})
            pair[0].coverage()
        except InvalidInputError as err:
            problems[f"not tested: {err}"] = None
            continue
        pairs.setdefault((id(one), id(two)), pair)[1][entries[place].definition.name] = place
    found = tested_pairs(
        [(joined, [entries[at].definition for at in of.values()]) for joined, of in pairs.values()],
        options.settings(),
    )
    fewest = min((d.clusters for pair in found for d in pair.differences), default=FEW_CLUSTERS)
    if fewest < FEW_CLUSTERS:
        problems[
            f"Tests are unreliable below {FEW_CLUSTERS} clusters (images or videos); the "
            f"fewest of a test is {fewest}."
        ] = None
    return {
        of[each.score]: Tested(each.p, each.p_corrected, each.finding != "none")
        for pair, (_, of) in zip(found, pairs.values(), strict=True)
        for each in pair.differences
        if each.p is not None and each.p_corrected is not None
    }, tuple(problems)


def _against_best(entries: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Yield the places of the best of some rivals and of each other one that can be tested."""
    for rivals in rivals_of(entries):
        # Of several equal best ones, the first stands for them.
        for best in best_of(entries, rivals)[:1]:
            for place in rivals:
                other = entries[place]
                tested = not other.definition.largest_of and other.score.value is not None
                if place != best and tested:
                    yield best, place


def _own_notes(runs: Sequence[_Labelled]) -> Iterable[str]:
    """Return what the runs' reports note, after the metric if there are several."""
    several = len({label[METRIC] for _, label in runs}) > 1
    return notes_of_runs(
        (f"{label[METRIC]} of {run.name}" if several else run.name, run.label.notes)
        for run, label in runs
    )


def _unscored(runs: Sequence[_Labelled]) -> Iterable[str]:
    for run, label in runs:
        if unscored := run.label.items - run.label.scored:
            yield (
                f"{run_name(label)}: {unscored:,} of {counted(run.label.items, 'item')} unscored; "
                "they count in no value"
            )
