"""The HTML document: head with its security policy, first screen, data and script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hallujudge.metrics import Item, ItemResult, Report

from ..limits import MOST_BYTES, MOST_ITEMS
from ..markup import Markup, element, joined
from ..text import clean
from ..views import ANSWER_WORDS
from .about import PageAbout, run_identity
from .assets import asset, digest
from .columns import Columns, columns_json, merged
from .first_screen import first_screen
from .images import Images
from .packing import packed
from .parts import ITEMS_IN_PART, packed_details, page_part, read_columns

__all__ = [
    "HtmlPage",
    "app",
    "content_digest",
    "data_blocks",
    "document",
    "first",
    "held",
    "image_blocks",
    "links",
    "page_head",
    "render_parts",
]

_MEASURES = {"words": "Words of the response", "margin": "Smallest margin of a verdict"}


class HtmlPage:
    """Collects what the page shows of items, then renders it.

    The page loads nothing: its content security policy allows only its own script and style sheet.
    It holds at most 50,000 items, the first ones, so that its size stays bounded.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._waiting: list[tuple[Item, ItemResult]] = []
        self._bytes = 0

    def add(self, item: Item, result: ItemResult) -> None:
        """Add an item.

        Args:
            item: The scored item.
            result: Its result.
        """
        if ITEMS_IN_PART * len(self._parts) >= MOST_ITEMS or self._bytes > MOST_BYTES:
            return
        self._waiting.append((item, result))
        if len(self._waiting) == ITEMS_IN_PART:
            self._flush()

    def parts(self) -> list[bytes]:
        """Return what the page shows of the items that were added."""
        self._flush()
        return list(self._parts)

    def _flush(self) -> None:
        if self._waiting:
            self._parts.append(page_part(self._waiting))
            self._bytes += len(self._parts[-1])
            self._waiting = []

    def render(
        self, report: Report, about: PageAbout | None = None, images: Images | None = None
    ) -> str:
        """Return the page.

        Args:
            report: The report of the run.
            about: Title, inputs and baseline.
            images: Where pictures come from; None for no pictures.

        Returns:
            A complete HTML document that can be encoded as UTF-8.
        """
        self._flush()
        return render_parts(self._parts, report, about or PageAbout(), images or Images())


def render_parts(
    parts: Sequence[bytes],
    report: Report,
    about: PageAbout,
    images: Images,
    live: Markup | None = None,
) -> str:
    """Return the page of a run.

    Args:
        parts: What the page shows of the items, in order.
        report: The report of the run.
        about: Title, inputs and baseline.
        images: Where pictures come from.
        live: How far a run under way is, for a page that keeps itself up to date.
    """
    parts = held(parts)
    columns = merged(map(read_columns, parts))
    name = about.title or report.metric
    head = page_head([(name, report)], [columns], [about.content or content_digest(parts)])
    screen = [links(about.overview), *([live] if live else []), *first_screen(report, about)]
    body = [first(*screen, _more(report, head["count"]), live=live is not None), app()]
    data = [
        *data_blocks(head, columns_json([columns]), map(packed_details, parts)),
        *image_blocks(columns, images),
    ]
    title = f"{name} ({report.variant}) – Hallujudge"
    scripts = ("app.js", *(["live.js"] if live else []))
    return document(title, body, data, scripts=scripts, pictures=images.policy)


def first(*content: Markup, live: bool) -> Markup:
    """Return the part of a page above its items.

    Args:
        content: What it shows.
        live: Whether ``live.js`` looks for newer content.
    """
    return element("div", *content, id="first", **({"data_live": ""} if live else {}))


def held(parts: Iterable[bytes]) -> list[bytes]:
    """Return the parts that a page holds: the first ones, up to its limits."""
    kept: list[bytes] = []
    size = 0
    for part in parts:
        if ITEMS_IN_PART * len(kept) >= MOST_ITEMS or size > MOST_BYTES:
            break
        kept.append(part)
        size += len(part)
    return kept


