"""Reads report.html as its script does, and fails where it is not well formed."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import Any

from hallujudge.metrics import Evidence, Item, ItemResult, Outcome

__all__ = ["Page", "scored"]

VOID = {"input", "meta", "wbr"}
TAGS = VOID.union(
    ("html", "head", "title", "style", "script", "noscript", "body", "main", "header", "section"),
    ("details", "summary", "h1", "h2", "p", "b", "small", "code", "span", "div", "ul", "li"),
    ("table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "button"),
    ("svg", "rect", "circle", "line", "text", "a", "nav", "progress"),
)
PLAIN_TAGS = {"form", "input"}
"""What pages without a script have besides."""


class Page(HTMLParser):
    """A page: its visible text, its attributes and its data."""

    def __init__(self, page: str, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain
        self.source = page
        self.text = ""
        self.attributes: list[tuple[str, str | None]] = []
        self.policy = ""
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._blocks: dict[str, str] = {}
        self._open: list[str] = []
        self._block = ""
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in (TAGS | PLAIN_TAGS if self._plain else TAGS)
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)
        self._block = (given.get("id") or "") if tag == "script" else ""

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        here = self._open[-1] if self._open else ""
        if here == "style":
            self.styles.append(data)
        elif here == "script" and self._block:
            self._blocks[self._block] = self._blocks.get(self._block, "") + data
        elif here == "script":
            self.scripts.append(data)
        else:
            self.text += data

    @property
    def head(self) -> dict[str, Any]:
        """The head of the data."""
        value: dict[str, Any] = json.loads(self._blocks["page-head"])
        return value

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of all items."""
        value: dict[str, Any] = self.packed("page-columns")
        return value

    def packed(self, name: str) -> Any:
        """A compressed block of data."""
        return json.loads(gzip.decompress(base64.b64decode(self._blocks[name])))

    def has(self, name: str) -> bool:
        """Whether the page has a block of data."""
        return name in self._blocks

    def summaries(self) -> list[str]:
        """The line about each item, of every run."""
        return [side["summary"] for item in self.items() for side in item]

    def items(self) -> list[list[dict[str, Any]]]:
        """The details of all items, in a list of one for each run."""
        chunks = -(-self.head["count"] // self.head["chunk"])
        return [item for n in range(chunks) for item in self.packed(f"page-chunk-{n}")]


def scored(item: Item, evidence: Evidence) -> tuple[Item, ItemResult]:
    """Return an item with a result that holds nothing but its evidence."""
    result = ItemResult(
        id=item.id, group_id=item.id, outcome=Outcome.SCORED, scores={}, evidence=evidence
    )
    return item, result
