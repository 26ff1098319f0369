"""Text that can be encoded as UTF-8."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["json_kind", "well_formed"]


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced; JSON can hold them, UTF-8 can't."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_kind(value: object) -> str:
    """Return what a value is called in a JSON file, with its article; for messages."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    names = {list: "a list", tuple: "a list", str: "a text", bool: "a truth value"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else "no JSON")
