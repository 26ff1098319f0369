"""Scores of the same answers by several sets of labels as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..archives.label_sets import DROPPED
from ..report.analysis_tables import AnalysisTable
from ..report.table_pages import Cell, Page
from .label_scores import LabelScores

# F1 first, which POPE's paper compares models by; then in the order of its Table 3.
SCORES = ("f1", "accuracy", "precision", "recall", "yes_ratio")
"""The scores that are shown."""
_CATEGORY = "category"


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
