"""HTML with automatic escaping: only this module turns text into markup."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from .text import clean

__all__ = ["Content", "Markup", "breakable", "element", "joined"]


class Markup(str):
    """Escaped markup. Only :func:`element` and :func:`joined` create it."""

    __slots__ = ()


Content: TypeAlias = "str | Markup"
"""Text, which is escaped, or markup, which is kept as it is."""

_VOID = frozenset({"input", "meta", "wbr"})


def element(tag: str, *content: Content, **attributes: str) -> Markup:
    """Return an HTML element.

    Args:
        tag: Name of the element.
        content: Its content; plain text is escaped.
        attributes: Its attributes, escaped. A leading underscore is dropped (``_class``), others
            become hyphens (``aria_label``).
    """
    shown = "".join(
        f' {name.removeprefix("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
    )
    if tag in _VOID:
        return Markup(f"<{tag}{shown}>")
    return Markup(f"<{tag}{shown}>{joined(content)}</{tag}>")


def joined(parts: Iterable[Content], separator: str = "") -> Markup:
    """Return the concatenated parts; plain text is escaped."""
    return Markup(
        _escaped(separator).join(
            part if isinstance(part, Markup) else _escaped(part) for part in parts
        )
    )


def breakable(text: str, mark: str) -> Markup:
    """Return a text whose lines may break after a mark, such as a bar.

    Args:
        text: The text.
        mark: The mark. Copied text is the same with and without breaks.
    """
    *parts, last = text.split(mark)
    pieces = [piece for part in parts for piece in (f"{part}{mark}", element("wbr"))]
    return joined([*pieces, last])


def _escaped(text: str) -> str:
    return html.escape(clean(text), quote=True)
