"""What a page compares a run with: another run, item by item, or a baseline's scores."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import Report
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.papers import PublishedRow, published_rows
from hallujudge.metrics.framework.signature import judge_of

from ..errors import InvalidInputError
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
        found.pairs[0].differences,
        method=found.method,
        notes=found.notes,
        images=images,
        overview=overview,
    )


@dataclass(slots=True)
class _Items:
    """All items of a run, by position."""

    columns: Columns
    details: list[list[dict[str, Any]]]
    whole: bool
    """Whether the page holds all parts of the run."""
    places: dict[str, int]
    """Position by id."""


def render_comparison(
    first: PageRun,
    second: PageRun,
    differences: Sequence[ScoreDifference],
    *,
    method: str = "",
    notes: Sequence[str] = (),
    images: Images | None = None,
    overview: str = "",
) -> str:
    """Return the page of two runs. Items are joined by id.

    Args:
        first: The baseline.
        second: The run that is compared with it.
        differences: The differences of the scores.
        method: How they were computed, to quote with them.
        notes: Warnings, one sentence each.
        images: Where pictures come from; None for no pictures.
        overview: URL of the page of all runs; empty for a page without one.
    """
    runs = (first, second)
    items = [_read(run.parts) for run in runs]
    common = [name for name in items[0].columns.ids if name in items[1].places][:MOST_PAGE_ITEMS]
    places = [[each.places[name] for name in common] for each in items]
    columns = [each.columns.at(chosen) for each, chosen in zip(items, places, strict=True)]
    contents = [run.content or content_digest(held_parts(run.parts)) for run in runs]
    head = page_head([(run.title, run.report) for run in runs], columns, contents)
    pictures = images or Images()
    title = f"{first.title} and {second.title} – Hallujudge"
    body = [
        page_links(overview),
        *_first_screen(runs, differences, _trust(runs, notes, items), len(common)),
        _making(runs, method),
        page_app(),
    ]
    data = [
        *data_blocks(head, columns_json(columns), _details(items, places)),
        *image_blocks(columns[0], pictures),
    ]
    return document(title, body, data, pictures=pictures.policy)


def _read(parts: Sequence[bytes]) -> _Items:
    held = held_parts(parts)
    details = [each for part in held for each in read_details(part)]
    columns = read_columns(held)
    places = {name: place for place, name in enumerate(columns.ids)}
    return _Items(columns, details, len(held) == len(parts), places)


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
    differences: Sequence[ScoreDifference],
    trust: Markup,
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
    yield trust
    headings = ["score", f"A: {names[0]}", f"B: {names[1]}", "B − A", "interval", "p", "B is"]
    rows = [_row(row, first.report, second.report) for row in differences]
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


def _trust(runs: Sequence[PageRun], notes: Sequence[str], items: Sequence[_Items]) -> Markup:
    points = [element("li", note) for note in notes]
    for run, each, other in zip(runs, items, reversed(items), strict=True):
        # An item that the page of a large run leaves out may still be in the run.
        missing = sum(name not in other.places for name in each.columns.ids) if other.whole else 0
        if missing:
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


PUBLISHED = "published:"
"""Beginning of a baseline that names a row of a paper's table."""
JUDGE = "judge"
"""The field of signatures that a published row may differ in, where the user allows it."""
# Judges of a router stand one after another; a matcher's thresholds have this sign too.
_NEXT_JUDGE = re.compile(r"(?<!keep)(?<!sup)>")
# Parameters of several judges begin with the judge's name: "llm.api=chat,fallback.api=chat".
_OF_ONE_JUDGE = re.compile(r",([a-z][a-z0-9_-]*)\.[a-z_]+=")


def baseline_of(
    given: str, report: Report, allow: Container[str] = ()
) -> tuple[str, dict[str, float]]:
    """Return a baseline's name, with its paper, table and judge, and its scores.

    Args:
        given: The folder of a run, or ``published:`` and the name of a row.
        report: The report of the run that is compared.
        allow: Fields of signatures that may differ; ``judge`` allows a row of another judge.

    Raises:
        ArchiveError: The folder does not hold a run.
        InvalidInputError: The run is of another metric, the metric has no such row, or the row is
            of another judge.
    """
    if given.startswith(PUBLISHED):
        return _published(given.removeprefix(PUBLISHED), report, allow)
    held, metric = read_run(Path(given)).report, report.metric
    if held.metric != metric:
        raise InvalidInputError(
            f"{given}: a run of {held.metric}, not of {metric}; give a run of {metric} to compare "
            "with"
        )
    values = {name: score.value for name, score in held.scores.items() if score.value is not None}
    return Path(given).name, values


def deciding_judges(report: Report) -> tuple[str, ...]:
    """Return the judges whose verdicts count, with their models, as the signature names them."""
    judge = judge_of(report.signature)
    models = _NEXT_JUDGE.split(judge.partition(",")[0])
    names = list(dict.fromkeys(_OF_ONE_JUDGE.findall(judge)))
    decided = {share.judge for share in report.judging if share.decided}
    # A fallback that was never needed judged nothing.
    if len(models) == len(names) and decided:
        return tuple(model for model, name in zip(models, names, strict=True) if name in decided)
    return tuple(models)


def _published(name: str, report: Report, allow: Container[str]) -> tuple[str, dict[str, float]]:
    rows = published_rows(metric_entry(report.metric).metric)
    row = next((row for row in rows if row.name == name), None)
    if row is None:
        known = choose_from(name, [row.name for row in rows])
        raise InvalidInputError(
            f"no published row of {report.metric} has the name {name!r:.80}; {known}"
        )
    if JUDGE not in allow:
        _refuse_other_judge(row, rows, deciding_judges(report))
    return f"{row.model} ({row.source})", dict(row.scores)


def _refuse_other_judge(
    row: PublishedRow, rows: Sequence[PublishedRow], judges: Sequence[str]
) -> None:
    """Refuse a row whose numbers another judge made: they differ by the judge alone.

    Raises:
        InvalidInputError: The row names its judge, and another one judged the run.
    """
    if not row.judge or _are(judges, row.judge):
        return
    same = [each.name for each in rows if _are(judges, each.judge)]
    advice = f"choose one of {', '.join(same)}" if same else "no row is of this run's judge"
    raise InvalidInputError(
        f"the row {row.name} was judged by {row.judge}, and this run by {' and '.join(judges)}; "
        f"{advice}, or allow the difference with CompareOptions(allow={JUDGE})"
    )


def _are(judges: Sequence[str], name: str) -> bool:
    """Return whether all judges are the one of a name, which servers write in several ways."""
    # All parts of a name such as published/mpnet must be there, whatever the marks between them.
    parts = [_plain(part) for part in name.split("/")]
    return bool(name) and all(part in _plain(judge) for judge in judges for part in parts)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
