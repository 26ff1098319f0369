"""Files of UTF-16 text, such as Windows PowerShell and Excel write, as UTF-8."""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import BinaryIO

from ..errors import ArchiveError

__all__ = ["is_utf16", "utf16_reader"]

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PIECE = 1 << 16


def is_utf16(start: bytes) -> bool:
    """Return whether the first four bytes of a file are those of UTF-16 text.

    UTF-32 text may begin with the same two bytes, and goes on with two zeros.
    """
    return start.startswith(_MARKS) and not start.startswith(codecs.BOM_UTF32_LE)


def utf16_reader(file: BinaryIO, path: Path) -> io.BufferedReader:
    """Return a file of UTF-16 text that is read as UTF-8, without the byte order mark.

    Args:
        file: The file, at its start.
        path: Its path, for messages.
    """
    return io.BufferedReader(_Utf16(file, path), _PIECE)


class _Utf16(io.RawIOBase):
    """A file of UTF-16 text as UTF-8; a damaged or cut one is refused when it is read."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._held = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]  # io passes a writable buffer
        while not self._held and (piece := self._piece()) is not None:
            self._held = piece
        data = self._held[: len(view)]
        self._held = self._held[len(data) :]
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        super().close()
        self._file.close()

    def _piece(self) -> bytes | None:
        """Return the next characters; None at the end of the file."""
        packed = self._file.read(_PIECE)
        try:
            text = self._decoder.decode(packed, final=not packed)
        except UnicodeDecodeError as err:
            raise ArchiveError(
                f"{self._path}: the UTF-16 text is damaged or cut off ({err.reason}); save it as "
                "UTF-8",
                metadata={"path": str(self._path)},
            ) from err
        return text.encode() if packed else None
