"""What papers print: rows of their tables, and their names of scores."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources

from .metric import Metric

_PACKAGE = "hallujudge.metrics"
_NAMES = "printed_names.csv"


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
    judge: str = ""
    """Who judged, as parts of the judge's name with slashes between; empty if it is not named."""


def published_rows(metric: type[Metric]) -> tuple[PublishedRow, ...]:
    """Return the rows that papers print of a metric, to compare a run with; none without a table.

    A family's rows are in ``metrics/published/FAMILY.csv``: a name, the model, the paper and table,
    the judge if there is one, and a column for each score, empty where the table has none.

    Args:
        metric: The metric.
    """
    # A metric of another package has no table here, whatever its module is called.
    module = metric.__module__.removeprefix(f"{_PACKAGE}.")
    if module == metric.__module__:
        return ()
    names = {score.name for score in metric.score_definitions}
    rows = (_row(line, names) for line in _lines(f"{module.partition('.')[0]}.csv"))
    return tuple(row for row in rows if row.scores)


def printed_names(metric: type[Metric]) -> dict[str, str]:
    """Return score -> its name in the paper, and where that is printed, as far as papers name it.

    Args:
        metric: The metric.
    """
    return {
        line["score"]: line["printed"] for line in _lines(_NAMES) if line["metric"] == metric.name
    }


def _lines(name: str) -> Iterator[Mapping[str, str]]:
    file = resources.files(_PACKAGE) / "published" / name
    if file.is_file():
        yield from csv.DictReader(file.read_text(encoding="utf-8").splitlines())


def _row(line: Mapping[str, str], names: set[str]) -> PublishedRow:
    return PublishedRow(
        name=line["name"],
        model=line["model"],
        source=line["source"],
        judge=line.get("judge", ""),
        scores={key: float(value) for key, value in line.items() if key in names and value},
    )
