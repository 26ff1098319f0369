"""The page of two runs: their scores, the differences, and the items of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hallujudge.metrics import Report

from ..report.page import MOST_PAGE_ITEMS
from ..report.page.document import (
    Images,
    content_digest,
    data_blocks,
    document,
    held_parts,
    image_blocks,
    page_app,
    page_head,
    page_links,
)
from ..report.page.first_screen import html_table
from ..report.page.page_parts import (
    ITEMS_IN_PART,
    Columns,
    Content,
    Markup,
    PartColumns,
    columns_json,
    element,
    packed,
    read_columns,
    read_details,
)
from ..report.report_text import ABSENT, counted, cut, meaning_of, shown
from ..runs.saved_items import about_of
from ..runs.stored_runs import read_run
from .compared_runs import CompareOptions
from .differences import compare
from .results import ScoreDifference

_NAME_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """A run on a page of two."""

    title: str
    """The model, or the name of the run."""
    report: Report
    parts: Sequence[bytes]
    """What the page shows of its items."""
    content: str = ""
    """The hashes of its input files; empty if they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What a comparison of two runs found."""

    rows: Sequence[ScoreDifference]
    """The differences of the scores."""
    method: str = ""
    """How they were computed, to quote with them."""
    notes: Sequence[str] = ()
    """Warnings, one sentence each."""


def page_of_two(
    first: Path,
    second: Path,
    *,
    images: Images | None = None,
    allow: tuple[str, ...] = (),
    overview: str = "",
) -> str:
    """Return the page of two complete runs: their differences, and their items side by side.

    Args:
        first: Folder of the baseline.
        second: Folder of the other run.
        images: Where pictures come from; None for no pictures.
        allow: Fields of the signature that may differ.
        overview: Address of the page of all runs; empty without one.

    Raises:
        InvalidInputError: The runs were scored in different ways, or have no item in common.
        ArchiveError: A folder does not hold a complete run.
    """
    runs = [read_run(folder) for folder in (first, second)]
    found = compare(first, second, options=CompareOptions(allow=allow))
    sides = [
        PageRun(
            title=label.name,
            report=run.report,
            parts=run.page_parts(),
            content=about_of(run.manifest).content,
        )
        for run, label in zip(runs, found.runs, strict=True)
    ]
    return render_comparison(
        sides[0],
        sides[1],
        Differences(rows=found.pairs[0].differences, method=found.method, notes=found.notes),
        images=images,
        overview=overview,
    )


@dataclass(slots=True)
class _Items:
    """All items of a run, by position."""

    columns: PartColumns
    details: list[list[dict[str, Any]]]
    places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.places = {name: place for place, name in enumerate(self.columns.ids)}


def render_comparison(
    first: PageRun,
    second: PageRun,
    differences: Differences,
    *,
    images: Images | None = None,
    overview: str = "",
) -> str:
    """Return the page of two runs. Items are joined by id.

    Args:
        first: The baseline.
        second: The run that is compared with it.
        differences: The differences of the scores.
        images: Where pictures come from; None for no pictures.
        overview: URL of the page of all runs; empty for a page without one.
    """
    runs = (first, second)
    items = [_read(held_parts(run.parts)) for run in runs]
    common = [name for name in items[0].columns.ids if name in items[1].places][:MOST_PAGE_ITEMS]
    places = [[each.places[name] for name in common] for each in items]
    columns = [Columns([_chosen(each.columns, at)]) for each, at in zip(items, places, strict=True)]
    contents = [run.content or content_digest(held_parts(run.parts)) for run in runs]
    head = page_head([(run.title, run.report) for run in runs], columns, contents)
    pictures = images or Images()
    title = f"{first.title} and {second.title} – Hallujudge"
    body = [
        page_links(overview),
        *_first_screen(runs, differences, items, len(common)),
        _making(runs, differences.method),
        page_app(),
    ]
    data = [
        *data_blocks(head, columns_json(columns), _details(items, places)),
        *image_blocks(columns[0], pictures),
    ]
    return document(title, body, data, pictures=pictures.policy)


def _read(parts: Iterable[bytes]) -> _Items:
    merged = PartColumns()
    details: list[list[dict[str, Any]]] = []
    for part in parts:
        columns = read_columns(part)
        for name in _column_names():
            getattr(merged, name).extend(getattr(columns, name))
        for kind, titles in columns.charts.items():
            merged.charts.setdefault(kind, {}).update(titles)
        details += read_details(part)
    return _Items(merged, details)


def _column_names() -> list[str]:
    # Charts are kept by kind, all other columns item by item.
    return [name for name in PartColumns.__slots__ if name != "charts"]


def _chosen(columns: PartColumns, places: Sequence[int]) -> PartColumns:
    lists = {name: [getattr(columns, name)[at] for at in places] for name in _column_names()}
    return PartColumns(**lists, charts=columns.charts)


def _details(items: Sequence[_Items], places: Sequence[Sequence[int]]) -> Iterator[bytes]:
    """Yield the details of both runs' items, chunk by chunk."""
    pairs = list(zip(*places, strict=True))
    for first in range(0, len(pairs), ITEMS_IN_PART):
        chunk = [
            # Details are lists by run, and a part of one run has one of each.
            [each.details[at][0] for each, at in zip(items, pair, strict=True)]
            for pair in pairs[first : first + ITEMS_IN_PART]
        ]
        yield packed(chunk)


