"""File formats, recognised by content: JSON, CSV, TSV, XLSX, Parquet, Inspect AI's zip files."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from ..errors import ArchiveError
from .json_files import read_json_bytes
from .local_files import (
    PARQUET,
    ZIP,
    DamagedError,
    open_binary,
    reading,
    refuse_other_text,
    suffix_of,
    unpacked_file,
    zstd_reader,
)
from .records import Record, Records
from .table_files import read_csv, read_parquet

# Enough for the marks of all formats and, nearly always, for the header of a table.
_HEAD_BYTES = 4096
# Pickle protocols 2 to 5, which Python 3 writes, begin with these bytes.
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
# The cache of CHAIR's scripts holds the objects of each image.
_CHAIR_CACHE = (
    ". If it is the cache of a CHAIR script, write its objects as JSON with Python, in the folder "
    "of that script: import chair, json, pickle, __main__; __main__.CHAIR = chair.CHAIR; found = "
    "pickle.load(open('chair.pkl', 'rb')).imid_to_objects; json.dump({image: sorted(objects) for "
    "image, objects in found.items()}, open('objects.json', 'w'))"
)
_WEB_PAGE = re.compile(rb"<(!doctype\s+html|html)\b", re.IGNORECASE)
# Programs that pack files in ways that are not read here, by the first bytes of their files.
_PACKERS = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"\x1f\x8b": "gzip inside another packed file",
    b"\x28\xb5\x2f\xfd": "zstd inside another packed file",
}
# Where tar has the mark "ustar" in the header of its first member (POSIX.1-1988).
_TAR_MARK = slice(257, 262)
# Method of zip members, and size of the fixed part of their headers (APPNOTE 4.3.7 and 4.4.5).
_ZSTD = 93
_HEADER_BYTES = 30
# The name is the sample's id, which may hold slashes.
_SAMPLE = re.compile(r"samples/.+\.json")
# A file of these names is JSON even if its first line looks like a table's header.
_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
# Files and streams of Arrow; Feather is such a file.
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
_TABLE_SUFFIXES = (".csv", ".tsv")
# Limits on what a log may unpack to, checked in its directory before anything is unpacked.
_MAX_MEMBERS = 200_000
_MAX_MEMBER_BYTES = 1 << 26
_MAX_ARCHIVE_BYTES = 1 << 33
# Larger numbers in files of Hallujudge are none that it writes.
_HUGE = 1e300
_T = TypeVar("_T")


class Content(Struct, frozen=True, kw_only=True):
    """An archive whose format is known."""

    format: str
    """``json``, ``csv``, ``tsv``, ``xlsx``, ``parquet``, ``eval`` or ``text``."""
    source: Path | Records | list[Record]
    """What :func:`read_records` reads: the path itself of JSON and other text files."""
    notes: tuple[str, ...] = ()
    """Oddities of the file that need no action."""
    about_scores: tuple[str, ...] = ()
    """Those of the notes that concern the scores."""
    status: str = ""
    """How a log's run ended, in the log's own word, such as ``error``; empty if it is no log."""


def read_format(path: Path) -> Content:
    """Return a file's content, by the format that it has.

    Raises:
        ArchiveError: The file can't be read, or no archive has this format.
        MissingExtraError: A package for the format is not installed.
    """
    head = _head(path)
    if head.startswith(ZIP):
        return _zip_content(path)
    if head.startswith(PARQUET):
        return Content(format="parquet", source=read_parquet(path))
    if _PICKLE.match(head) or suffix_of(path) in (".pkl", ".pickle"):
        raise ArchiveError(
            f"{path}: a Python pickle, which could run code and is never opened; give the tool's "
            f"table, JSON or JSON lines file{_CHAIR_CACHE if path.name == 'chair.pkl' else ''}"
        )
    if head.startswith(_ARROW):
        raise ArchiveError(
            f"{path}: an Arrow file, as save_to_disk of Hugging Face's datasets writes it; write "
            "it as Parquet: load_from_disk(FOLDER).to_parquet(PATH)"
        )
    refuse_other_text(path, head)
    _refuse_packed(path, head)
    if b"\0" in head:
        raise ArchiveError(
            f"{path}: binary data of an unknown format; give JSON, JSON lines, CSV, TSV, XLSX or "
            "Parquet"
        )
    return _text_content(path, head)


def _head(path: Path) -> bytes:
    with reading(path), open_binary(path) as file:
        return file.read(_HEAD_BYTES)


def _refuse_packed(path: Path, head: bytes) -> None:
    """Refuse files of other packers, and files that are packed twice.

    Raises:
        ArchiveError: It names the packer.
    """
    packer = next((name for magic, name in _PACKERS.items() if head.startswith(magic)), "")
    if packer or head[_TAR_MARK] == b"ustar":
        raise ArchiveError(f"{path}: packed with {packer or 'tar'}; unpack it")


def _text_content(path: Path, head: bytes) -> Content:
    suffix = suffix_of(path)
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    start = text[:1]
    if suffix == ".xlsx":
        # Named as a workbook without being one: its reader says what is wrong with it.
        return _workbook(path)
    if _WEB_PAGE.match(text):
        raise ArchiveError(
            f"{path}: a web page, such as of a login or an error; download the file itself"
        )
    header = head.partition(b"\n")[0]
    separated = any(mark in header for mark in (b"\t", b",", b";"))
    # Excel's "Unicode Text" is a .txt file; those of Mementos have commas and no tabs.
    named_otherwise = suffix in _JSON_SUFFIXES or (suffix == ".txt" and b"\t" not in header)
    # A table's first column may begin with a bracket only if its file is named as a table.
    if suffix in _TABLE_SUFFIXES or (
        start not in (b"{", b"[", b"") and not named_otherwise and separated
    ):
        records, notes = read_csv(path)
        kind = "tsv" if suffix == ".tsv" or not (b"," in header or b";" in header) else "csv"
        return Content(format=kind, source=records, notes=notes)
    return Content(format="text" if suffix == ".txt" else "json", source=path)


def _workbook(path: Path) -> Content:
    from .workbooks import read_xlsx

    records, notes = read_xlsx(path)
    return Content(format="xlsx", source=records, notes=notes)


def _zip_content(path: Path) -> Content:
    if suffix_of(path) == ".xlsx":
        return _workbook(path)
    with _zip_of(path) as archive:
        names = archive.namelist()
        # Inspect AI writes header.json when a run ends; until then there is a journal alone.
        status = _log_status(archive, str(path)) if "header.json" in names else "started"
    if any(name.startswith("xl/") for name in names):
        return _workbook(path)
    if "header.json" in names or "_journal/start.json" in names:
        records = Records(lambda: _eval_records(path), str(path))
        return Content(format="eval", source=records, status=status)
    raise ArchiveError(
        f"{path}: a zip file that is neither an XLSX workbook nor a log of Inspect AI; unpack it "
        "and give the folder"
    )


# Inspect AI ---------------------------------------------------------------------------------------


def _zip_of(path: Path) -> zipfile.ZipFile:
    """Return an open zip file, which may itself be packed."""
    try:
        return zipfile.ZipFile(unpacked_file(path, ZIP))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as err:
        raise ArchiveError(
            f"{path}: the zip file is damaged or cut off ({err}); copy it again"
        ) from err


def _log_status(archive: zipfile.ZipFile, place: str) -> str:
    place = f"{place}, header.json"
    header = read_json_bytes(_member(archive, archive.getinfo("header.json"), place), place)
    return str(header.get("status", "")) if isinstance(header, Mapping) else ""


def _eval_records(path: Path) -> Iterator[Record]:
    """Yield the samples of a log, in the order of the zip file."""
    with _zip_of(path) as archive:
        members = [info for info in archive.infolist() if _SAMPLE.fullmatch(info.filename)]
        total = sum(info.file_size for info in members)
        if len(members) > _MAX_MEMBERS or total > _MAX_ARCHIVE_BYTES:
            raise ArchiveError(
                f"{path}: the log unpacks to {total:,} bytes in {len(members):,} samples; the "
                f"limits are {_MAX_ARCHIVE_BYTES:,} and {_MAX_MEMBERS:,}"
            )
        for position, info in enumerate(members):
            place = f"{path}, {info.filename}"
            value = read_json_bytes(_member(archive, info, place), place)
            if not isinstance(value, Mapping):
                raise ArchiveError(f"{place}: expected a JSON object")
            yield Record(values=value, position=position, place=place)
        if not members:
            raise ArchiveError(f"{path}: the log holds no finished sample; let the run finish")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str) -> bytes:
    if info.file_size > _MAX_MEMBER_BYTES:
        raise ArchiveError(
            f"{place}: the sample unpacks to {info.file_size:,} bytes; the limit is "
            f"{_MAX_MEMBER_BYTES:,}. Leave it out of the log"
        )
    try:
        # Inspect AI packs with zstd, which Python's zipfile reads from 3.14 on.
        if info.compress_type == _ZSTD:
            return _zstd_member(archive, info)
        with archive.open(info) as stream:
            # A size is given, since the directory may say less than the member unpacks to.
            return stream.read(info.file_size + 1)
    except (
        DamagedError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        OSError,
    ) as err:
        raise ArchiveError(
            f"{place}: the zip file is damaged or cut off ({err}); copy it again"
        ) from err


def _zstd_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the content of a member that is packed with zstd."""
    stream = archive.fp
    assert stream is not None, "the zip file is open"
    stream.seek(info.header_offset)
    header = stream.read(_HEADER_BYTES)
    if not header.startswith(ZIP):
        raise DamagedError(f"{info.filename} has no header")
    # The local header ends with the lengths of the name and of an extra field, which follow it.
    lengths = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    stream.seek(sum(lengths), io.SEEK_CUR)
    packed = io.BytesIO(stream.read(info.compress_size))
    data = zstd_reader(packed)(info.file_size + 1)
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise DamagedError(f"{info.filename} has another size or checksum than the directory says")
    return data
