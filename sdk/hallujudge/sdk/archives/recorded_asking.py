"""How the model of an archive was asked, as archives of ``hallujudge ask`` say in each record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from hallujudge.metrics.framework.signature import ASKED, PROMPTS

from ..errors import HallujudgeError
from .archive_files import value_at
from .found_files import is_url
from .inputs import are_paths
from .local_files import open_binary
from .opened_archives import Opened
from .records import Record, read_records
from .table_files import structured

_KEY = "asked"
_MARK = _KEY.encode()
# Option of a spec -> its key in a record.
_KEYS = {PROMPTS: "prompts", ASKED: "how"}
_PIECE = 1 << 20
_ZIP = b"PK\x03\x04"


def recorded_asking(responses: object, opened: Opened) -> dict[str, str]:
    """Return how the model of an archive was asked, as options of a spec; empty if it is unknown.

    Several ways have all their values, joined by ``+``.

    Args:
        responses: The archive: paths, or plain values. A URL is not looked at.
        opened: The same, whose files may be open.
    """
    # Whatever is wrong with an archive, its reader says.
    with suppress(HallujudgeError, OSError):
        return _joined(_records_of(responses, opened))
    return {}


def _records_of(responses: object, opened: Opened) -> Iterable[Mapping[str, object]]:
    if isinstance(responses, (str, Path)) or are_paths(responses):
        paths = [responses] if isinstance(responses, (str, Path)) else responses
        # Most archives do not say it, and are not read once more.
        told = not any(map(is_url, paths)) and any(_mentions(file.path) for file in opened.files)
        return (record.values for record in read_records(opened.source or ())) if told else ()
    if not isinstance(responses, (list, Mapping)):
        return ()
    given = responses.values() if isinstance(responses, Mapping) else responses
    records = (each.values if isinstance(each, Record) else each for each in given)
    return (values for values in records if isinstance(values, Mapping))


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


def _mentions(path: Path) -> bool:
    """Return whether a file may say how its model was asked."""
    with open_binary(path) as file:
        before = file.read(_PIECE)
        if before.startswith(_ZIP):
            # A workbook, which is in memory; a log of Inspect AI has other parts.
            return b"xl/" in before
        while before:
            if _MARK in before:
                return True
            more = file.read(_PIECE)
            before = before[-len(_MARK) :] + more if more else b""
    return False