def _first_screen(
    runs: Sequence[PageRun],
    differences: Differences,
    items: Sequence[_Items],
    common: int,
) -> Iterator[Markup]:
    first, second = runs
    names = [cut(run.title, _NAME_CHARS) for run in runs]
    about = f"{first.report.metric} · {counted(common, 'item')} in both runs"
    yield element(
        "header",
        element("h1", f"{names[0]} and {names[1]}"),
        element("p", about, _class="muted"),
    )
    yield _trust(runs, differences.notes, items, common)
    headings = ["score", f"A: {names[0]}", f"B: {names[1]}", "B − A", "interval", "p", "B is"]
    rows = [_row(row, first.report, second.report) for row in differences.rows]
    yield element("section", element("h2", "Scores"), html_table(headings, rows, "scores"))


def _making(runs: Sequence[PageRun], method: str) -> Markup:
    lines = [(letter, run.report.signature) for letter, run in zip("AB", runs, strict=True)]
    lines += [("Differences", method)] if method else []
    return element(
        "section",
        element("h2", "How these numbers were made"),
        *(
            element("p", element("b", f"{name}: "), text, _class="signature")
            for name, text in lines
        ),
    )


def _trust(
    runs: Sequence[PageRun], notes: Sequence[str], items: Sequence[_Items], common: int
) -> Markup:
    points = [element("li", note) for note in notes]
    for run, each in zip(runs, items, strict=True):
        if missing := len(each.columns.ids) - common:
            points.append(element("li", f"{counted(missing, 'item')} only in {run.title}."))
    return element("section", element("ul", *points), _class="trust") if points else Markup("")


def _row(row: ScoreDifference, first: Report, second: Report) -> list[Content]:
    def cell(report: Report) -> str:
        return shown(report.scores[row.score]).value if row.score in report.scores else ""

    name = element(
        "span", element("code", row.score), element("small", meaning_of(first, row.score))
    )
    digits = _digits(row)
    low, high = (_signed(end, digits) for end in (row.ci_low, row.ci_high))
    return [
        name,
        cell(first),
        cell(second),
        element("b", _signed(row.difference, digits)),
        f"[{low}, {high}]" if row.ci_low is not None else "",
        "" if row.p_corrected is None else f"{row.p_corrected:.4f}",
        "not told apart" if row.finding == "none" else row.finding,
    ]


def _digits(row: ScoreDifference) -> int:
    """Return the decimals of a difference: four of fractions, two of lengths and counts."""
    known = [end for end in (row.difference, row.ci_low, row.ci_high) if end is not None]
    return 2 if any(abs(end) > 1 for end in known) else 4


def _signed(number: float | None, digits: int) -> str:
    # A minus sign is as wide as the plus sign, a hyphen is not.
    return ABSENT if number is None else f"{number:+.{digits}f}".replace("-", "−")
