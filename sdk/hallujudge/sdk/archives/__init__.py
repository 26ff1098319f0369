"""Archive readers: read files that other tools wrote as a stream and join them by id."""

from .inputs import InputOptions, ItemSource, References, Responses
from .inspection import ArchiveSummary, inspect_archives
from .layouts import ArchiveReader, converting
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
