"""Checking the slices of an archive in several processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .json_lines import Mark, Span
from .local_files import is_plain, open_binary

if TYPE_CHECKING:
    from .inputs import CheckedSlice, SliceReader

__all__ = ["Spread", "spans_of", "spread", "spread_by"]

_SLICE_BYTES = 1 << 21
# A longer line is not read as one, so that the archive is checked as a whole.
_LINE_BYTES = 1 << 20


class Spread(Protocol):
    """Has slices checked by several processes."""

    def check(self, reader: SliceReader, spans: Iterable[Span]) -> Iterator[CheckedSlice | None]:
        """Yield what each slice holds, in their order; None if a process can't tell."""
        ...


_spread: ContextVar[Spread | None] = ContextVar("spread", default=None)


@contextmanager
def spread_by(given: Spread) -> Iterator[None]:
    """Let the archives that are read in this context be checked by several processes."""
    token = _spread.set(given)
    try:
        yield
    finally:
        _spread.reset(token)


def spread() -> Spread | None:
    """Return what has slices checked in this context; None if this process does so alone."""
    return _spread.get()


def spans_of(path: Path, size: int = _SLICE_BYTES) -> Iterator[Span]:
    """Yield slices of whole lines; none of a packed file.

    Values and lines are counted from the beginning of each slice. Only the first slice begins with
    value 0, because the first value of an archive may be read in another way.

    Args:
        path: The archive.
        size: About how many bytes a slice has.
    """
    with open_binary(path) as file:
        end = os.fstat(file.fileno()).st_size if is_plain(file) else 0
        at = 0
        while at < end:
            file.seek(at + size)
            file.readline(_LINE_BYTES)
            after = min(file.tell(), end)
            yield Span(Mark(min(at, 1), at, 1), after - at)
            at = after
