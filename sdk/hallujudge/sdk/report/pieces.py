"""Parts of the views of items: marked responses, lists, facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from itertools import groupby, islice
from typing import NamedTuple

from hallujudge.metrics import Item

from .markup import Markup, element, joined
from .text import cut

__all__ = ["Mark", "facts", "item_facts", "listing", "marked"]

_RESPONSE_CHARS = 4_000
_LIST_ENTRIES = 60
_ENTRY_CHARS = 400
# Shown elsewhere: in the heading, and as the marked response.
_SHOWN_FIELDS = frozenset({"id", "group_id", "fields", "response"})


class Mark(NamedTuple):
    """A marked span of a response."""

    start: int
    """Position of the first character."""
    end: int
    """Position after the last character."""
    wrong: bool
    """Whether the span is hallucinated; otherwise it is supported."""
    title: str
    """Text of the tooltip."""


def marked(response: str, marks: Sequence[Mark]) -> Markup:
    """Return a response with its marks.

    Marks may overlap, be empty, or be outside the response. A character belongs to the first
    hallucinated mark that covers it, otherwise to the first supported one. A long response is cut.
    """
    text = response[:_RESPONSE_CHARS]
    owner = [-1] * len(text)
    # Later marks cover earlier ones.
    for index in sorted(range(len(marks)), key=lambda i: (marks[i].wrong, -i)):
        start, end = (min(max(at, 0), len(text)) for at in marks[index][:2])
        owner[start:end] = [index] * max(end - start, 0)
    parts: list[str] = []
    at = 0
    for index, run in groupby(owner):
        length = len(list(run))
        parts.append(_painted(text[at : at + length], marks[index] if index >= 0 else None))
        at += length
    left_out = len(response) - len(text)
    if left_out:
        parts.append(element("span", f"… {left_out:,} more characters", _class="muted"))
    return element("p", *parts, _class="response", dir="auto")


def _painted(text: str, mark: Mark | None) -> str:
    if mark is None:
        return text
    return element("mark", text, _class="wrong" if mark.wrong else "right", title=mark.title)


def listing(label: str, entries: Iterable[str], style: str = "") -> Iterator[Markup]:
    """Return a labelled list as one paragraph; empty markup if there are no entries."""
    entries = list(entries)
    if not entries:
        return
    shown = [
        element("span", cut(entry, _ENTRY_CHARS), _class=f"chip {style}".strip())
        for entry in entries[:_LIST_ENTRIES]
    ]
    if len(entries) > _LIST_ENTRIES:
        shown.append(element("span", f"and {len(entries) - _LIST_ENTRIES:,} more", _class="muted"))
    yield element("p", element("b", label), " ", joined(shown, " "), _class="listing")


def item_facts(item: Item) -> Markup:
    """Return an item's fields other than its response, by name."""
    told = {
        entry.name.replace("_", " "): value
        for entry in fields(item)
        if entry.name not in _SHOWN_FIELDS and (value := getattr(item, entry.name))
    }
    return facts(told)


def facts(told: Mapping[str, object]) -> Markup:
    """Return names and values of any type; empty markup if there are none."""
    rows = [
        part
        for key, value in islice(told.items(), _LIST_ENTRIES)
        for part in (element("dt", cut(key, _ENTRY_CHARS)), element("dd", *_value(value)))
    ]
    return element("dl", *rows, _class="facts") if rows else Markup("")


def _value(value: object) -> Iterator[str]:
    """Yield the lines of a value: one line for a scalar, else one line for each entry."""
    if isinstance(value, Mapping):
        entries: Sequence[object] = [f"{key}: {_compact(entry)}" for key, entry in value.items()]
        flat = False
    else:
        entries = value if isinstance(value, list | tuple) else [value]
        flat = all(isinstance(entry, str | int | float | None) for entry in entries)
    shown = map(_compact, entries[:_LIST_ENTRIES])
    if flat:
        yield ", ".join(shown) or "none"
    else:
        yield from (element("div", line) for line in shown)
    if len(entries) > _LIST_ENTRIES:
        yield f" and {len(entries) - _LIST_ENTRIES:,} more"


def _compact(value: object) -> str:
    if isinstance(value, str):
        return cut(value, _ENTRY_CHARS)
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    return cut(json.dumps(value, ensure_ascii=False, default=str), _ENTRY_CHARS)
