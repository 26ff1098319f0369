"""The report as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from heapq import heappush, heapreplace
from importlib import resources
from itertools import islice

from hallujudge.metrics import Item, ItemResult, Outcome, Report, Score

from .limits import SHOWN_ITEMS, SHOWN_UNSCORED
from .markup import Content, Markup, element, joined
from .text import GROUP_LIMIT, counted, coverage_sentence, cut, interval_label, meaning_of, shown
from .views import View, view_of, weight_of

__all__ = ["HtmlPage"]

_NAME_CHARS = 120
_BAR = 100


class HtmlPage:
    """Collects the items with the most hallucinations, then renders the page.

    The page runs no script and loads nothing; its content security policy enforces this. At most
    200 items are kept, so that memory does not grow with the run: those with the most
    hallucinations, and of equal ones the earliest.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[int, int, Markup]] = []
        self._unscored: list[Markup] = []
        self._added = 0
        self._view: View | None = None

    def add(self, item: Item, result: ItemResult) -> None:
        """Add an item.

        Args:
            item: The scored item.
            result: Its result.
        """
        if result.outcome is Outcome.UNSCORED:
            if len(self._unscored) < SHOWN_UNSCORED:
                self._unscored.append(_unscored_row(result))
            return
        # Among equal weights earlier items rank higher, so no two ranks are equal.
        rank = (weight_of(result.evidence), -self._added)
        self._view = view_of(result.evidence)
        self._added += 1
        # Render at once: a fragment has a bounded size, a response does not.
        if len(self._kept) < SHOWN_ITEMS:
            heappush(self._kept, (*rank, _article(item, result)))
        elif rank > self._kept[0][:2]:
            heapreplace(self._kept, (*rank, _article(item, result)))

    def render(self, report: Report) -> str:
        """Return the page.

        Args:
            report: The report of the run.

        Returns:
            A complete HTML document that can be encoded as UTF-8.
        """
        body = [
            _heading(report),
            _scores(report),
            _coverage(report, self._unscored),
            *([_notes(report)] if report.notes else []),
            *(_groups(key, values) for key, values in report.groups.items()),
            _making(report),
            self._items(report.coverage.scored),
        ]
        return "<!doctype html>\n" + element(
            "html",
            _head(report),
            element("body", element("main", *body)),
            lang="en",
        )

    def _items(self, scored: int) -> Markup:
        articles = [
            article for *_, article in sorted(self._kept, key=lambda k: k[:2], reverse=True)
        ]
        if not articles:
            return element("section", element("h2", "Items"), element("p", "No scored items."))
        assert self._view is not None, "the first item brought it"
        weighed = any(weight for weight, *_ in self._kept)
        order = f", {self._view.order}" if weighed else ""
        note = f"Showing {len(articles):,} of {counted(scored, 'scored item')}{order}."
        return element(
            "section",
            element("h2", "Items"),
            element("p", note, _class="muted"),
            *([_legend()] if self._view.legend else []),
            *articles,
        )


@cache
def _css() -> str:
    return resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def _head(report: Report) -> Markup:
    css = _css()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{report.metric} ({report.variant}) – Hallujudge"),
        # Our own CSS has no `<`. Escaping it would change the text that the policy's digest covers.
        element("style", Markup(css)),
    )


def _heading(report: Report) -> Markup:
    about = f"{report.variant} variant, {counted(report.coverage.items, 'item')}"
    return element("header", element("h1", report.metric), element("p", about, _class="muted"))


def _scores(report: Report) -> Markup:
    bounds = report.coverage.bounds
    headings = ["score", "value", interval_label(report), "", "n"]
    headings += ["unscored could make it"] if bounds else []
    rows = [
        [
            _name(name, meaning_of(report, name)),
            element("b", figures.value),
            figures.interval,
            _bar(score),
            figures.n,
            figures.bound,
        ][: len(headings)]
        for name, score in report.scores.items()
        for figures in [shown(score, bounds.get(name))]
    ]
    return element("section", element("h2", "Scores"), _table(headings, rows))


def _name(name: str, meaning: str) -> Markup:
    parts = [element("code", name)]
    if meaning:
        parts.append(element("small", meaning))
    return joined(parts)


