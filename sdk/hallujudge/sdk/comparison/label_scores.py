"""Scores of the same answers by several sets of labels: made, as tables, and in what order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hallujudge.metrics.families import benchmark_named
from hallujudge.metrics.framework.json_values import file_text

from ..archives.label_sets import (
    DROPPED,
    LabelChanges,
    files_of_labels,
    label_changes,
)
from ..archives.stored_files import read_stored
from ..report.analysis_tables import AnalysisTable
from ..report.table_pages import Cell, Page
from ..runs.manifest import LABELS
from ..runs.run_inputs import PreparedRun

if TYPE_CHECKING:
    from hallujudge.metrics import Report, Score

    from ..client import Client
    from ..runs.score_run import ScoreRun
    from .compared_runs import RunData

# F1 first, which POPE's paper compares models by; then in the order of its Table 3.
SCORES = ("f1", "accuracy", "precision", "recall", "yes_ratio")
"""The scores that are shown."""
_CATEGORY = "category"

Values: TypeAlias = Mapping[str, float | None]
"""Score -> value; None if it is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSetScores:
    """The scores by one set of labels."""

    labels: str
    """Name of the set."""
    questions: int
    """How many questions it has labels of."""
    scores: Values
    """The scores over all of them."""
    groups: Mapping[str, Values]
    """Split -> the scores over its questions; empty if there is only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScores:
    """Scores of the same answers by several sets of labels."""

    sets: tuple[LabelSetScores, ...]
    """The sets, the original one first."""
    changes: tuple[LabelChanges, ...]
    """What differs in the last set from the first one, by split."""

    def to_text(self) -> str:
        """Return the content of ``labels.json``."""
        return file_text("label-scores", asdict(self))

    @classmethod
    def stored(cls, folder: Path) -> LabelScores | None:
        """Return those in the folder of a run; None without any.

        Raises:
            ArchiveError: The file is damaged.
        """
        path = folder / LABELS
        if not path.exists():
            return None
        return read_stored(path, cls, "label-scores", "scores by labels", "score again")


def score_label_sets(client: Client, run: ScoreRun) -> LabelScores | None:
    """Score the answers of a run by every set of labels among its references.

    Args:
        client: Scores them.
        run: The run.

    Returns:
        The scores; None if the references have one set.

    Raises:
        HallujudgeError: A set can't be used.
    """
    declared = benchmark_named(run.metric)
    # RePOPE's files lie beside POPE's: the same questions, and other labels.
    held = {} if declared is None else files_of_labels(declared, run.references)
    if declared is None or len(held) < 2:
        return None
    reports = {
        name: _scored(client, replace(run, references=files)) for name, files in held.items()
    }
    # Changes are those from the original labels to the last ones; sets in between have scores only.
    first, *_, last = held.values()
    splits = declared.split_files.field if declared.split_files else ""
    return LabelScores(
        sets=tuple(
            LabelSetScores(
                labels=name,
                questions=report.coverage.items,
                scores=_values(report.scores),
                groups={key: _values(of) for key, of in report.groups.get(splits, {}).items()},
            )
            for name, report in reports.items()
        ),
        changes=label_changes(declared, first, last),
    )


def _scored(client: Client, run: ScoreRun) -> Report:
    # Without a folder, so that the run's own results there are left alone.
    prepared = PreparedRun.of(replace(run, folder=None, resume=False))
    return client.score_items(prepared.spec, prepared.items)


def _values(scores: Mapping[str, Score]) -> Values:
    return {name: score.value for name, score in scores.items()}


def order_notes(runs: Sequence[RunData], scores: Sequence[str]) -> Iterator[str]:
    """Yield whether the order of runs is another one by other labels.

    Args:
        runs: The runs that are compared.
        scores: The scores, without those that have no better end.
    """
    held = [
        LabelScores.stored(Path(run.label.source)) if run.label.source else None for run in runs
    ]
    known = [(run.label.name, found.sets) for run, found in zip(runs, held, strict=True) if found]
    names = [tuple(each.labels for each in sets) for _, sets in known]
    # The order of some of the runs, or by unlike sets of labels, says nothing about that of all.
    if len(known) < 2 or len(known) < len(runs) or len(set(names)) > 1:
        return
    changed = [text for score in scores if (text := _changed_order(score, known))]
    labels = " and ".join(names[0])
    if changed:
        yield f"The order of the runs differs by the labels of {labels}: {'; '.join(changed)}."
    else:
        yield f"The order of the runs is the same by the labels of {labels}, for each score."


def _changed_order(score: str, runs: Sequence[tuple[str, Sequence[LabelSetScores]]]) -> str:
    """Return the values by each set of labels, if the order by them differs; empty otherwise."""
    by_set = [
        [(name, each[at].scores.get(score)) for name, each in runs] for at in range(len(runs[0][1]))
    ]
    known = [[(name, value) for name, value in row if value is not None] for row in by_set]
    if any(len(row) < len(runs) for row in known):
        return ""
    orders = [_order([value for _, value in row]) for row in known]
    if all(one == other for one, other in pairwise(orders)):
        return ""
    shown = [
        f"{sets.labels} " + ", ".join(f"{name} {value:.4f}" for name, value in row)
        for sets, row in zip(runs[0][1], known, strict=True)
    ]
    return f"{score}: {' against '.join(shown)}"


def _order(values: Sequence[float]) -> list[int]:
    """Return how many values are above each; equal ones have the same place."""
    # Equal values share a place, so that a tie is not taken for another order.
    return [sum(other > value for other in values) for value in values]


def label_page(found: LabelScores) -> Page:
    """Return the scores of one run by several sets of labels, and how many labels differ."""
    tables = (label_table(list(label_rows(found))), change_tables(found)[0])
    return Page(title="Labels", grids=tuple(table.grid() for table in tables))


def label_table(rows: Sequence[Mapping[str, Cell]]) -> AnalysisTable:
    """Return scores by several sets of labels as a table."""
    source = "Neuhaus and Hein (RePOPE): the same answers by several sets of labels"
    return AnalysisTable(name="label_scores", source=source, rows=tuple(filled(rows)))


def label_rows(found: LabelScores) -> Iterator[dict[str, Cell]]:
    """Yield the scores of each set of labels, by category and over all."""
    for each in found.sets:
        # A single category has the scores of all, which would be shown twice.
        parts = each.groups if len(each.groups) > 1 else {}
        for category, scores in (*parts.items(), ("all", each.scores)):
            shown = {name: scores.get(name) for name in (*SCORES, "unparsed_rate")}
            yield {"labels": each.labels, _CATEGORY: category, **shown}


def change_tables(found: LabelScores) -> list[AnalysisTable]:
    """Return how many labels differ by category, and the questions whose labels do."""
    counts: list[Mapping[str, Cell]] = [
        {
            _CATEGORY: each.split or "all",
            "before": each.before,
            "after": each.after,
            "kept": each.kept,
            "yes_to_no": each.count("yes", "no"),
            "no_to_yes": each.count("no", "yes"),
            "dropped_yes": each.count("yes", DROPPED),
            "dropped_no": each.count("no", DROPPED),
            "text_differs": each.text_differs,
        }
        for each in found.changes
    ]
    changed: list[Mapping[str, Cell]] = [
        {
            _CATEGORY: each.split or "all",
            "id": each.id,
            "image": each.image,
            "question": each.question,
            "before": each.before or "dropped",
            "after": each.after or "dropped",
        }
        for part in found.changes
        for each in part.changed
    ]
    names = f"{found.sets[0].labels} to {found.sets[-1].labels}"
    source = f"Neuhaus and Hein (RePOPE): labels from {names}"
    return [
        AnalysisTable(name="label_changes", source=source, rows=tuple(counts)),
        AnalysisTable(name="changed_labels", source=source, rows=tuple(changed)),
    ]


def filled(rows: Sequence[Mapping[str, Cell]]) -> Iterator[Mapping[str, Cell]]:
    """Yield rows that all have the keys of all, in the order of their first appearance."""
    keys = dict.fromkeys(key for row in rows for key in row)
    for row in rows:
        yield {key: row.get(key) for key in keys}
