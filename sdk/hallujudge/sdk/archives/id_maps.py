"""Lists of image ids, for archives whose ids are positions."""

from __future__ import annotations

from pathlib import Path

from ..errors import ArchiveError
from .ids import canonical_id
from .json_files import read_json, read_text
from .records import Record

_LONGEST_PLACE = 20
"""More digits than any list position has, and fewer than Python's limit for integers."""


class IdMap:
    """A list: position or question_id -> image id.

    Args:
        path: Path of the file: a JSON list, or a text with an id in each line.

    Raises:
        ArchiveError: The file is not such a list.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        text = read_text(self._path)
        is_json = text.lstrip()[:1] in ("[", "{", "")
        content = read_json(self._path) if is_json else text.split("\n")
        if not isinstance(content, list):
            raise ArchiveError(
                f"{path}: an id map must be a list of image ids, as JSON or with an id in each line"
            )
        # Editors end the last line too.
        while content and isinstance(content[-1], str) and not content[-1].strip():
            content.pop()
        self._ids = [
            canonical_id(value, f"{path} entry {index}") for index, value in enumerate(content)
        ]

    def image_id(self, record: Record, key: str | None) -> str:
        """Return the image id of a record, by the value of `key` or else by position.

        Raises:
            ArchiveError: The map has no such entry.
        """
        index: object = record.position if key is None else record.values.get(key)
        if isinstance(index, str) and index.strip().isdecimal() and len(index) <= _LONGEST_PLACE:
            index = int(index)
        valid = isinstance(index, int) and not isinstance(index, bool)
        if not valid or not 0 <= index < len(self._ids):  # type: ignore[operator]  # an int by now
            raise ArchiveError(
                f"{record.place}: {key or 'position'} {index!r:.60} is not an entry of the id map "
                f"{self._path}, which has entries 0 to {len(self._ids) - 1}"
            )
        return self._ids[index]  # type: ignore[call-overload,no-any-return]  # an int by now