def _bar(score: Score) -> Markup:
    """Draw value and interval on a line from 0 to 1; draw nothing for lengths and counts."""
    ends = [end for end in (score.ci_low, score.ci_high, score.value) if end is not None]
    if score.value is None or not all(0 <= end <= 1 for end in ends):
        return Markup("")
    low, high = min(ends) * _BAR, max(ends) * _BAR
    return element(
        "svg",
        element("rect", x="0", y="5", width=str(_BAR), height="2", _class="scale"),
        element("rect", x=f"{low:.2f}", y="3", width=f"{high - low:.2f}", height="6", _class="ci"),
        element("circle", cx=f"{score.value * _BAR:.2f}", cy="6", r="3.5", _class="point"),
        viewBox=f"-4 0 {_BAR + 8} 12",
        _class="bar",
        aria_hidden="true",
    )


def _table(headings: Iterable[str], rows: Iterable[Iterable[Content]]) -> Markup:
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    ]
    table = element("table", element("thead", head), element("tbody", *body))
    # A scrollable region must be reachable by keyboard.
    return element("div", table, _class="scroll", tabindex="0")


def _coverage(report: Report, unscored: list[Markup]) -> Markup:
    parts = [element("h2", "Coverage"), element("p", coverage_sentence(report.coverage))]
    if report.coverage.unscored:
        note = "Unscored items count in no score; the bounds above show what they could change."
        parts.append(element("p", note, _class="muted"))
    if unscored:
        total = report.coverage.unscored
        label = f"Unscored items ({min(len(unscored), total):,} of {total:,})"
        parts.append(element("details", element("summary", label), element("ul", *unscored)))
    return element("section", *parts)


def _notes(report: Report) -> Markup:
    notes = (element("li", note) for note in report.notes)
    return element("section", element("h2", "Notes"), element("ul", *notes))


def _unscored_row(result: ItemResult) -> Markup:
    return element(
        "li",
        element("code", cut(result.id, _NAME_CHARS)),
        f" {cut(result.reason, _NAME_CHARS)}: {cut(result.detail, 2 * _NAME_CHARS)}",
    )


def _groups(key: str, values: Mapping[str, Mapping[str, Score]]) -> Markup:
    names = list(next(iter(values.values()), {}))
    rows = [
        [cut(value, _NAME_CHARS) or "(none)", *_group_cells(scores)]
        for value, scores in islice(values.items(), GROUP_LIMIT)
    ]
    parts = [element("h2", f"By {cut(key, _NAME_CHARS)}"), _table([key, *names], rows)]
    if len(values) > GROUP_LIMIT:
        note = f"and {len(values) - GROUP_LIMIT:,} more in report.json"
        parts.append(element("p", note, _class="muted"))
    return element("section", *parts)


def _group_cells(scores: Mapping[str, Score]) -> Iterator[Markup]:
    for figures in map(shown, scores.values()):
        small = element("small", f"{figures.interval} n {figures.n}".strip())
        yield joined([element("b", figures.value), small])


def _making(report: Report) -> Markup:
    pairs = [
        part
        for key, value in report.settings.items()
        for part in (
            element("dt", key.replace("_", " ")),
            element("dd", element("code", cut(value, 4 * _NAME_CHARS))),
        )
    ]
    return element(
        "section",
        element("h2", "How these numbers were made"),
        element("p", "Quote the signature with the numbers:", _class="muted"),
        element("p", _breakable(report.signature), _class="signature"),
        *([element("dl", *pairs, _class="settings")] if pairs else []),
    )


def _breakable(signature: str) -> Markup:
    # <wbr> allows a line break after a bar and is not part of copied text.
    parts = signature.split("|")
    pieces = [piece for part in parts[:-1] for piece in (f"{part}|", element("wbr"))]
    return joined([*pieces, parts[-1]])


def _legend() -> Markup:
    return element(
        "p",
        element("mark", "hallucinated", _class="wrong"),
        " ",
        element("mark", "supported by the reference", _class="right"),
        _class="legend",
    )


def _article(item: Item, result: ItemResult) -> Markup:
    view = view_of(result.evidence)
    group = item.group_id if item.group_id not in ("", item.id) else ""
    heading = [element("code", cut(item.id, _NAME_CHARS))]
    if group:
        heading.append(element("span", f" in {cut(group, _NAME_CHARS)}", _class="muted"))
    summary = view.summary(result.evidence) if result.evidence is not None else ""
    return element(
        "article",
        element("h3", *heading),
        element("p", summary or _own_scores(result), _class="muted"),
        view.body(item, result),
    )


def _own_scores(result: ItemResult) -> str:
    return ", ".join(
        f"{name} {score:.4g}"
        for name, score in islice(result.scores.items(), 20)
        if score is not None
    )
