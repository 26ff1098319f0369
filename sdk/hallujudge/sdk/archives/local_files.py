"""Files as bytes and text: gzip, zstd and UTF-16 are decoded, sizes are limited."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, BinaryIO
from weakref import finalize

from ..errors import ArchiveError, MissingExtraError

STDIN = "-"
"""Path that means standard input."""
ZIP, PARQUET = b"PK\x03\x04", b"PAR1"
"""What zip files, such as workbooks, and Parquet files begin with."""
# Files that are read as a whole, such as tables, are held in memory several times over.
_MAX_BYTES = 1 << 28
_COPIED_PIECE = 1 << 20
_BUFFER = 1 << 17
# First bytes of files that are given in place of text -> what they are.
_OTHER_FORMATS = {
    ZIP: "a zip file; unpack it and give the file in it",
    PARQUET: "a Parquet file; save it as JSON",
    b"%PDF": "a PDF file; give the text in it",
    b"\x89PNG": "an image (PNG); give a text file",
    b"\xff\xd8\xff": "an image (JPEG); give a text file",
    codecs.BOM_UTF32_LE: "UTF-32 text; save it as UTF-8",
    codecs.BOM_UTF32_BE: "UTF-32 text; save it as UTF-8",
}
_TEXT_BYTES = 256
# The first control character that texts have: a tab.
_FIRST_CHARACTER = 9
# The longest mark of a packing: zstd's.
_START_BYTES = 4
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# A frame to skip, with which the files of pzstd begin: 0x184D2A50 to 0x184D2A5F (RFC 8878, 3.1.2).
_SKIPPED_FRAME = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_PACKED = (".gz", ".zst", ".zstd")
MAX_UNPACKED_BYTES = 1 << 36
"""Bytes of an unpacked file. Few of them are held at a time, however small the packed file is."""
MAX_WINDOW_BYTES = 1 << 27
"""Bytes of unpacked data that zstd may refer back to, all of which are held; its own default."""
# The longest header of a zstd frame (RFC 8878, 3.1.1).
_FRAME_HEADER = 18
# A zstd block of a few bytes unpacks to 128 KiB, so that small pieces keep a bomb's size small.
_ZSTD_PIECE = 1 << 10


class OpenPath(type(Path())):  # type: ignore[misc]  # the class of this system's paths
    """The path of a file that is opened once, however often and at how many places it is read.

    So what was checked is what is scored, also if another file gets the name in between. Another
    process gets the plain path.
    """

    _file: io.FileIO | None = None
    only: object = None
    """The decoded value of a file that holds a single one, while its readers share it."""

    def open(self, mode: str = "r", *options: object, **more: object) -> IO[bytes]:
        """Return a reader of the bytes, which begins at the first one."""
        if mode != "rb":
            return super().open(mode, *options, **more)  # type: ignore[no-any-return]
        if self._file is None:
            # By a text: a file keeps its name, and so this path, for which it would stay open.
            self._file = io.FileIO(str(self))
            finalize(self, self._file.close)
        return io.BufferedReader(_Place(self, self._file), _BUFFER)

    def __reduce__(self) -> tuple[type[Path], tuple[str]]:
        return Path, (str(self),)


class RawReader(io.RawIOBase):
    """A file whose bytes are made while it is read."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill a buffer from its start, and return how many bytes were put into it."""
        view = memoryview(buffer)  # type: ignore[arg-type]  # io passes a writable buffer
        data = self.next_bytes(len(view))
        view[: len(data)] = data
        return len(data)

    def next_bytes(self, size: int) -> bytes:
        """Return the next bytes, so many at most; none at the end of the file."""
        raise NotImplementedError


