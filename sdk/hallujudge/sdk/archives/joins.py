"""Ids: id maps, duplicate checks, and errors that name the ids with a fault."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import ArchiveError
from .json_files import read_json
from .records import Record, canonical_id, named

__all__ = ["Faults", "IdCheck", "IdMap", "numbered", "refuse"]


_LONGEST_PLACE = 20
"""More digits than any list position has, and fewer than Python's limit for integers."""


class IdMap:
    """A list: position or question_id -> image id.

    Args:
        path: Path of the JSON file.

    Raises:
        ArchiveError: The file is not a JSON list of ids.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        content = read_json(self._path)
        if not isinstance(content, list):
            raise ArchiveError(f"{path}: an id map must be a JSON list of image ids")
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


class IdCheck:
    """Finds duplicate ids, at eight bytes per id."""

    def __init__(self) -> None:
        self._hashes = array("q")

    def add(self, identifier: str) -> None:
        """Add an id."""
        self._hashes.append(hash(identifier))

    def extend(self, identifiers: Iterable[str]) -> None:
        """Add ids."""
        self._hashes.extend(map(hash, identifiers))

    def __len__(self) -> int:
        return len(self._hashes)

    def duplicates(self, again: Callable[[], Iterable[str]]) -> list[str]:
        """Return duplicate ids, in order of their second appearance.

        Args:
            again: Returns an iterator over the ids; called only if there are duplicates.
        """
        import numpy as np

        hashes = np.sort(np.frombuffer(self._hashes, dtype=np.int64)) if self._hashes else None
        if hashes is None or not (suspects := set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())):
            return []
        seen: set[str] = set()
        duplicates: dict[str, None] = {}
        for identifier in again():
            # Ids of one hash are nearly always equal, but must not be taken for it.
            if hash(identifier) in suspects:
                if identifier in seen:
                    duplicates[identifier] = None
                seen.add(identifier)
        return list(duplicates)


def numbered(identifiers: Iterable[str]) -> Iterator[str]:
    """Make ids unique: the second "42" becomes "42#2"."""
    counts: dict[str, int] = {}
    for identifier in identifiers:
        count = counts[identifier] = counts.get(identifier, 0) + 1
        yield identifier if count == 1 else f"{identifier}#{count}"


def refuse(problem: str, identifiers: list[str], remedy: str) -> ArchiveError:
    """Return an error that names up to ten ids, and their number."""
    return ArchiveError(
        f"{problem}: {named(identifiers)} ({len(identifiers)} in all). {remedy}",
        metadata={"count": str(len(identifiers))},
    )


class Faults:
    """Collects faults by kind, so that one error names all places with the same fault.

    Args:
        remedies: Kind of fault -> the next step.
    """

    def __init__(self, remedies: Mapping[str, str]) -> None:
        self._remedies = remedies
        self._places: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, problem: str, *places: str) -> None:
        """Add a fault of these places."""
        if places:
            self._places.setdefault(problem, []).extend(places)

    def check(self) -> None:
        """Raise an error for the first kind of fault.

        Raises:
            ArchiveError: There is a fault.
        """
        for problem, places in self._places.items():
            raise refuse(problem, places, self._remedies.get(problem, "Correct these lines"))
