"""The HTML document: head with its security policy, first screen, data, pictures and script."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from hallujudge.judge_service.settings.connection import masked
from hallujudge.metrics import Item, ItemResult, Report

from ... import media
from ...errors import InvalidInputError, MissingExtraError
from ..item_views import ANSWER_WORDS
from ..report_text import clean
from . import MOST_PAGE_ITEMS
from .first_screen import PageAbout, first_screen, run_identity
from .page_parts import (
    ITEMS_IN_PART,
    MOST_PAGE_BYTES,
    Columns,
    Markup,
    asset,
    columns_json,
    digest,
    element,
    joined,
    packed,
    packed_details,
    page_part,
    read_columns,
)

_IMAGE_TYPES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif"})
# Several times the pictures of COCO; a larger folder is one named by mistake, such as a disk.
_MOST_IMAGES = 1_000_000
# Longest side, in pixels.
_THUMBNAIL = 320
_MOST_PIXELS = 100_000_000
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
# COCO's files are named COCO_val2014_000000000042.jpg, and its ids are 42.
_LAST_DIGITS = re.compile(r"(\d+)\D*$")

ImageSource: TypeAlias = "Callable[[str, str], str]"
"""Returns the source of an item's picture from its id and group; empty if there is none."""

_MEASURES = {"words": "Words of the response", "margin": "Smallest margin of a verdict"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Where the pictures of a page come from."""

    source: ImageSource = field(default=lambda _id, _group: "")
    """Finds an item's picture."""
    policy: str = "data:"
    """What the page's content security policy allows as a picture."""

    @classmethod
    def of(cls, given: str, *, page: Path, embed: bool = False) -> Images:
        """Return the pictures of a folder or of a URL template.

        Args:
            given: A folder, or a URL with ``{id}`` or ``{group}``; empty for no pictures.
            page: Folder of the page; links to files are relative to it.
            embed: Whether thumbnails are embedded, so that the page can be passed on.

        Raises:
            InvalidInputError: The folder doesn't exist, or the URL contains neither name.
            MissingExtraError: Thumbnails need Pillow, which isn't installed.
        """
        if not given:
            return cls()
        if re.match(r"https?://", given):
            return cls(source=_template(given, embed), policy=f"data: {_origin(given)}")
        files = _image_files(Path(given))
        if embed:
            return cls(source=_looked_up(files, _thumbnail_maker()))
        return cls(source=_looked_up(files, _linker(page)), policy="data: file: 'self'")


def _template(given: str, embed: bool) -> ImageSource:
    if embed:
        raise InvalidInputError("pictures at an address can't be embedded; give a folder of files")
    if "{id}" not in given and "{group}" not in given:
        raise InvalidInputError(f"{given!r:.200} names neither {{id}} nor {{group}} of an item")

    def source(item_id: str, group: str) -> str:
        named = {"{id}": item_id, "{group}": group}
        return re.sub(r"\{(?:id|group)\}", lambda m: quote(named[m[0]], safe=""), given)

    return source


def _origin(address: str) -> str:
    match = re.match(r"(https?://[A-Za-z0-9.:\[\]_-]+)(?:/|$)", address)
    if match is None:
        raise InvalidInputError(
            f"{masked(address)!r:.200} is not an address of pictures; write it like "
            "https://example.org/pictures/{id}.jpg"
        )
    return match[1]


@dataclass(frozen=True, slots=True)
class _ImageFiles:
    """The pictures of a folder."""

    names: dict[str, Path]
    """By name and by stem; the first one if several folders have the name."""
    repeated: frozenset[str]
    """Names that several folders have, as frames of several videos do."""
    frames: dict[str, Path]
    """The middle frame of each video, by the name of the folder that holds its frames."""
    numbers: dict[str, Path]
    """By the number at the stem's end."""

    def find(self, name: str) -> Path | None:
        """Return the picture of an id; frame 12 of some video is not the picture of video 12."""
        if name in self.names and name not in self.repeated:
            return self.names[name]
        return self.frames.get(name) or self.names.get(name) or self.numbers.get(name)


def _image_files(folder: Path) -> _ImageFiles:
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: not a folder of pictures; check the path")
    names: dict[str, Path] = {}
    numbers: dict[str, Path] = {}
    repeated: set[str] = set()
    folders: dict[Path, list[Path]] = {}
    for count, path in enumerate(_walk(folder)):
        if count >= _MOST_IMAGES:
            raise InvalidInputError(f"{folder} has more than {_MOST_IMAGES:,} pictures")
        folders.setdefault(path.parent, []).append(path)
        # Two folders may have a file of one name; its whole path is its own.
        names.setdefault(path.relative_to(folder).as_posix(), path)
        for name in (path.name, path.stem):
            if names.setdefault(name, path).parent != path.parent:
                repeated.add(name)
        for name in _number(path.stem):
            numbers.setdefault(name, path)
    frames = {
        held.name: paths[len(paths) // 2]
        for held, paths in folders.items()
        # A video's frames are named after it, or alike in all folders, such as 0001.jpg.
        if held != folder and (paths[0].stem in repeated or paths[0].stem.startswith(held.name))
    }
    return _ImageFiles(names, frozenset(repeated), frames, numbers)


def _walk(folder: Path) -> Iterable[Path]:
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            if Path(name).suffix.lower() in _IMAGE_TYPES:
                yield Path(root, name)


def _number(stem: str) -> list[str]:
    match = _LAST_DIGITS.search(stem)
    return [str(int(match[1]))] if match else []


def _looked_up(files: _ImageFiles, show: Callable[[Path], str]) -> ImageSource:
    def source(item_id: str, group: str) -> str:
        names = [name for key in (group, item_id) for name in (key, Path(key).stem, *_number(key))]
        path = next(filter(None, map(files.find, names)), None)
        return "" if path is None else show(path)

    return source


def _linker(page: Path) -> Callable[[Path], str]:
    base = page.resolve()

    def link(path: Path) -> str:
        return quote(Path(os.path.relpath(path.resolve(), base)).as_posix())

    return link


def _thumbnail_maker() -> Callable[[Path], str]:
    with MissingExtraError.unless_installed("a page with embedded pictures", "images"):
        from PIL import Image, ImageOps

    def thumbnail(path: Path) -> str:
        try:
            with Image.open(path) as image:
                # A small file may decompress to a picture that fills the memory.
                if image.width * image.height > _MOST_PIXELS:
                    return ""
                small = media.shown_colours(ImageOps.exif_transpose(image))
                small.thumbnail((_THUMBNAIL, _THUMBNAIL))
        except (OSError, ValueError, Image.DecompressionBombError):
            return ""
        stream = io.BytesIO()
        small.save(stream, "JPEG", quality=70)
        return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"

    return thumbnail


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
        if ITEMS_IN_PART * len(self._parts) >= MOST_PAGE_ITEMS or self._bytes > MOST_PAGE_BYTES:
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
        live: The progress of a run under way, for a page that updates itself.
    """
    parts = held_parts(parts)
    columns = read_columns(parts)
    name = about.title or report.metric
    head = page_head([(name, report)], [columns], [about.content or content_digest(parts)])
    screen = [page_links(about.overview), *([live] if live else []), *first_screen(report, about)]
    body = [first_section(*screen, _more(report, head["count"]), live=live is not None), page_app()]
    data = [
        *data_blocks(head, columns_json([columns]), map(packed_details, parts)),
        *image_blocks(columns, images),
    ]
    title = f"{name} ({report.variant}) – Hallujudge"
    scripts = ("app.js", *(["live.js"] if live else []))
    return document(title, body, data, scripts=scripts, pictures=images.policy)


def first_section(*content: Markup, live: bool) -> Markup:
    """Return the part of a page above its items.

    Args:
        content: What it shows.
        live: Whether ``live.js`` looks for newer content.
    """
    return element("div", *content, id="first", **({"data_live": ""} if live else {}))


def held_parts(parts: Iterable[bytes]) -> list[bytes]:
    """Return the parts that a page holds: the first ones, up to its limits."""
    kept: list[bytes] = []
    size = 0
    for part in parts:
        if ITEMS_IN_PART * len(kept) >= MOST_PAGE_ITEMS or size > MOST_PAGE_BYTES:
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
        contents: A hash of what each run scored.
    """
    first = columns[0]
    facets, terms = (first.charts.get(kind, {}) for kind in ("facets", "terms"))
    held = {name for of_item in first.facets for name in of_item}
    titles = [title for name, (title, _) in facets.items() if name in held]
    names = [run_identity(r.signature, of) for (_, r), of in zip(runs, contents, strict=True)]
    return {
        "runs": [
            {"title": clean(title), "signature": clean(report.signature), "id": name}
            for (title, report), name in zip(runs, names, strict=True)
        ],
        "count": len(first.ids),
        "chunk": ITEMS_IN_PART,
        "measures": _measures(first),
        "facets": [
            {"name": name, "label": _distinct(name, title, titles), "rates": rates}
            for name, (title, rates) in facets.items()
        ],
        "words": _words(first),
        "terms": [{"name": n, "label": title} for n, title in terms.items()],
        "key": f"hallujudge:labels:{'-'.join(names)}",
    }


def _distinct(name: str, title: str, titles: Sequence[str]) -> str:
    """Return a chart's title; a group's says so if a field of the records has the same one."""
    repeated = name.startswith("field:") and titles.count(title) > 1
    return f"{title} (group of the report)" if repeated else title


def _words(columns: Columns) -> Sequence[str]:
    """Return the words for verdicts; "right" and "wrong" if items have several kinds."""
    found = list(columns.charts.get("words", {}).values())
    return found[0] if len(found) == 1 else ANSWER_WORDS


def _measures(columns: Columns) -> list[dict[str, str]]:
    titles = {**columns.charts.get("scores", {}), **_MEASURES}
    held = {name for of in columns.measures for name in of}
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
    pairs = zip(columns.ids, columns.groups, strict=True)
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
        scripts: Its scripts. With ``live.js`` it may load newer data from its viewer.
        pictures: What the content security policy allows as a picture.
        forms: Where the policy allows forms to be sent.
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
    allowed = "; ".join(f"{name} {value}" for name, value in policy.items() if value)
    run = [element("script", Markup(source)) for source in sources]
    content = element("body", element("main", *body), *data, *run)
    return f"<!doctype html>\n{element('html', _head(title, allowed), content, lang='en')}\n"


def policy_of(page: str) -> str:
    """Return the content security policy of a document."""
    found = _POLICY.search(page)
    assert found is not None, "every document has one"
    return html.unescape(found[1])


def _head(title: str, policy: str) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        # The CSS and scripts of this package contain no closing tag. Escaping them would change
        # the text whose hash is in the policy.
        element("style", Markup(asset("page.css"))),
    )


def page_app() -> Markup:
    """Return the section in which the script shows the items."""
    note = "This page needs JavaScript to show the items; the scores above are complete."
    return element(
        "section",
        element("p", "Loading the items…", _class="muted"),
        element("noscript", element("p", note)),
        id="app",
        aria_label="Items",
    )


def page_links(overview: str = "", *, items: bool = True) -> Markup:
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