class _Place(RawReader):
    """Reads an open file at a place of its own."""

    def __init__(self, path: OpenPath, file: io.FileIO) -> None:
        # Without its path the file is closed.
        self._path = path
        self._file = file
        self._at = 0

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        assert whence == os.SEEK_SET, "readers of files go to places that they know"
        self._at = offset
        return offset

    def next_bytes(self, size: int) -> bytes:
        # Not from the file's own place, which all of its readers share.
        data = os.pread(self.fileno(), size, self._at)
        self._at += len(data)
        return data


def as_path(source: str | Path) -> Path:
    """Return a path, which stays the one that it is if its file is open.

    Raises:
        ArchiveError: A caller in Python gave another value.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise ArchiveError(
            f"a value of type {type(source).__name__} ({str(source)!r:.80}) is no file; give the "
            "path of one, or its content as a JSON file has it"
        )
    return source if isinstance(source, Path) else Path(source)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file in the errors of a block that reads it.

    Raises:
        ArchiveError: The file can't be read, or its text is not UTF-8.
    """
    try:
        yield
    except OSError as err:
        problem = f"{err.strerror or err}; check the path"
        raise ArchiveError(f"{path}: {problem}", metadata={"path": str(path)}) from err
    except UnicodeDecodeError as err:
        place = f"{path} line {line}" if (line := _line_of_fault(path)) else f"{path}"
        problem = (
            f"not UTF-8 text ({err.reason}); save it as UTF-8, or name its code with "
            "InputOptions(encoding=…)"
        )
        raise ArchiveError(f"{place}: {problem}", metadata={"path": str(path)}) from err


def _line_of_fault(path: Path) -> int:
    """Return the number of the first line that is not UTF-8; 0 if it can't be found again."""
    # Readers decode some bytes at a time, and none of them counts lines.
    decoder, lines = codecs.getincrementaldecoder("utf-8")(), 1
    try:
        with open_binary(path) as file:
            while piece := file.read(_COPIED_PIECE):
                decoder.decode(piece)
                lines += piece.count(b"\n")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as err:
        return lines + err.object.count(b"\n", 0, err.start)
    except (ArchiveError, MissingExtraError, OSError):
        # The file was removed or replaced meanwhile; the fault itself is reported anyway.
        pass
    return 0


_watch: ContextVar[Callable[[Path, BinaryIO], None] | None] = ContextVar("watch", default=None)


