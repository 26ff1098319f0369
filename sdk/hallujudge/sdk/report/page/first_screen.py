"""The first screen of the page: what was scored, the scores, and how far they can be trusted.

A notebook shows it as a fragment of HTML.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from hallujudge.metrics import Report, Score
from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.metrics.framework.signature import CARD_NOTE

from ..report_text import (
    GROUP_LIMIT,
    calibration_sentences,
    clean,
    corrected_cells,
    corrected_headings,
    counted,
    counts_among,
    coverage_sentence,
    cut,
    group_text,
    highest_of,
    interval_label,
    judging_sentences,
    main_score_of,
    meaning_of,
    shown,
)
from .page_parts import Content, Markup, asset, breakable, element, joined, score_bar, score_scale

_NAME_CHARS = 120
# The table calls a baseline with a longer name "baseline"; the headline shows the full name.
_BASELINE_CHARS = 16
# The other scores are folded up.
_FIRST_SCORES = 8
# As many columns of a group's table as fit a window or a sheet of paper.
_FIRST_OF_GROUPS = 6
_CARD_FILE = "judge-card.json"
# Whether a judge can be trusted comes before all other notes.
_JUDGE_NOTE = re.compile(r"\bjudge\b.*\b(known data|checked|measured)\b", re.IGNORECASE)


class PageAbout(Struct, frozen=True, kw_only=True):
    """What a page shows about its run in addition to the report."""

    title: str = ""
    """The model, or the name of the run; empty if it is not known."""
    inputs: tuple[tuple[str, str], ...] = ()
    """Names of the input files, with their SHA-256."""
    date: str = ""
    """Date of the run."""
    overview: str = ""
    """URL of the page of all runs; empty for a page without one."""
    card: str = ""
    """The judge's report card, as JSON; empty without one."""
    baseline: tuple[str, dict[str, float]] | None = None
    """A name and its scores, such as a published row, to compare with."""
    calibration: Calibration | None = None
    """The scores corrected by human labels, which are shown next to the raw ones."""
    analyses: tuple[Markup, ...] = ()
    """Sections with the analyses of the run, which are folded up."""

    @property
    def content(self) -> str:
        """The hashes of the input files; empty if they are not known."""
        return "\n".join(digest for _, digest in self.inputs)


def run_identity(signature: str, content: str) -> str:
    """Return the name of a run in its labels: a hash of its settings and of what it scored.

    Args:
        signature: The run's signature.
        content: A hash of what it scored; other responses may have the same signature.
    """
    # Without what depends on the items, so that a run keeps its identity when it is completed.
    settings = signature.partition("|ci:")[0]
    return hashlib.sha256(clean(f"{settings}\n{content}").encode()).hexdigest()[:16]


def html_table(
    headings: Iterable[str], rows: Iterable[Iterable[Content]], style: str = ""
) -> Markup:
    """Return a table whose first cells are headings of their rows.

    Args:
        headings: Headings of the columns.
        rows: The cells.
        style: Class of the table, whose cells repeat their headings for a page too narrow for
            columns; empty for none.
    """
    first, *labels = headings
    names = (breakable(text, "_") for text in (first, *labels))
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = [_table_row(cells, labels if style else ()) for cells in rows]
    given = {"_class": style} if style else {}
    made = element("table", element("thead", head), element("tbody", *body), **given)
    # A scrollable region must be reachable by keyboard.
    return element("div", made, _class="scroll", tabindex="0", role="region", aria_label="Table")


def _table_row(cells: Iterable[Content], labels: Sequence[str]) -> Markup:
    """Return a row whose cells repeat their labels, if there are any."""
    first, *others = cells
    named = labels or [""] * len(others)
    data = [
        element("td", cell, **({"data_label": label} if label else {}))
        for label, cell in zip(named, others, strict=True)
    ]
    return element("tr", element("th", first, scope="row"), *data)


def scores_table(report: Report, about: PageAbout) -> Markup:
    """Return all scores; those after the first ones and those without items are folded up.

    Args:
        report: The report of the run.
        about: The baseline to compare with.
    """
    bounds = report.coverage.bounds
    name, base = about.baseline or ("", {})
    corrected = corrected_headings(about.calibration)
    headings = ["score", "value", interval_label(report), "from 0 to 1", *corrected, "n"]
    headings += ["unscored could make it"] if bounds else []
    headings += [name if len(name) <= _BASELINE_CHARS else "baseline"] if base else []
    some, empty = _by_items(report.scores.values())
    first, more = some[:_FIRST_SCORES], some[_FIRST_SCORES:]

    def shown_table(scores: Iterable[Score]) -> Markup:
        return html_table(
            headings, [_score_row(report, score, about) for score in scores], "scores"
        )

    parts = [element("h2", "Scores"), shown_table(first)]
    if more:
        parts.append(_folded(f"{len(more)} more scores", shown_table(more)))
    if empty:
        parts.append(_folded(f"{counted(len(empty), 'score')} without items", shown_table(empty)))
    return element("section", *parts)