def content_digest(parts: Iterable[bytes]) -> str:
    """Return a hash of what a page shows of its items."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def page_head(
    runs: Sequence[tuple[str, Report]], columns: Sequence[Columns], contents: Sequence[str]
) -> dict[str, Any]:
    """Return the head of a page's data: titles, charts and the number of items.

    Args:
        runs: Title and report of each run.
        columns: The columns of each run.
        contents: What tells each run from those of other responses scored in the same way.
    """
    first = columns[0]
    names = [run_identity(r.signature, of) for (_, r), of in zip(runs, contents, strict=True)]
    return {
        "runs": [
            {"title": clean(title), "signature": clean(report.signature), "id": name}
            for (title, report), name in zip(runs, names, strict=True)
        ],
        "count": len(first.of("ids")),
        "chunk": ITEMS_IN_PART,
        "measures": _measures(first),
        "facets": [
            {"name": name, "label": title, "rates": rates}
            for name, (title, rates) in first.charts("facets").items()
        ],
        "words": _words(first),
        "terms": [{"name": n, "label": title} for n, title in first.charts("terms").items()],
        "key": f"hallujudge:labels:{'-'.join(names)}",
    }


def _words(columns: Columns) -> Sequence[str]:
    """Return what verdicts are called; where items have several kinds, right and wrong."""
    found = list(columns.charts("words").values())
    return found[0] if len(found) == 1 else ANSWER_WORDS


def _measures(columns: Columns) -> list[dict[str, str]]:
    titles = {**columns.charts("scores"), **_MEASURES}
    held = {name for of in columns.of("measures") for name in of}
    return [{"name": name, "label": title} for name, title in titles.items() if name in held]


def data_blocks(
    head: dict[str, Any], columns: dict[str, Any], details: Iterable[bytes]
) -> Iterator[Markup]:
    """Yield the data of a page as script elements that the browser does not run.

    Args:
        head: The head.
        columns: The columns of all items.
        details: Compressed details of each chunk.
    """
    # Text inside a script element must not end it.
    text = json.dumps(head, ensure_ascii=False).replace("<", "\\u003c")
    yield element("script", Markup(text), type="application/json", id="page-head")
    yield _block("page-columns", packed(columns, level=9))
    for number, chunk in enumerate(details):
        yield _block(f"page-chunk-{number}", chunk)


def image_blocks(columns: Columns, images: Images) -> Iterator[Markup]:
    """Yield the sources of the items' pictures, one block for each chunk; nothing without any."""
    pairs = zip(columns.of("ids"), columns.of("groups"), strict=True)
    sources = [images.source(item_id, group) for item_id, group in pairs]
    if not any(sources):
        return
    for number, first in enumerate(range(0, len(sources), ITEMS_IN_PART)):
        yield _block(f"page-images-{number}", packed(sources[first : first + ITEMS_IN_PART]))


def document(
    title: str,
    body: Iterable[Markup],
    data: Iterable[Markup] = (),
    *,
    scripts: Sequence[str] = ("app.js",),
    pictures: str = "data:",
    forms: str = "'none'",
) -> str:
    """Return a complete HTML document.

    Args:
        title: Title of the page.
        body: What it shows.
        data: Its data.
        scripts: Its scripts; with ``live.js`` it may ask the viewer that serves it for newer data.
        pictures: What the content security policy allows as a picture.
        forms: Where the policy lets forms go.
    """
    css, sources = asset("page.css"), [asset(name) for name in scripts]
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(f"'{digest(source)}'" for source in sources),
        "style-src": f"'{digest(css)}'",
        "img-src": pictures if sources else "",
        "connect-src": "'self'" if "live.js" in scripts else "",
        "base-uri": "'none'",
        "form-action": forms,
    }
    told = "; ".join(f"{name} {value}" for name, value in policy.items() if value)
    run = [element("script", Markup(source)) for source in sources]
    content = element("body", element("main", *body), *data, *run)
    return f"<!doctype html>\n{element('html', _head(title, told), content, lang='en')}\n"


def _head(title: str, policy: str) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        # Our own CSS and script hold no text that would end their element. Escaping them would
        # change the text that the policy's digests cover.
        element("style", Markup(asset("page.css"))),
    )


def app() -> Markup:
    """Return where the script shows the items."""
    told = "This page needs JavaScript to show the items; the scores above are complete."
    return element(
        "section",
        element("p", "Loading the items…", _class="muted"),
        element("noscript", element("p", told)),
        id="app",
        aria_label="Items",
    )


def links(overview: str = "", *, items: bool = True) -> Markup:
    """Return the links at the top of a page.

    Args:
        overview: Address of the page of all runs; empty for no link to it.
        items: Whether there is a link past the scores, to the items.
    """
    shown = [element("a", "All runs", href=overview)] if overview else []
    shown += [element("a", "To the items", href="#app")] if items else []
    return element("nav", joined(shown, " "), _class="links", aria_label="Page")


def _more(report: Report, count: int) -> Markup:
    if report.coverage.items <= count:
        return Markup("")
    note = (
        f"The page shows the first {count:,} of {report.coverage.items:,} items; items.jsonl has "
        "all of them."
    )
    return element("p", note, _class="muted")


def _block(name: str, data: bytes) -> Markup:
    return element("script", Markup(base64.b64encode(data).decode()), type="text/plain", id=name)
