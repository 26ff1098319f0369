"""Archive readers: read files that other tools wrote as a stream and join them by id.

Names are imported when they are first used: most commands need only some of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .inputs import InputOptions, ItemSource, References, Responses
    from .inspection import ArchiveSummary, inspect_archives
    from .layouts.archive_reader import ArchiveReader, converting
    from .readers import read_items
    from .records import Record

__all__ = [
    "ArchiveReader",
    "ArchiveSummary",
    "InputOptions",
    "ItemSource",
    "Record",
    "References",
    "Responses",
    "converting",
    "inspect_archives",
    "read_items",
]

_NAMES = {
    ".inputs": "InputOptions ItemSource References Responses",
    ".inspection": "ArchiveSummary inspect_archives",
    ".layouts.archive_reader": "ArchiveReader converting",
    ".readers": "read_items",
    ".records": "Record",
}
"""Module -> the public names that it defines."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Return a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