@contextmanager
def watching_reads(watch: Callable[[Path, BinaryIO], None]) -> Iterator[None]:
    """Call a function with each file that the block opens, before it is unpacked."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def open_binary(path: Path) -> BinaryIO:
    """Open a file; gzip and zstd are unpacked, and UTF-16 becomes UTF-8, while it is read.

    Raises:
        ArchiveError: The path is a pipe or a device; while a packed or UTF-16 file is read: it is
            damaged, cut off, or unpacks to far too much.
        MissingExtraError: The file is packed with zstd, and no package can unpack it.
        OSError: The file can't be opened.
    """
    _refuse_pipe(path)
    file: BinaryIO = path.open("rb")
    if (watch := _watch.get()) is not None:
        watch(path, file)
    try:
        file = _unpacked(file, path)
        start = _start(file)
        # UTF-32 text may begin with the same two bytes, followed by two zeros.
        if start.startswith(_UTF16) and not start.startswith(codecs.BOM_UTF32_LE):
            file = io.BufferedReader(_Utf16(file, path), _UTF16_PIECE)
    # Whatever ends it, nobody else could close the file.
    except BaseException:
        file.close()
        raise
    return file


def _unpacked(file: BinaryIO, path: Path) -> BinaryIO:
    start = _start(file)
    if start.startswith(_GZIP):
        unpacked = _Unpacked(file, path, "gzip", gzip.GzipFile(fileobj=file).read)
        return io.BufferedReader(unpacked, _BUFFER)
    if start == _ZSTD or _SKIPPED_FRAME.match(start):
        return io.BufferedReader(_Unpacked(file, path, "zstd", zstd_reader(file)), _BUFFER)
    return file


def _start(file: BinaryIO) -> bytes:
    """Return the first four bytes of a file that was just opened."""
    assert isinstance(file, io.BufferedReader), "files are opened with a buffer"
    return file.peek(_START_BYTES)[:_START_BYTES]


def is_plain(file: BinaryIO) -> bool:
    """Return whether a file that :func:`open_binary` opened is neither packed nor UTF-16."""
    return isinstance(getattr(file, "raw", None), (io.FileIO, _Place))


def open_text(path: Path) -> IO[str]:
    """Open a file as UTF-8 text, without translating line ends.

    Raises:
        ArchiveError: The path is a pipe or a device, or the file is known not to be UTF-8 text.
        OSError: The file can't be opened.
    """
    file = open_binary(path)
    try:
        refuse_other_start(path, file)
    except BaseException:
        file.close()
        raise
    # utf-8-sig: some editors write a byte order mark, which is not part of the data.
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def refuse_other_start(path: Path, file: BinaryIO) -> None:
    """Refuse a file that was just opened as :func:`refuse_other_text` does."""
    assert isinstance(file, io.BufferedReader), "files are opened with a buffer"
    refuse_other_text(path, file.peek(_TEXT_BYTES))


def refuse_other_text(path: Path, head: bytes) -> None:
    """Refuse a file whose first bytes are those of another format than UTF-8 text.

    Args:
        path: The file, for messages.
        head: Its first bytes, unpacked.

    Raises:
        ArchiveError: It names what the file is.
    """
    what = next((what for mark, what in _OTHER_FORMATS.items() if head.startswith(mark)), "")
    if head.startswith(ZIP) and path.suffix.lower() == ".xlsx":
        what = "an XLSX workbook; save it as JSON"
    # Of mostly Latin text in UTF-16, every second byte is a zero, and the others are characters.
    letters, zeros = sorted(
        (head[:_TEXT_BYTES:2], head[1:_TEXT_BYTES:2]), key=lambda half: half.count(0)
    )
    are_letters = min(letters, default=0) >= _FIRST_CHARACTER
    if not what and are_letters and 2 * zeros.count(0) >= max(len(zeros), 1):
        what = "UTF-16 text without a byte order mark; save it as UTF-8"
    if what:
        raise ArchiveError(f"{path}: {what}", metadata={"path": str(path)})


def read_bytes(path: Path, limit: int = _MAX_BYTES) -> bytes:
    """Return a file's content, unpacked.

    Raises:
        ArchiveError: The file can't be read, or has more than ``limit`` bytes.
    """
    with reading(path), open_binary(path) as file:
        # One read of `limit` bytes would allocate as many for a small file.
        data = io.BytesIO()
        while data.tell() <= limit and (piece := file.read(_COPIED_PIECE)):
            data.write(piece)
    if data.tell() > limit:
        raise ArchiveError(f"{path}: more than {limit:,} bytes; split the file")
    return data.getvalue()


def unpacked_file(path: Path, magic: bytes) -> Path | io.BytesIO:
    """Return a file that begins with these bytes, or what is in it if it is packed."""
    with path.open("rb") as file:
        plain = file.read(len(magic)) == magic
    return path if plain else io.BytesIO(read_bytes(path))


def suffix_of(path: Path) -> str:
    """Return a file's suffix in lower case, without ``.gz`` or ``.zst``."""
    return (path.with_suffix("") if path.suffix.lower() in _PACKED else path).suffix.lower()


