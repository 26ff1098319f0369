"""A stream that stands for a terminal."""

from __future__ import annotations

import io

__all__ = ["Terminal"]


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True
