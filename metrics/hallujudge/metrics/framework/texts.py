"""Text that can be encoded as UTF-8."""

from __future__ import annotations

__all__ = ["well_formed"]


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced; JSON can hold them, UTF-8 can't."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
