"""POPE's table as VLMEvalKit prints it, written plainly from its definition.

A question lists its categories, separated by commas. The table is over rows: a question has one row
for each of its categories, in the overall line too. Yes is the positive class. Any other answer,
unparsed ones included, is negative in F1, precision and recall. The accuracy requires the right
word. Values are percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One question of the archive."""

    category: str
    answer: str
    said: str
    """``yes``, ``no`` or ``unknown``."""


def table(questions: Sequence[Row]) -> dict[str, dict[str, float]]:
    rows = [
        Row(category, question.answer.lower(), question.said)
        for question in questions
        for category in question.category.split(",")
    ]
    lines = {"Overall": _line(rows)}
    for category in sorted({row.category for row in rows}):
        lines[category] = _line([row for row in rows if row.category == category])
    return lines


def _line(rows: Sequence[Row]) -> dict[str, float]:
    tp = sum(row.answer == "yes" and row.said == "yes" for row in rows)
    fp = sum(row.answer != "yes" and row.said == "yes" for row in rows)
    fn = sum(row.answer == "yes" and row.said != "yes" for row in rows)
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    both = precision + recall
    return {
        "Overall": 100 * (2 * precision * recall / both if both else 0.0),
        "acc": 100 * sum(row.answer == row.said for row in rows) / len(rows),
        "precision": 100 * precision,
        "recall": 100 * recall,
    }