class _Unpacked(RawReader):
    """A packed file that is refused if it is damaged, cut off, or unpacks to far too much."""

    def __init__(self, file: BinaryIO, path: Path, kind: str, read: Callable[[int], bytes]) -> None:
        self._file = file
        self._path = path
        self._kind = kind
        self._read = read
        self._unpacked = 0

    def next_bytes(self, size: int) -> bytes:
        try:
            # A piece at a time, since a small packed file may unpack to any size.
            data = self._read(min(size, _COPIED_PIECE))
        except WindowError as err:
            raise self._error(f"{err}, or unpack it: zstd -d --long=31 {self._path.name}") from err
        except (EOFError, zlib.error, gzip.BadGzipFile, DamagedError) as err:
            raise self._error(f"is damaged or cut off ({err}); copy it again") from err
        self._unpacked += len(data)
        if self._unpacked > MAX_UNPACKED_BYTES:
            raise self._error(f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; split it")
        return data

    def _error(self, problem: str) -> ArchiveError:
        return ArchiveError(
            f"{self._path}: the {self._kind} file {problem}", metadata={"path": str(self._path)}
        )

    def close(self) -> None:
        super().close()
        self._file.close()


class DamagedError(Exception):
    """A packed file can't be unpacked."""


class WindowError(DamagedError):
    """A zstd frame refers back to more data than is held."""

    def __init__(self, window: int) -> None:
        super().__init__(
            f"needs {window >> 20:,} MiB of memory to be unpacked, as zstd --long packs it, and "
            f"the limit is {MAX_WINDOW_BYTES >> 20} MiB; pack it with at most --long=27"
        )


def zstd_reader(file: BinaryIO) -> Callable[[int], bytes]:
    """Return a function that reads unpacked bytes, and raises DamagedError where it can't.

    Args:
        file: The packed file.

    Raises:
        MissingExtraError: Python is older than 3.14 and the package zstandard is not installed.
    """
    with MissingExtraError.unless_installed("reading zstd files", "zstd"):
        import zstandard
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    frame = unpacker.decompressobj()
    held = bytearray()
    header = b""
    ended = True

    def read(size: int) -> bytes:
        nonlocal frame, header, ended
        while len(held) < size:
            packed = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame, header = unpacker.decompressobj(), b""
            packed = packed or file.read(_ZSTD_PIECE)
            header = (header + packed[:_FRAME_HEADER])[:_FRAME_HEADER]
            if not packed:
                if not ended:
                    raise DamagedError("it ends in the middle of its data")
                break
            try:
                held.extend(frame.decompress(packed))
            except zstandard.ZstdError as err:
                raise _zstd_fault(err, header) from err
            ended = frame.eof
        data = bytes(held[:size])
        del held[:size]
        return data

    return read


def _zstd_fault(err: Exception, header: bytes) -> DamagedError:
    """Return why a frame can't be unpacked, by its header."""
    import zstandard

    try:
        window = zstandard.get_frame_parameters(header).window_size
    except zstandard.ZstdError:
        window = 0
    return WindowError(window) if window > MAX_WINDOW_BYTES else DamagedError(str(err))


def _refuse_pipe(path: Path) -> None:
    """Refuse pipes and devices: archives are read more than once."""
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
        raise ArchiveError(
            f"{path}: a pipe or a device, which can't be read twice; save it to a file, or pipe "
            "it into the command and name it '-'",
            metadata={"path": str(path)},
        )


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF16_PIECE = 1 << 16


class _Utf16(RawReader):
    """A file of UTF-16 text as UTF-8; a damaged or cut one is refused when it is read."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._held = b""

    def next_bytes(self, size: int) -> bytes:
        # A piece may end with half a character, of which there is no text yet.
        while not self._held and (piece := self._piece()) is not None:
            self._held = piece
        data = self._held[:size]
        self._held = self._held[size:]
        return data

    def close(self) -> None:
        super().close()
        self._file.close()

    def _piece(self) -> bytes | None:
        """Return the next characters; None at the end of the file."""
        packed = self._file.read(_UTF16_PIECE)
        try:
            text = self._decoder.decode(packed, final=not packed)
        except UnicodeDecodeError as err:
            raise ArchiveError(
                f"{self._path}: the UTF-16 text is damaged or cut off ({err.reason}); save it as "
                "UTF-8",
                metadata={"path": str(self._path)},
            ) from err
        return text.encode() if packed else None
