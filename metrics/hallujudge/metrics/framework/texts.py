"""Text that can be written down."""

from __future__ import annotations

__all__ = ["well_formed"]


def well_formed(text: str) -> str:
    """The text with lone surrogates, which JSON can hold and UTF-8 can't, replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
