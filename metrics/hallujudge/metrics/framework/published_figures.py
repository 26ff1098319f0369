"""Figures that papers print for a metric, to compare a run with.

A family's rows are in ``metrics/published/FAMILY.csv``: a name, the model, the paper and table, and
a column for each score, empty where the table has none.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from .metric import Metric

_PACKAGE = "hallujudge.metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """A row of a paper's table."""

    name: str
    """Name of the row, such as ``llava-random``; unique for a metric."""
    model: str
    """The model, as the paper writes it."""
    source: str
    """Paper, table and setting."""
    scores: Mapping[str, float]
    """The scores that the table has, as fractions of 1."""


def published_rows(metric: type[Metric]) -> tuple[PublishedRow, ...]:
    """Return the rows that papers print of a metric, or none without a table.

    Args:
        metric: The metric.
    """
    # A metric of another package has no table here, whatever its module is called.
    module = metric.__module__.removeprefix(f"{_PACKAGE}.")
    if module == metric.__module__:
        return ()
    file = resources.files(_PACKAGE) / "published" / f"{module.partition('.')[0]}.csv"
    if not file.is_file():
        return ()
    names = {score.name for score in metric.score_definitions}
    lines = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    rows = (_row(line, names) for line in lines)
    return tuple(row for row in rows if row.scores)


def _row(line: Mapping[str, str], names: set[str]) -> PublishedRow:
    return PublishedRow(
        name=line["name"],
        model=line["model"],
        source=line["source"],
        scores={key: float(value) for key, value in line.items() if key in names and value},
    )
