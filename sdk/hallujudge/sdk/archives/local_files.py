"""Files as bytes and text: gzip is unpacked, standard input is copied, sizes are limited."""

from __future__ import annotations

import gzip
import io
import stat
import sys
import tempfile
import zlib
from pathlib import Path
from typing import IO, BinaryIO, cast

from ..errors import ArchiveError

__all__ = ["STDIN", "copy_of_stdin", "open_binary", "open_text", "read_bytes", "suffix_of"]

STDIN = "-"
"""Path that means standard input."""

_MAX_BYTES = 1 << 28
_MAX_STDIN_BYTES = 1 << 33
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
_XLSX = b"PK\x03\x04"


def open_binary(path: Path) -> BinaryIO:
    """Open a file; a gzip file is unpacked while it is read.

    Raises:
        ArchiveError: The path is a pipe or a device.
        OSError: The file can't be opened.
    """
    _refuse_pipe(path)
    file = path.open("rb")
    packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    if not packed:
        return file
    # The stream closes this file.
    return cast("BinaryIO", _Unpacked(file))


def open_text(path: Path) -> IO[str]:
    """Open a file as UTF-8 text, without translating line ends.

    Raises:
        ArchiveError: The path is a pipe or a device.
        OSError: The file can't be opened.
    """
    # utf-8-sig: some editors write a byte order mark, which is not part of the data.
    return io.TextIOWrapper(open_binary(path), encoding="utf-8-sig", newline="")


def read_bytes(path: Path, limit: int = _MAX_BYTES) -> bytes:
    """Return a file's content, unpacked.

    Raises:
        ArchiveError: The file can't be read, or has more than ``limit`` bytes.
    """
    try:
        with open_binary(path) as file:
            data = file.read(limit + 1)
    except OSError as err:
        raise ArchiveError(f"{path}: {err.strerror or err}; check the path") from err
    if len(data) > limit:
        raise ArchiveError(f"{path}: more than {limit:,} bytes; split the file")
    return data


def suffix_of(path: Path) -> str:
    """Return a file's suffix in lower case, without ``.gz``."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def copy_of_stdin() -> Path:
    """Return a temporary file with the content of standard input and a suffix that fits it.

    Archives are read more than once, which a pipe does not allow. The file is deleted when this
    process ends.

    Raises:
        ArchiveError: Standard input is a terminal, is closed, or is too large.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise ArchiveError("standard input is a terminal; pipe a file into the command")
    folder = tempfile.TemporaryDirectory(prefix="hallujudge-")
    _FOLDERS.append(folder)
    path = Path(folder.name) / "standard-input"
    left = _MAX_STDIN_BYTES
    with path.open("wb") as file:
        while piece := sys.stdin.buffer.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise ArchiveError(f"standard input has more than {_MAX_STDIN_BYTES:,} bytes")
            file.write(piece)
    return path.rename(path.with_suffix(_suffix_by_content(path)))


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _suffix_by_content(path: Path) -> str:
    with path.open("rb") as file:
        if file.read(len(_XLSX)) == _XLSX:
            return ".xlsx"
    with open_binary(path) as file:
        start = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] in (b"{", b"[", b""):
        return ".json"
    header = start.partition(b"\n")[0]
    return ".tsv" if b"\t" in header else ".csv"


class _Unpacked(gzip.GzipFile):
    """A gzip file that raises OSError if it is damaged."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._packed = file

    def read(self, size: int | None = -1) -> bytes:
        try:
            return super().read(size)
        except (EOFError, zlib.error) as err:
            raise OSError(f"the gzip file is damaged or cut off: {err}") from err

    def read1(self, size: int = -1) -> bytes:
        try:
            return super().read1(size)
        except (EOFError, zlib.error) as err:
            raise OSError(f"the gzip file is damaged or cut off: {err}") from err

    def close(self) -> None:
        super().close()
        self._packed.close()


def _refuse_pipe(path: Path) -> None:
    """Refuse pipes and devices: archives are read more than once."""
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
        raise ArchiveError(
            f"{path}: a pipe or a device, which can't be read twice; save it to a file, or pipe "
            "it into the command and name it '-'",
            metadata={"path": str(path)},
        )
