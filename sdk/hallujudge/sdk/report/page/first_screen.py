"""The first screen of the page: what was scored, the scores, and how far they can be trusted."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator

from hallujudge.metrics import Report
from hallujudge.metrics.framework.signature import CARD_NOTE

from ..calibrated import calibration_sentences
from ..markup import Content, Markup, breakable, element
from ..text import counted, coverage_sentence, cut, interval_label, meaning_of, shown
from .about import PageAbout
from .scale import scale
from .score_tables import group_tables, scores_table

__all__ = ["bounds_sentence", "first_screen", "heading"]

_NAME_CHARS = 120
_CARD_FILE = "judge-card.json"
_JUDGE_NOTE = re.compile(r"\bjudge\b.*\b(known data|checked|measured)\b", re.IGNORECASE)


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
        copy: Whether a script is there to copy the signature.
    """
    yield heading(report, about)
    yield _headline(report, about)
    yield _trust(report, about)
    yield scores_table(report, about)
    for key, values in report.groups.items():
        yield group_tables(key, values, about.calibration)
    yield _making(report, about, copy=copy)


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
    told += (
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
        element("div", drawn, element("p", told, _class="muted"), _class="scale-box"),
        _class="headline",
        aria_label="Main score",
    )


def _trust(report: Report, about: PageAbout) -> Markup:
    """Return what limits the scores: unscored items, labels, and the notes, the judge's first."""
    told = [element("li", coverage_sentence(report.coverage), bounds_sentence(report))]
    if about.calibration is not None:
        told += [element("li", text) for text in calibration_sentences(about.calibration)]
    notes = sorted(report.notes, key=lambda note: _JUDGE_NOTE.search(note) is None)
    told += [element("li", note, *_card_link(note, about.card)) for note in notes]
    return element(
        "section", element("ul", *told), _class="trust", aria_label="How far to trust it"
    )


def _card_link(note: str, card: str) -> Iterator[Content]:
    """Yield a link after the note on the judge's report card, which has all of its figures."""
    if card and note.startswith(CARD_NOTE):
        data = base64.b64encode(card.encode()).decode()
        yield " All figures: "
        yield element(
            "a", _CARD_FILE, href=f"data:application/json;base64,{data}", download=_CARD_FILE
        )


def bounds_sentence(report: Report) -> str:
    """Return what unscored items and claims could make of the first score; empty without any."""
    name, score = next(iter(report.scores.items()), ("", None))
    bound = report.coverage.bounds.get(name)
    if score is None or bound is None:
        return ""
    return f" They could make {name} {shown(score, bound).bound}."


def _making(report: Report, about: PageAbout, *, copy: bool) -> Markup:
    told = [(key.replace("_", " "), value) for key, value in report.settings.items() if value]
    told += [(f"input {name}", f"sha256 {digest}") for name, digest in about.inputs]
    signature = about.calibration.signature if about.calibration else report.signature
    quote = "Quote the signature with the numbers. "
    # A notebook may show several reports: an id stands once on a page.
    marked = {"id": "signature"} if copy else {}
    return element(
        "section",
        element("h2", "How these numbers were made"),
        element("p", quote, *([_copy_button()] if copy else []), _class="muted"),
        element("p", breakable(signature, "|"), _class="signature", **marked),
        *([_settings(told)] if told else []),
        _class="making",
    )


def _copy_button() -> Markup:
    return element(
        "button", "Copy", type="button", hidden="hidden", data_copy="signature", _class="copy"
    )


def _settings(told: Iterable[tuple[str, str]]) -> Markup:
    pairs = [
        part
        for key, value in told
        for part in (
            element("dt", cut(key, _NAME_CHARS)),
            element("dd", element("code", cut(value, 4 * _NAME_CHARS))),
        )
    ]
    return element(
        "details",
        element("summary", "Settings and inputs"),
        element("dl", *pairs, _class="settings"),
    )
