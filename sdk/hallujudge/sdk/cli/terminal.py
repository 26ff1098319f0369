"""What standard output is: a terminal with its width, or a file."""

from __future__ import annotations

import shutil
import sys
from typing import IO

__all__ = ["is_terminal", "output_width"]

_WIDTH = 80
_MAX_WIDTH = 120


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a stream is a terminal; it is None if the shell closed it."""
    return stream is not None and stream.isatty()


def output_width() -> int:
    """Return the columns that tables on standard output may take."""
    if not is_terminal(sys.stdout):
        return _WIDTH
    return min(shutil.get_terminal_size().columns, _MAX_WIDTH)