def _by_items(scores: Iterable[Score]) -> tuple[list[Score], list[Score]]:
    """Return scores with items, and ones without, such as those of a mode that was not run."""
    every = list(scores)
    some = [score for score in every if score.n]
    empty = [score for score in every if not score.n]
    # If nothing is scored, the table shows all scores without values.
    return (some, empty) if some else (every, [])


def _folded(summary: str, *content: Markup) -> Markup:
    return element("details", element("summary", summary), *content)


def _score_row(report: Report, score: Score, about: PageAbout) -> list[Content]:
    baseline = about.baseline[1] if about.baseline else {}
    bounds = report.coverage.bounds
    figures = shown(score, bounds.get(score.name))
    row: list[Content] = [
        _name(score.name, meaning_of(report, score.name)),
        element("b", figures.value),
        figures.interval,
        score_bar(score),
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


def group_tables(
    key: str, values: Mapping[str, Mapping[str, Score]], calibration: Calibration | None = None
) -> Markup:
    """Return the scores of the groups of a key; scores that no group has are left out.

    Args:
        key: What the items are grouped by.
        values: Group -> its scores.
        calibration: The scores corrected by human labels.
    """
    names = list(next(iter(values.values()), {}))
    names = [name for name in names if any(_defined(scores, name) for scores in values.values())]
    title = element("h2", f"By {cut(key, _NAME_CHARS)}")
    first, *more = (
        _group_table(key, values, names[at : at + _FIRST_OF_GROUPS], calibration)
        # Groups without any score are still listed, in one table.
        for at in range(0, max(len(names), 1), _FIRST_OF_GROUPS)
    )
    parts = [title, first]
    if more:
        parts.append(_folded(f"{len(names) - _FIRST_OF_GROUPS} more scores", *more))
    if len(values) > GROUP_LIMIT:
        note = f"and {len(values) - GROUP_LIMIT:,} more in report.json"
        parts.append(element("p", note, _class="muted"))
    return element("section", *parts, _class="groups")


def _defined(scores: Mapping[str, Score], name: str) -> bool:
    return name in scores and scores[name].value is not None


def _group_table(
    key: str,
    values: Mapping[str, Mapping[str, Score]],
    names: Sequence[str],
    calibration: Calibration | None,
) -> Markup:
    def corrected(value: str) -> dict[str, str]:
        return {name: group_text(calibration, key, value, name) for name in names}

    counts = counts_among(values.values())
    rows = (
        [cut(value, _NAME_CHARS) or "(none)", *_group_cells(scores, corrected(value), counts)]
        for value, scores in islice(values.items(), GROUP_LIMIT)
    )
    return html_table([key, *names], rows)


def _group_cells(
    scores: Mapping[str, Score], corrected: Mapping[str, str], counts: Container[str]
) -> Iterator[Content]:
    """Yield a cell for each score, with the text of its corrected one if there is any."""
    for name, text in corrected.items():
        if name not in scores:
            yield ""
            continue
        figures = shown(scores[name], is_count=name in counts)
        small = element("small", f"{figures.interval} n\u00a0{figures.n}".strip())
        below = [element("small", text)] if text else []
        bar = score_bar(scores[name], is_count=name in counts)
        yield joined([element("b", figures.value), bar, small, *below])


def heading(report: Report, about: PageAbout) -> Markup:
    """Return what was scored: the run's title, metric, variant and size."""
    parts = [report.metric] if about.title else []
    parts += [f"{report.variant} variant", counted(report.coverage.items, "item")]
    parts += [about.date] if about.date else []
    return element(
        "header",
        element("h1", breakable(cut(about.title, _NAME_CHARS) or report.metric, "_")),
        element("p", " · ".join(parts), _class="muted"),
    )


def first_screen(report: Report, about: PageAbout, *, copy: bool = True) -> Iterator[Markup]:
    """Yield the sections above the items.

    Args:
        report: The report of the run.
        about: Title, inputs and baseline.
        copy: Whether the page has a script, which can copy the signature.
    """
    yield heading(report, about)
    yield _headline(report, about)
    yield _trust(report, about)
    yield scores_table(report, about)
    for key, values in report.groups.items():
        yield group_tables(key, values, about.calibration)
    if about.analyses:
        yield element("section", _folded("Analyses", joined(about.analyses)))
    yield _making(report, about, copy=copy)


def _headline(report: Report, about: PageAbout) -> Markup:
    """Return the main score in large figures with its interval on a scale."""
    score = report.scores.get(main_score_of(report))
    if score is None:
        return Markup("")
    figures = shown(score)
    name, values = about.baseline or ("", {})
    baseline = values.get(score.name)
    drawn = score_scale(score, baseline, highest_of(report, score.name))
    caption = f"{interval_label(report)} {figures.interval}" if figures.interval else "no interval"
    caption += (
        f"; baseline (dashed): {cut(name, _NAME_CHARS)}, {baseline:.4f}"
        if baseline is not None
        else ""
    )
    return element(
        "section",
        element(
            "div",
            element("p", figures.value, _class="figure"),
            element(
                "p", element("code", score.name), element("small", meaning_of(report, score.name))
            ),
        ),
        element("div", drawn, element("p", caption, _class="muted"), _class="scale-box"),
        _class="headline",
        aria_label="Main score",
    )


def _trust(report: Report, about: PageAbout) -> Markup:
    """Return what limits the scores: unscored items, labels, and the notes, the judge's first."""
    points = [element("li", coverage_sentence(report), bounds_sentence(report))]
    points += [element("li", text) for text in judging_sentences(report.judging)]
    if about.calibration is not None:
        points += [element("li", text) for text in calibration_sentences(about.calibration)]
    notes = sorted(report.notes, key=lambda note: _JUDGE_NOTE.search(note) is None)
    points += [element("li", note, *_card_link(note, about.card)) for note in notes]
    return element(
        "section", element("ul", *points), _class="trust", aria_label="How far to trust it"
    )


def _card_link(note: str, card: str) -> Iterator[Content]:
    """Yield a link after the note on the judge's report card, which has all of its figures."""
    if card and note.startswith(CARD_NOTE):
        # Inside the link, since a page loads nothing.
        data = base64.b64encode(card.encode()).decode()
        yield " All figures: "
        yield element(
            "a", _CARD_FILE, href=f"data:application/json;base64,{data}", download=_CARD_FILE
        )


def bounds_sentence(report: Report) -> str:
    """Return what unscored items and claims could make of the main score; empty without any.

    Where that score has no bounds, it is the first one that has some.
    """
    for name in filter(None, (main_score_of(report), *report.scores)):
        if (bound := report.coverage.bounds.get(name)) is not None:
            return f" They could make {name} {shown(report.scores[name], bound).bound}."
    return ""


def _making(report: Report, about: PageAbout, *, copy: bool) -> Markup:
    pairs = [(key.replace("_", " "), value) for key, value in report.settings.items() if value]
    pairs += [(f"input {name}", f"sha256 {digest}") for name, digest in about.inputs]
    signature = about.calibration.signature if about.calibration else report.signature
    quote = "Quote the signature with the numbers. "
    # A notebook may show several reports, and an id must be unique on a page.
    marked = {"id": "signature"} if copy else {}
    shown = {"type": "button", "hidden": "hidden", "data_copy": "signature", "_class": "copy"}
    button = [element("button", "Copy", **shown)] if copy else []
    return element(
        "section",
        element("h2", "How these numbers were made"),
        element("p", quote, *button, _class="muted"),
        element("p", breakable(signature, "|"), _class="signature", **marked),
        *([_settings(pairs)] if pairs else []),
        _class="making",
    )


def _settings(pairs: Iterable[tuple[str, str]]) -> Markup:
    entries = [
        part
        for key, value in pairs
        for part in (
            element("dt", cut(key, _NAME_CHARS)),
            element("dd", element("code", cut(value, 4 * _NAME_CHARS))),
        )
    ]
    return element(
        "details",
        element("summary", "Settings and inputs"),
        element("dl", *entries, _class="settings"),
    )


def render_notebook(report: Report) -> Markup:
    """Return the first screen of the report's page, without a script."""
    return notebook_fragment(first_screen(report, PageAbout(), copy=False))


def notebook_fragment(content: Iterable[Markup]) -> Markup:
    """Return content with its style sheet, whose rules apply only to it.

    Args:
        content: What is shown.
    """
    style = element("style", Markup(asset("notebook.css")))
    return element("div", style, *content, _class="hallujudge")
