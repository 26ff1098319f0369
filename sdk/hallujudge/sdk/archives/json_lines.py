"""Quick reading of JSON lines: a line is decoded as a whole, in a third of the time.

msgspec accepts less than Python's decoder and returns the same values, except that it keeps the
last of duplicate keys without a word. A line is therefore taken as msgspec decodes it only if it
has two quotes for each text and key of its value: duplicate keys and escaped quotes make it more.
"""

from __future__ import annotations

import io
import struct
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import BinaryIO, NamedTuple, cast

__all__ = ["LineReader", "Mark", "Marks", "Placed", "Span"]

_BOM = b"\xef\xbb\xbf"
_MARK = struct.Struct("<QQQ")
_MARKED_VALUES = 512
_MARKED_BYTES = 1 << 20


class Placed(NamedTuple):
    """A JSON value and its line number."""

    value: object
    """The value."""
    line: int
    """First line of the value, counted from one."""


# A tuple in half the time of the constructor, which is a function in Python.
_placed = cast("Callable[[tuple[object, int]], Placed]", partial(tuple.__new__, Placed))


class Mark(NamedTuple):
    """A place between two lines of a file."""

    values: int = 0
    """Number of values before it."""
    offset: int = 0
    """Number of bytes before it."""
    line: int = 1
    """Number of the line after it."""


class Span(NamedTuple):
    """A part of a file that consists of whole lines."""

    start: Mark
    """Where it begins."""
    size: int
    """Number of its bytes."""


@dataclass(slots=True)
class Marks:
    """Places from which the values of a file can be read, without those before."""

    marks: list[Mark] = field(default_factory=list)
    """A mark at least every 512 values or MiB, the first before the first value."""
    complete: bool = False
    """Whether the file is not packed, and each of its values has a line of its own."""
    nested: bool = False
    """Whether the first value holds records."""
    end: Mark = field(default=Mark(), compare=False)
    """The place after the last line that was read."""

    @property
    def usable(self) -> bool:
        """Whether reading can begin at the marks."""
        return self.complete and not self.nested

    def before(self, position: int) -> Mark:
        """Return the last mark that is not after a value."""
        return self.marks[bisect_right(self.marks, position, key=itemgetter(0)) - 1]

    def extend(self, later: Marks, start: Mark) -> None:
        """Add the marks of the lines that follow.

        Args:
            later: Their marks.
            start: Where they begin, as they were counted.
        """
        values, lines = self.end.values - start.values, self.end.line - start.line
        *moved, self.end = (
            Mark(mark.values + values, mark.offset, mark.line + lines)
            for mark in (*later.marks, later.end)
        )
        self.marks += moved
        self.complete = later.complete

    def to_bytes(self) -> bytes:
        """Return the marks as bytes, for :meth:`of`."""
        return b"".join(_MARK.pack(*mark) for mark in self.marks)

    @classmethod
    def of(cls, data: bytes) -> Marks:
        """Return the marks of their bytes.

        Raises:
            ValueError: The bytes are not marks.
        """
        try:
            return cls([Mark(*numbers) for numbers in _MARK.iter_unpack(data)], complete=True)
        except struct.error as err:
            raise ValueError(f"not marks: {err}") from err


