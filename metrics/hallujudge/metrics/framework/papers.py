"""The papers that define our metrics: what each is, small examples, and what it prints.

``papers/NAME.toml`` has the fields of a ``Paper``: title, authors, names, year, link, perhaps
venue, and where, which is the section or the script that defines the scores. ``year`` is that of
the first version. A table ``metrics.METRIC`` has what is said of a benchmark of closed questions,
see :class:`MetricFacts`; its ``papers`` are names -> ``where``, which may be empty. A table
``examples.METRIC`` has a small archive of a metric that the paper defines, which we made up:
``files``, path -> text, in the layout of the metric's page, and the ``command`` that scores them.
Tests, benchmarks and ``hallujudge new METRIC`` take it from there.

A benchmark from outside may have such a file beside the module that declares it.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from msgspec import Struct, convert

from ..errors import choose_from
from .metric import Metric, Paper
from .signature import folders

_PACKAGE = "hallujudge.metrics"
_FOLDER = resources.files(_PACKAGE)
_PAPERS = _FOLDER / "papers"
_PRINTED_NAMES = "printed_names.csv"


class MetricFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What papers say of a metric."""

    papers: tuple[Paper, ...] = ()
    """The papers that define it; empty if no file is about it."""
    ranking_source: str = ""
    """Where the paper, or a public leaderboard, ranks models so, in one sentence."""
    headline: tuple[str, ...] = ()
    """The scores that a short table shows, those of the paper's own table; empty for all."""


def paper(name: str) -> Paper:
    """Return a paper by the name of its file, with hyphens for underscores."""
    return convert(_fields_in(_text_of(name)), Paper)


def facts_of(benchmark: str) -> MetricFacts:
    """Return what the file of a benchmark's name, or of its family's, says of it.

    Raises:
        Exception: A file from outside can't be read, or is not such a file.
    """
    folder, name = _place_of(benchmark)
    if not (text := _text_of(name, folder)):
        return MetricFacts()
    said = text.get("metrics", {}).get(benchmark, {})
    named = said.get("papers", {name: ""}).items()
    papers = [
        _fields_in(_text_of(each, folder)) | ({"where": where} if where else {})
        for each, where in named
    ]
    return convert({**said, "papers": papers}, MetricFacts)


def paper_faults(benchmark: str) -> Iterator[str]:
    """Yield what the file of a benchmark's name has and nothing reads, such as misspelt keys.

    Raises:
        Exception: A file from outside can't be read.
    """
    folder, name = _place_of(benchmark)
    text = _text_of(name, folder)
    metrics = text.get("metrics", {})
    # A file of ours is about all benchmarks of a family.
    named = metrics if folder is _PAPERS else (benchmark,)
    for place, held, known in (
        ("it", text, (*Paper.__struct_fields__, "metrics", "examples")),
        ("[metrics]", metrics, named),
        (f"[metrics.{benchmark}]", metrics.get(benchmark, {}), MetricFacts.__struct_fields__),
    ):
        for key in held:
            if key not in known:
                yield f"{place} has {key!r}, which nothing reads; {choose_from(key, known)}"


def paper_examples() -> Mapping[str, Mapping[str, Any]]:
    """Return metric -> its example's command and files."""
    found = (_text_of(name).get("examples", {}) for name in _names())
    return {metric: example for each in found for metric, example in each.items()}


@cache
def _names() -> tuple[str, ...]:
    files = [file.name for file in _PAPERS.iterdir()]
    return tuple(name.removesuffix(".toml").replace("_", "-") for name in sorted(files))


def _place_of(benchmark: str) -> tuple[Traversable, str]:
    words = benchmark.split("-")
    # From the whole name on: a file of the benchmark's own goes before its family's.
    for last in range(len(words), 0, -1):
        name = "-".join(words[:last])
        if name in _names() and benchmark in _text_of(name).get("metrics", {}):
            return _PAPERS, name
    return folders.get(benchmark, _PAPERS), benchmark


def _text_of(name: str, folder: Traversable = _PAPERS) -> dict[str, Any]:
    """Return what the file of a paper holds; empty without one."""
    file = folder / f"{name.replace('-', '_')}.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}


def _fields_in(text: Mapping[str, Any]) -> dict[str, Any]:
    # Tables of the file are about metrics and examples.
    return {key: value for key, value in text.items() if type(value) is not dict}


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

    They are in ``metrics/published/METRIC.csv``: a name, the model, the paper and table, the judge
    if there is one, and a column for each score, empty where the table has none.

    Args:
        metric: The metric.
    """
    names = {score.name for score in metric.score_definitions}
    rows = (_row(line, names) for line in _lines(f"{metric.name.replace('-', '_')}.csv"))
    return tuple(row for row in rows if row.scores)


def printed_names(metric: type[Metric]) -> dict[str, str]:
    """Return score -> its name in the paper, and where that is printed, as far as papers name it.

    Args:
        metric: The metric.
    """
    return {
        line["score"]: line["printed"]
        for line in _lines(_PRINTED_NAMES)
        if line["metric"] == metric.name
    }


def _lines(name: str) -> Iterator[Mapping[str, str]]:
    file = _FOLDER / "published" / name
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
