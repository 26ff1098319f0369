"""How the model of an archive was asked, as archives of ``hallujudge ask`` say in each record."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from hallujudge.metrics.framework.signature import ASKED, PROMPTS

from ..errors import HallujudgeError
from .archive_files import value_at
from .found_files import found_files, is_url
from .inputs import are_paths
from .local_files import open_binary
from .opened_archives import open_responses
from .plain_values import rows_of
from .records import read_records
from .table_files import structured

_KEY = "asked"
_MARK = _KEY.encode()
# Option of a spec -> its key in a record.
_KEYS = {PROMPTS: "prompts", ASKED: "how"}
_PIECE = 1 << 20
# Where a workbook has the header of its first sheet.
_SHEET_PARTS = ("xl/sharedStrings.xml", "xl/worksheets/sheet1.xml")
_ZIP = b"PK\x03\x04"


def recorded_asking(responses: object, metric: str, encoding: str = "") -> dict[str, str]:
    """Return how the model of an archive was asked, as options of a spec; empty if it is unknown.

    Several ways have all their values, joined by ``+``.

    Args:
        responses: The archive. What can be read only once is not looked at, nor is a URL.
        metric: The metric that scores it.
        encoding: Code of the files that are not UTF-8.
    """
    # Whatever is wrong with an archive, its reader says.
    with suppress(HallujudgeError, OSError):
        return _joined(_records_of(responses, metric, encoding))
    return {}


def _records_of(responses: object, metric: str, encoding: str) -> Iterable[Mapping[str, object]]:
    if isinstance(responses, (str, Path)) or are_paths(responses):
        paths = [responses] if isinstance(responses, (str, Path)) else responses
        files = [] if any(map(is_url, paths)) else [f.path for p in paths for f in found_files(p)]
        told = any(_mentions(str(file), file.stat().st_mtime_ns) for file in files)
        source = open_responses(responses, metric, encoding).source if told else None
        return () if source is None else (record.values for record in read_records(source))
    if isinstance(responses, (list, tuple, Mapping)):
        records = responses.values() if isinstance(responses, Mapping) else responses
        return (record for record in records if isinstance(record, Mapping))
    return rows_of(responses) or ()


def _joined(records: Iterable[Mapping[str, object]]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for name, text in (pair for values in records for pair in _told(values)):
        found.setdefault(name, set()).add(text)
    return {name: "+".join(sorted(found[name])) for name in _KEYS if name in found}


def _told(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what a record says; a table has it in a cell, or in a column for each value."""
    given = structured(values.get(_KEY))
    for name, key in _KEYS.items():
        held = given if isinstance(given, Mapping) else {}
        text = held.get(key, value_at(values, f"{_KEY}.{key}"))
        if isinstance(text, str) and text:
            yield name, text


@lru_cache(maxsize=1024)
def _mentions(path: str, _changed: int) -> bool:
    """Return whether a file may say how its model was asked: most do not, and are not read twice.

    Args:
        path: The file.
        _changed: When it was changed.
    """
    with open_binary(Path(path)) as file:
        before = file.read(_PIECE)
        if before.startswith(_ZIP):
            return _workbook_mentions(Path(path))
        while before:
            if _MARK in before:
                return True
            more = file.read(_PIECE)
            before = before[-len(_MARK) :] + more if more else b""
    return False


def _workbook_mentions(path: Path) -> bool:
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as book:
        for name in set(_SHEET_PARTS) & set(book.namelist()):
            with book.open(name) as part:
                while piece := part.read(_PIECE):
                    if _MARK in piece:
                        return True
    return False