class LineReader:
    """Reads values that are lines of their own, up to the first that is not.

    Args:
        file: The file, at the start.
        start: Where the file is.
        strict: Decodes a line that msgspec does not; raises ValueError if it is not one value.
        piece: How many bytes are read at a time; a longer line is left to another reader.
        size: How many bytes are read in all; 0 for the whole file.
    """

    def __init__(
        self,
        file: BinaryIO,
        start: Mark,
        strict: Callable[[bytes], object],
        piece: int,
        size: int = 0,
    ) -> None:
        self._file = file
        self._left = size or sys.maxsize
        self._strict = strict
        self._piece = piece
        # Imported here because clients of a server start without it.
        from msgspec import MsgspecError
        from msgspec.json import Decoder

        self._decode = Decoder().decode
        self._refused = (MsgspecError, RecursionError)
        self._start = start
        self._held = b""
        self._bom = 0
        self._read = False
        self.count = start.values
        """Number of values before the first line that was not read."""
        self.line = start.line
        """Number of that line."""
        self.ended = False
        """Whether everything was read."""

    def values(self, marks: Marks | None = None) -> Iterator[Placed]:
        """Yield the values.

        Args:
            marks: Where to note places.
        """
        value_of, count, offset, line = self._value, *self._start
        due, due_offset = count, offset
        for lines in self._lines():
            for index, text in enumerate(lines):
                if text and not text.isspace():
                    try:
                        value = value_of(text) if count else self._first(text)
                    except (ValueError, RecursionError):
                        self._give_back(lines[index:])
                        self.count, self.line = count, line
                        return
                    if count >= due or offset >= due_offset:
                        due, due_offset = count + _MARKED_VALUES, offset + _MARKED_BYTES
                        if marks is not None:
                            marks.marks.append(Mark(count, offset + self._bom, line))
                    yield _placed((value, line))
                    count += 1
                offset += len(text) + 1
                line += 1
        self.count, self.line = count, line
        self.ended = self._read and count > 0
        if marks is not None:
            # What follows the last line feed was counted as a line, too.
            marks.end = Mark(count, offset - 1, line - 1)

    def rest(self) -> BinaryIO:
        """Return a file of what was not read."""
        return io.BufferedReader(_Rest(self._held, self._taken))

    def _taken(self, size: int) -> bytes:
        """Return the next bytes of the file, up to a number, as far as they are to be read."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data

    def _lines(self) -> Iterator[list[bytes]]:
        """Yield whole lines, a piece of the file at a time."""
        if self._start.offset == 0:
            start = self._taken(len(_BOM))
            self._held = start.removeprefix(_BOM)
            self._bom = len(start) - len(self._held)
        while piece := self._taken(self._piece):
            lines = (self._held + piece).split(b"\n")
            self._held = lines.pop()
            yield lines
            if len(self._held) > self._piece:
                return
        self._read = True
        yield [self._held]

    def _give_back(self, lines: list[bytes]) -> None:
        """Keep lines for :meth:`rest`; the last one of the file has no line end."""
        self._held = b"\n".join(lines if self._read else [*lines, self._held])

    def _first(self, text: bytes) -> object:
        """Return the first value, unless it begins a list of values."""
        if text.lstrip().startswith(b"["):
            raise ValueError("a list")
        return self._value(text)

    def _value(self, text: bytes) -> object:
        """Return the value of a line.

        Raises:
            ValueError: The line is not one value.
        """
        try:
            value = self._decode(text)
        except self._refused:
            return self._strict(text)
        quotes = text.count(b'"')
        if type(value) is dict:
            kinds = list(map(type, value.values()))
            if quotes == 2 * (len(kinds) + kinds.count(str)):
                return value
        return value if quotes == 2 * _texts(value) else self._strict(text)


def _texts(value: object) -> int:
    """Return the number of texts and keys of a value."""
    count, values = 0, [value]
    while values:
        objects = [value for value in values if type(value) is dict]
        lists = [value for value in values if type(value) is list]
        count += sum([type(value) is str for value in values]) + sum(map(len, objects))
        # All values of a depth together: references are thousands of short lists.
        values = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(lists)]
    return count


class _Rest(io.RawIOBase):
    """What was read of a file already, then the rest of the file."""

    def __init__(self, held: bytes, more: Callable[[int], bytes]) -> None:
        self._held = held
        self._more = more

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]  # io passes a writable buffer
        data = self._held[: len(view)] or self._more(len(view))
        self._held = self._held[len(data) :]
        view[: len(data)] = data
        return len(data)
