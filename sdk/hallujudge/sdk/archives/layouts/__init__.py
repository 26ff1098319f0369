"""Archive readers by tool: each recognises a layout by its keys and reads it."""

from .reader import ArchiveReader, converting
from .registry import archive_readers, recognised

__all__ = ["ArchiveReader", "archive_readers", "converting", "recognised"]
