"""HTML that is always escaped: text becomes markup in one place only."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from .text import clean

__all__ = ["Content", "Markup", "element", "joined"]


class Markup(str):
    """Text that is markup already. Only :func:`element` and :func:`joined` make it."""

    __slots__ = ()


Content: TypeAlias = "str | Markup"
"""Text, which is escaped, or markup, which is not."""

_VOID = frozenset({"meta", "wbr"})


def element(tag: str, *content: Content, **attributes: str) -> Markup:
    """An element.

    Args:
        tag: Its name.
        content: What it holds; plain text is escaped.
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
    """Parts one after the other; plain text is escaped."""
    return Markup(
        _escaped(separator).join(
            part if isinstance(part, Markup) else _escaped(part) for part in parts
        )
    )


def _escaped(text: str) -> str:
    return html.escape(clean(text), quote=True)
