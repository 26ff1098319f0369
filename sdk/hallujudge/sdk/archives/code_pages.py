"""Texts in other codes than UTF-8: none is guessed, since the wrong one would be scored."""

from __future__ import annotations

import codecs
from pathlib import Path

from msgspec import structs

from ..errors import ArchiveError, InvalidInputError
from .found_files import FoundFile, copy_to_file, temporary_folder
from .local_files import read_bytes

# Usual codes of East Asian, Cyrillic and Western texts, which one file often fits several of.
_CODES = ("gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1251", "cp1252")
_SHOWN_BYTES = 16
_ASCII = bytes(range(128))
# A character of UTF-8 that is cut has its first byte and one or two more.
_CUT_BYTES = 2
_BINARY = (b"PK\x03\x04", b"PAR1")


def decoded(data: bytes, path: Path) -> tuple[str, str]:
    """Return the text of a file, and a note on a damaged character: empty without one.

    One cut character is read byte by byte, as in a released file of Mementos.

    Raises:
        ArchiveError: The text is not UTF-8; the message shows how other codes read it.
    """
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        text, rest = data[: err.start], data[err.end :]
        if err.end - err.start >= _CUT_BYTES and _is_utf8(rest):
            cut = data[err.start : err.end].decode("latin-1")
            note = f"line {line} is not UTF-8; its bytes are read one by one as {cut!r}"
            return text.decode("utf-8-sig") + cut + rest.decode(), note
        raise ArchiveError(
            f"{path}: line {line} is not UTF-8{_readings(data, err.start)}. Name its code with "
            "InputOptions(encoding=…), or save the file as UTF-8"
        ) from err


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _readings(data: bytes, fault: int) -> str:
    """Return how a line reads in the codes that fit the whole file.

    Args:
        data: The file.
        fault: Where it is not UTF-8; characters before may be so by chance.
    """
    found = []
    before = data[: fault + 1].rpartition(b"\n")[2]
    start = fault + 1 - len(before.lstrip(_ASCII))
    for code in _CODES:
        try:
            data.decode(code)
        except UnicodeDecodeError:
            continue
        read = data[start : start + _SHOWN_BYTES].decode(code, "ignore").splitlines()
        found.append(f"{code} reads {read[0] if read else ''!r}")
    return f": {', '.join(found)}" if found else ""


def recoded(file: FoundFile, encoding: str) -> FoundFile:
    """Return a copy in UTF-8 of a file whose text is in another code; others as they are.

    Args:
        file: The file.
        encoding: Name of the code; empty for UTF-8.

    Raises:
        ArchiveError: The file is not a text of this code.
        InvalidInputError: There is no such code.
    """
    if not encoding:
        return file
    try:
        codecs.lookup(encoding)
    except LookupError as err:
        raise InvalidInputError(
            f"InputOptions(encoding={encoding!r:.40}) is no code that Python knows; give a name "
            f"such as {', '.join(_CODES)}"
        ) from err
    data = read_bytes(file.path)
    if data.startswith(_BINARY) or _is_utf8(data):
        return file
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise ArchiveError(
            f"{file.name}: line {line} is not {encoding}{_readings(data, err.start)}. Name its "
            "code with InputOptions(encoding=…)"
        ) from err
    pieces = iter((text.encode(), b""))
    # Models are named after folders.
    folder, name = temporary_folder(), file.path.relative_to(file.root or file.path.parent)
    path = copy_to_file(lambda _size: next(pieces), file.name, str(name), folder)
    return structs.replace(file, path=path, root=file.root and folder)
