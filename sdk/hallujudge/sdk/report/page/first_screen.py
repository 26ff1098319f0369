"""The first screen of the page: what was scored, the scores, and how far they can be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from hallujudge.metrics import Report, Score

from ..calibrated import calibration_sentences, corrected_cells, corrected_headings
from ..markup import Content, Markup, element, joined
from ..text import GROUP_LIMIT, counted, coverage_sentence, cut, interval_label, meaning_of, shown
from .about import PageAbout
from .scale import bar, scale

__all__ = ["bounds_sentence", "first_screen", "heading", "table"]

_NAME_CHARS = 120
_JUDGE_NOTE = re.compile(r"\bjudge\b.*\b(known data|checked|measured)\b", re.IGNORECASE)


def heading(report: Report, about: PageAbout) -> Markup:
    """Return what was scored: the run's title, metric, variant and size."""
    parts = [report.metric] if about.title else []
    parts += [f"{report.variant} variant", counted(report.coverage.items, "item")]
    parts += [about.date] if about.date else []
    return element(
        "header",
        element("h1", cut(about.title, _NAME_CHARS) or report.metric),
        element("p", " · ".join(parts), _class="muted"),
    )


def first_screen(report: Report, about: PageAbout) -> Iterator[Markup]:
    """Yield the sections above the items.

    Args:
        report: The report of the run.
        about: Title, inputs and baseline.
    """
    yield heading(report, about)
    yield _headline(report, about)
    yield _trust(report, about)
    yield _scores(report, about)
    for key, values in report.groups.items():
        yield _groups(key, values)
    yield _making(report, about)


def _headline(report: Report, about: PageAbout) -> Markup:
    """Return the first score in large figures with its interval on a scale."""
    score = next(iter(report.scores.values()), None)
    if score is None:
        return Markup("")
    figures = shown(score)
    name, values = about.baseline or ("", {})
    baseline = values.get(score.name)
    drawn = scale(score, baseline)
    told = f"{interval_label(report)} {figures.interval}" if figures.interval else "no interval"
    told += f"; dashed: {cut(name, _NAME_CHARS)}, {baseline:.4f}" if baseline is not None else ""
    return element(
        "section",
        element(
            "div",
            element("p", figures.value, _class="figure"),
            element(
                "p", element("code", score.name), element("small", meaning_of(report, score.name))
            ),
        ),
        element("div", drawn, element("p", told, _class="muted"), _class="scale-box"),
        _class="headline",
        aria_label="Main score",
    )


def _scores(report: Report, about: PageAbout) -> Markup:
    bounds = report.coverage.bounds
    name, base = about.baseline or ("", {})
    beside = corrected_headings(about.calibration)
    headings = ["score", "value", interval_label(report), "from 0 to 1", *beside, "n"]
    headings += ["unscored could make it"] if bounds else []
    headings += [cut(name, _NAME_CHARS)] if base else []
    rows = [_score_row(report, score, about) for score in report.scores.values()]
    return element("section", element("h2", "Scores"), table(headings, rows))


def _score_row(report: Report, score: Score, about: PageAbout) -> list[Content]:
    baseline = about.baseline[1] if about.baseline else {}
    bounds = report.coverage.bounds
    figures = shown(score, bounds.get(score.name))
    row: list[Content] = [
        _name(score.name, meaning_of(report, score.name)),
        element("b", figures.value),
        figures.interval,
        bar(score),
        *corrected_cells(about.calibration, score.name),
        figures.n,
    ]
    row += [figures.bound] if bounds else []
    if baseline:
        row.append(f"{baseline[score.name]:.4f}" if score.name in baseline else "")
    return row


def _name(name: str, meaning: str) -> Markup:
    parts = [element("code", name)]
    if meaning:
        parts.append(element("small", meaning))
    return joined(parts)


def table(headings: Iterable[str], rows: Iterable[Iterable[Content]]) -> Markup:
    """Return a table whose first cells are headings of their rows."""
    head = element("tr", *(element("th", text, scope="col") for text in headings))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    ]
    table = element("table", element("thead", head), element("tbody", *body))
    # A scrollable region must be reachable by keyboard.
    return element("div", table, _class="scroll", tabindex="0", role="region", aria_label="Table")


def _trust(report: Report, about: PageAbout) -> Markup:
    """Return what limits the scores: unscored items, labels, and the notes, the judge's first."""
    told = [element("li", coverage_sentence(report.coverage), bounds_sentence(report))]
    if about.calibration is not None:
        told += [element("li", text) for text in calibration_sentences(about.calibration)]
    notes = sorted(report.notes, key=lambda note: _JUDGE_NOTE.search(note) is None)
    told += [element("li", note) for note in notes]
    return element(
        "section", element("ul", *told), _class="trust", aria_label="How far to trust it"
    )


def bounds_sentence(report: Report) -> str:
    """Return what unscored items and claims could make of the first score; empty without any."""
    name, score = next(iter(report.scores.items()), ("", None))
    bound = report.coverage.bounds.get(name)
    if score is None or bound is None:
        return ""
    return f" They could make {name} {shown(score, bound).bound}."


def _groups(key: str, values: Mapping[str, Mapping[str, Score]]) -> Markup:
    names = list(next(iter(values.values()), {}))
    rows = [
        [cut(value, _NAME_CHARS) or "(none)", *_group_cells(scores)]
        for value, scores in islice(values.items(), GROUP_LIMIT)
    ]
    parts = [element("h2", f"By {cut(key, _NAME_CHARS)}"), table([key, *names], rows)]
    if len(values) > GROUP_LIMIT:
        note = f"and {len(values) - GROUP_LIMIT:,} more in report.json"
        parts.append(element("p", note, _class="muted"))
    return element("section", *parts)


def _group_cells(scores: Mapping[str, Score]) -> Iterator[Markup]:
    for score in scores.values():
        figures = shown(score)
        small = element("small", f"{figures.interval} n {figures.n}".strip())
        yield joined([element("b", figures.value), bar(score), small])


def _making(report: Report, about: PageAbout) -> Markup:
    told = [(key.replace("_", " "), value) for key, value in report.settings.items()]
    told += [(f"input {name}", f"sha256 {digest}") for name, digest in about.inputs]
    pairs = [
        part
        for key, value in told
        for part in (
            element("dt", cut(key, _NAME_CHARS)),
            element("dd", element("code", cut(value, 4 * _NAME_CHARS))),
        )
    ]
    signature = about.calibration.signature if about.calibration else report.signature
    button = element(
        "button", "Copy", type="button", hidden="hidden", data_copy="signature", _class="copy"
    )
    settings = element(
        "details",
        element("summary", "Settings and inputs"),
        element("dl", *pairs, _class="settings"),
    )
    return element(
        "section",
        element("h2", "How these numbers were made"),
        element("p", "Quote the signature with the numbers. ", button, _class="muted"),
        element("p", _breakable(signature), _class="signature", id="signature"),
        *([settings] if pairs else []),
    )


def _breakable(signature: str) -> Markup:
    # <wbr> allows a line break after a bar and is not part of copied text.
    parts = signature.split("|")
    pieces = [piece for part in parts[:-1] for piece in (f"{part}|", element("wbr"))]
    return joined([*pieces, parts[-1]])
