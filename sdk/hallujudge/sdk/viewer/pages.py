"""Pages of the viewer: the overview of a folder's runs, and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from hallujudge.metrics import Report

from ..report.markup import Content, Markup, element, joined
from ..report.page.document import document, first
from ..report.page.scale import bar
from ..report.text import counted, cut, shown
from .found import FoundRun

__all__ = ["OVERVIEW", "message_page", "overview_page"]

OVERVIEW = "/"
"""Address of the page of all runs."""

_NAME_CHARS = 120
_RESUME = "To go on with a run that stopped, repeat its command with "
# Parts of a signature that say nothing about how items were scored.
_OF_ITEMS = frozenset({"ci", "n", "unscored"})


def overview_page(runs: Sequence[FoundRun]) -> str:
    """Return the page of all runs: one table for each metric, then runs that are under way."""
    complete = [run for run in runs if run.report is not None]
    metrics = dict.fromkeys(run.report.metric for run in complete if run.report is not None)
    tables = [
        _table(metric, [run for run in complete if run.report and run.report.metric == metric])
        for metric in metrics
    ]
    live = [run for run in runs if run.under_way]
    body = [
        element("h1", "Runs"),
        element("p", counted(len(complete), "complete run"), _class="muted"),
        *_live(live),
        *tables,
        *_problems([run for run in runs if run.problem]),
    ]
    return document(
        "Runs – Hallujudge",
        [first(*body, live=bool(live))],
        scripts=("live.js",) if live else (),
        forms="'self'",
    )


def message_page(title: str, text: str) -> str:
    """Return a page of one sentence.

    Args:
        title: Its heading.
        text: The sentence.
    """
    back = element("p", element("a", "All runs", href=OVERVIEW))
    body = [element("h1", title), element("p", text), back]
    return document(f"{title} – Hallujudge", body, scripts=())


def _table(metric: str, runs: Sequence[FoundRun]) -> Markup:
    """Return the runs of a metric, with a form that compares two of them."""
    reports = [run.report for run in runs if run.report is not None]
    names = list(dict.fromkeys(name for report in reports for name in report.scores))
    differing = _differing(reports)
    heads = ["run", *(["A", "B"] if len(runs) > 1 else []), *(["differs in"] if differing else [])]
    heads += ["items", "unscored", *names]
    rows = [_row(run, names, differing, radios=len(runs) > 1) for run in runs]
    head = element("tr", *(element("th", text, scope="col") for text in heads))
    table = element("table", element("thead", head), element("tbody", *rows))
    scroll = element("div", table, _class="scroll", tabindex="0", role="region", aria_label=metric)
    button = element("button", "Compare A with B", type="submit")
    content: list[Markup] = [scroll, *([button] if len(runs) > 1 else [])]
    form = element("form", *content, action="/compare", method="get")
    return element("section", element("h2", metric), form, data_key=metric)


def _row(run: FoundRun, names: Iterable[str], differing: set[str], *, radios: bool) -> Markup:
    report = run.report
    assert report is not None, "only complete runs have rows"
    named = joined([_link(run), element("small", run.date)])
    cells: list[Content] = [_radio(side, run.name) for side in ("a", "b")] if radios else []
    if differing:
        fields = _fields(report)
        cells.append(", ".join(f"{key}:{fields.get(key, 'none')}" for key in sorted(differing)))
    # Before the scores, which may be more than fit.
    cells += [f"{report.coverage.items:,}", f"{report.coverage.unscored:,}"]
    cells += [_score(report, name) for name in names]
    data = [element("td", cell) for cell in cells]
    # The key keeps what is chosen in the row when the page is brought up to date.
    return element("tr", element("th", named, scope="row"), *data, data_key=run.name)


def _link(run: FoundRun) -> Markup:
    address = f"/run?name={quote(run.name, safe='')}"
    return element("a", cut(run.name, _NAME_CHARS), href=address)


def _score(report: Report, name: str) -> Content:
    score = report.scores.get(name)
    if score is None:
        return ""
    figures = shown(score)
    return element(
        "span", element("b", figures.value), bar(score), element("small", figures.interval)
    )


def _radio(side: str, name: str) -> Markup:
    label = f"{side.upper()}: {cut(name, _NAME_CHARS)}"
    return element("input", type="radio", name=side, value=name, required="", aria_label=label)


def _fields(report: Report) -> dict[str, str]:
    parts = report.signature.split("|")[1:]
    return dict(part.partition(":")[::2] for part in parts)


def _differing(reports: Sequence[Report]) -> set[str]:
    """Return the fields of the signatures that matter and are not the same everywhere."""
    fields = [_fields(report) for report in reports]
    keys = {key for of in fields for key in of} - _OF_ITEMS
    return {key for key in keys if len({of.get(key) for of in fields}) > 1}


def _live(runs: Sequence[FoundRun]) -> Iterator[Markup]:
    if not runs:
        return
    rows = [
        element(
            "li",
            element("b", _link(run)),
            f" {run.scored:,} of {run.items:,} items – {run.state.lower()}",
            element(
                "progress",
                value=str(run.scored),
                max=str(max(run.items, 1)),
                aria_label=f"Progress of {cut(run.name, _NAME_CHARS)}",
            ),
            data_key=run.name,
        )
        for run in runs
    ]
    yield element(
        "section",
        element("h2", "Not complete"),
        element("p", _RESUME, element("code", "--resume"), "."),
        element("ul", *rows),
        id="under-way",
    )


def _problems(runs: Sequence[FoundRun]) -> Iterator[Markup]:
    if runs:
        rows = [element("li", element("b", run.name), f" {run.problem}") for run in runs]
        yield element("section", element("h2", "Can't be read"), element("ul", *rows))
