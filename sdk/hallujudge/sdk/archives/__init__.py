"""Archive readers: read files that other tools wrote as a stream and join them by id.

Names are imported when they are first used: most commands need only some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

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

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
