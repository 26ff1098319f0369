"""Streaming reader of JSON files; it reads large files in pieces.

Supported layouts: one object per line; a list of objects; concatenated objects, pretty-printed or
not; and one object that holds the records (``{"imgToEval": {…}}``, ``{"sentences": […]}``, or
id -> text).
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from hallujudge.judge_service.errors import fault_of
from hallujudge.metrics.framework.json_values import well_formed, well_formed_value

from ..errors import ArchiveError
from .bad_records import Unreadable, finds_unreadable
from .json_lines import BLOCK, WHOLE, Batch, FilePart, LineReader, Placed, list_of
from .local_files import OpenPath, is_plain, open_binary, open_text, reading, refuse_other_start

_EMPTY = "the file is empty or holds white space only; check that it was written"
# Characters that are read at a time.
_CHUNK = 1 << 20
# One value is held in memory; a larger one is more likely a file of another kind.
MAX_VALUE_CHARS = 1 << 28
# One of several is the record of an item, in which a picture has a few million characters.
MAX_RECORD_CHARS = 1 << 25
# Literals, escapes and practical numbers are shorter, so a cut one begins this close to the end.
_LONGEST_TOKEN = 64
# How much of a list a message shows, and how much of a value.
_NAMED, _NAMED_CHARS, _VALUE_CHARS = 10, 160, 500
# A long value is decoded again with each piece, so pieces grow with what is held already.
_GROWTH = 7
# Where two objects of a list meet on one line: what precedes may be decoded at once.
_MEETINGS = ("}, {", "},{")
# Values that are passed on together, limited by number and by length.
_GATHERED, _GATHERED_CHARS = 128, 1 << 16
_SPACE = re.compile(r"\s*")


def _kept(path: Path) -> Placed | None:
    """Return the only value of a file, if it was read before."""
    known = path.only if isinstance(path, OpenPath) else None
    return known if isinstance(known, Placed) else None


def _keep(path: Path, text: str, line: int) -> Placed | None:
    """Return the only value of a file's text, and keep it where others will read the file.

    It takes a tenth of the time of Python's decoder; None if that must look at the text.
    """
    values = list_of(f"[{text}]".encode())
    if values is None or len(values) != 1:
        return None
    placed = Placed(values[0], line)
    if isinstance(path, OpenPath):
        path.only = placed
    return placed


def read_values(
    path: Path, part: FilePart = WHOLE, *, chunk_chars: int = _CHUNK
) -> Iterator[Placed]:
    """Yield the top-level values of a file, and the entries of a top-level list one by one.

    Args:
        path: The file.
        part: What is read of it.
        chunk_chars: How many characters are read at a time.

    Raises:
        ArchiveError: The file can't be read, is empty, or is not JSON; the message names the line.
    """
    batches = read_batches(path, part, chunk_chars=chunk_chars)
    return (Placed(*pair) for batch in batches for pair in zip(*batch, strict=True))


def read_batches(
    path: Path, part: FilePart = WHOLE, *, chunk_chars: int = _CHUNK
) -> Iterator[Batch]:
    """Yield the values of :func:`read_values`, many at a time where lines hold one each."""
    with reading(path), open_binary(path) as file:
        if (known := _kept(path)) is not None:
            yield Batch((known.value,), (known.line,))
            return
        if part.start.offset:
            file.seek(part.start.offset)
        else:
            refuse_other_start(path, file)
        lines = LineReader(file, part, _line_value, chunk_chars)
        yield from _batches_of(lines, path, chunk_chars)
        if lines.ended and part.marks is not None:
            # Reading can't begin in the middle of a packed file.
            part.marks.complete = is_plain(file)


def _batches_of(lines: LineReader, path: Path, chunk_chars: int) -> Iterator[Batch]:
    yield from lines.batches()
    if lines.ended:
        return
    # Values of several lines, several in a line, a list, damaged or oversized ones.
    with io.TextIOWrapper(lines.rest(), encoding="utf-8", newline="") as stream:
        reader = _Reader(stream, path, chunk_chars, lines)
        yield from _gathered(reader, reader.more_values() if lines.count else reader.values())


def _gathered(reader: _Reader, values: Iterator[Placed | Batch]) -> Iterator[Batch]:
    """Yield values some at a time, and those before an error before it is raised."""
    found: list[Placed] = []
    began = 0
    try:
        for placed in values:
            if isinstance(placed, Batch):
                if found:
                    yield Batch(*zip(*found, strict=True))
                yield placed
                found, began = [], reader.taken
                continue
            found.append(placed)
            if len(found) == _GATHERED or reader.taken - began > _GATHERED_CHARS:
                yield Batch(*zip(*found, strict=True))
                found, began = [], reader.taken
    except (ArchiveError, OSError, UnicodeDecodeError):
        if found:
            yield Batch(*zip(*found, strict=True))
        raise
    if found:
        yield Batch(*zip(*found, strict=True))


def _line_value(text: bytes) -> object:
    """Return the value of a line, with the checks that :func:`read_values` promises.

    Raises:
        ValueError: The line is not one value.
    """
    return well_formed_value(json.loads(text.decode(), object_pairs_hook=_object))


def read_json(path: Path) -> object:
    """Return the only value of a file.

    Raises:
        ArchiveError: The file can't be read or does not hold exactly one value.
    """
    if (known := _kept(path)) is not None:
        return known.value
    text = read_text(path)
    if (only := _keep(path, text, 1 + text.count("\n", 0, _space_end(text, 0)))) is not None:
        return only.value
    if not text.strip():
        raise ArchiveError(f"{path}: {_EMPTY}")
    return read_json_bytes(text, str(path))


def read_text(path: Path) -> str:
    """Return the text of a file that is read in one piece.

    Raises:
        ArchiveError: The file can't be read, is not UTF-8 or is too large.
    """
    with reading(path), open_text(path) as stream:
        text = stream.read(MAX_VALUE_CHARS + 1)
    if len(text) > MAX_VALUE_CHARS:
        raise ArchiveError(f"{path}: more than {MAX_VALUE_CHARS:,} characters; split the file")
    return text


def read_json_bytes(text: str | bytes, place: str) -> object:
    """Return the only value of a text.

    Args:
        text: The text, or its bytes as UTF-8.
        place: Where it is from, for messages.

    Raises:
        ArchiveError: The text does not hold exactly one value.
    """
    try:
        return well_formed_value(json.loads(text, object_pairs_hook=_object))
    except RecursionError as err:
        raise ArchiveError(f"{place}: nested too deeply; write flat objects") from err
    except _RefusedError as err:
        raise ArchiveError(f"{place}: {err}") from err
    except ValueError as err:
        raise ArchiveError(
            f"{place}: not JSON: {err}; correct it, or write the file again"
        ) from err


class _Reader:
    """Decodes values from a stream; the buffer grows only as far as the largest value needs."""

    def __init__(self, stream: IO[str], path: Path, chunk_chars: int, before: LineReader) -> None:
        self._decode_block, self._objects_in = before.decode_block, before.objects_in
        self._stream = stream
        self._path = path
        self._chunk_chars = chunk_chars
        # Tools write NaN for scores of their own. As an id, a text or a confidence it is refused.
        self._decoder = json.JSONDecoder(object_pairs_hook=_object)
        self._buffer = ""
        self._at = 0
        self._line = before.line
        self._ended = False
        self._single_before = 0
        self.taken = 0
        """Number of characters that were decoded."""

    def values(self) -> Iterator[Placed | Batch]:
        """Yield the values of a whole file, many at a time where a line of a list has many."""
        first = self._peek()
        if not first:
            raise ArchiveError(
                f"{self._path}: {_EMPTY}",
                metadata={"path": str(self._path)},
            )
        if first == "[":
            self._skip(1)
            yield from self._list()
        elif (only := self._only()) is not None:
            yield only
        else:
            yield from self.more_values()

    def _only(self) -> Placed | None:
        """Return the value of a file that holds one which is longer than a piece; or None."""
        if len(self._buffer) < self._chunk_chars:
            return None
        try:
            self._decoder.raw_decode(self._buffer, self._at)
        # Cut off, or no JSON, which the reader of single values reports.
        except (ValueError, RecursionError):
            while len(self._buffer) - self._at <= MAX_VALUE_CHARS and self._more(MAX_VALUE_CHARS):
                pass
        if not self._ended:
            return None
        line, text = self._line, self._buffer[self._at :]
        if (placed := _keep(self._path, text, line)) is not None:
            self._skip(len(text))
        return placed

    def more_values(self) -> Iterator[Placed]:
        """Yield the values that follow others; bad lines too where they are looked for."""
        while self._peek():
            line = self._line
            try:
                yield self._value()
            except ArchiveError as err:
                if not finds_unreadable() or not self._skip_line():
                    raise
                problem = f"{self._path} line {line}: it ends in the middle of a value"
                here = err.metadata["line"] == str(line)
                yield Placed(Unreadable(str(err) if here else problem), line)

    def _skip_line(self) -> bool:
        """Go to the next line; return whether lines have a value each, as the next one shows."""
        while (end := self._buffer.find("\n", self._at)) < 0 and self._more():
            pass
        self._skip((end + 1 or len(self._buffer)) - self._at)
        return self._peek() in ("{", "")

    def _list(self) -> Iterator[Placed | Batch]:
        if self._peek() == "]":
            self._skip(1)
        else:
            while True:
                line = self._line
                if values := self._several():
                    yield Batch(values, [line] * len(values))
                else:
                    yield self._value()
                mark = self._peek()
                if mark not in {",", "]"}:
                    raise self._error(
                        "the list is not closed; the file may be truncated: copy it again"
                    )
                self._skip(1)
                if mark == "]":
                    break
        if self._peek():
            raise self._error("unexpected text after the end of the list; remove it")

    def _several(self) -> list[object] | None:
        """Return the next values of a list if they are on one line; they are decoded at once.

        They end where two objects meet. If that place is inside a text or a value, what precedes it
        is not JSON, and these values are decoded one by one.
        """
        if self._at < self._single_before:
            return None
        if len(self._buffer) - self._at < BLOCK:
            # Otherwise the values of the last block of each piece would be decoded one by one.
            self._more()
        most = self._at + BLOCK
        self._single_before = most
        ends = (self._buffer.rfind(meeting, self._at, most) for meeting in _MEETINGS)
        end = next((end + 1 for end in ends if end > 0), 0)
        # All values of a block get the number of one line.
        if not end or self._buffer.find("\n", self._at, end) >= 0:
            return None
        block = f"[{self._buffer[self._at : end]}]".encode()
        values = None if self._decode_block is None else self._decode_block(block, False)
        values = self._objects_in(block, lines=False) if values is None else values
        if values is not None:
            self._single_before = end
            self._skip(end - self._at)
        return values

    def _peek(self) -> str:
        """Return the next character that is not white space; empty at the end of the file."""
        while True:
            mark = self._buffer[self._at : self._at + 1]
            # Most values follow no white space, which none of these characters is.
            if "!" <= mark <= "~":
                return mark
            end = _space_end(self._buffer, self._at)
            self._skip(end - self._at)
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _skip(self, count: int) -> None:
        self._line += self._buffer.count("\n", self._at, self._at + count)
        self._at += count
        self.taken += count

    def _value(self) -> Placed:
        self._peek()
        line = self._line
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except RecursionError as err:
                raise self._error("nested too deeply; write flat objects") from err
            except _RefusedError as err:
                raise self._error(str(err)) from err
            except json.JSONDecodeError as err:
                if self._may_be_cut(err) and self._more():
                    continue
                raise self._decode_error(err) from err
            except ValueError as err:
                raise self._error(f"{fault_of(err)}; shorten it or write it as a text") from err
            # A number at the end of the buffer may continue in the next piece.
            open_ended = end == len(self._buffer) and not isinstance(value, (dict, list, str))
            if open_ended and self._more():
                continue
            self._skip(end - self._at)
            return Placed(well_formed_value(value), line)

    def _more(self, most: int | None = None) -> bool:
        """Read more text, several times what the buffer holds: long values are decoded again.

        Args:
            most: Maximum number of characters of a value; by default that of a record.
        """
        most = most or MAX_RECORD_CHARS
        if self._ended:
            return False
        held = self._buffer[self._at :]
        if len(held) > most:
            raise self._error(
                f"one value has more than {most:,} characters; split it, or check that the file "
                "is what you meant"
            )
        wanted = min(_GROWTH * len(held), most + 1 - len(held))
        piece = self._stream.read(max(self._chunk_chars, wanted))
        if not piece:
            self._ended = True
            return False
        self._single_before -= self._at
        self._buffer, self._at = held + piece, 0
        return True

    def _may_be_cut(self, err: json.JSONDecodeError) -> bool:
        """Return whether the decoder may have failed only because the buffer ends."""
        # The place of this error is where the text begins, however long it is.
        unterminated = err.msg.startswith("Unterminated string")
        return unterminated or len(self._buffer) - err.pos < _LONGEST_TOKEN

    def _decode_error(self, err: json.JSONDecodeError) -> ArchiveError:
        line = self._line + self._buffer.count("\n", self._at, err.pos)
        rest = self._buffer[err.pos :].strip().partition("\n")[0]
        cut_off = not rest or err.msg.startswith("Unterminated string")
        problem = (
            "the file ends in the middle of a value and may be truncated; copy it again"
            if cut_off
            else f"not JSON ({err.msg}, found {rest[:40]!r}); correct it there"
        )
        return self._error(problem, line)

    def _error(self, problem: str, line: int | None = None) -> ArchiveError:
        place = f"{self._path} line {line or self._line}"
        return ArchiveError(
            f"{place}: {problem}",
            metadata={"path": str(self._path), "line": str(line or self._line)},
        )


def _space_end(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    assert match is not None, "the pattern matches nothing too"
    return match.end()


class _RefusedError(ValueError):
    """JSON that Python's decoder accepts and this reader refuses."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object without duplicate keys; the decoder would silently keep the last value."""
    values = {well_formed(key): well_formed_value(value) for key, value in pairs}
    if len(values) == len(pairs):
        return values
    keys = Counter(well_formed(key) for key, _ in pairs)
    duplicates = [key for key, count in keys.items() if count > 1]
    raise _RefusedError(f"duplicate keys in one object: {named(duplicates)}; keep one of each")


def amount(number: int, one: str, more: str) -> str:
    """Return a number with its noun and verb: ``1 answer is``, ``2,000 answers are``."""
    return f"{number:,} {one if number == 1 else more}"


def named(values: Sequence[str]) -> str:
    """List up to ten values, fewer if they are long, then how many more there are.

    Characters that a terminal obeys are escaped, and long values are cut.
    """
    first = [_one_line(value) for value in values[:_NAMED]]
    count = size = 0
    for value in first:
        size += len(value)
        if count and size > _NAMED_CHARS:
            break
        count += 1
    shown, more = ", ".join(first[:count]), len(values) - count
    return f"{shown} and {more} more" if more > 0 else shown


def shown(value: object) -> str:
    """Return a value as its file has it, shortened; for messages."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _one_line(value: str) -> str:
    cut = value if len(value) <= _VALUE_CHARS else f"{value[:_VALUE_CHARS]}…"
    return cut if cut.isprintable() else repr(cut)[1:-1]
