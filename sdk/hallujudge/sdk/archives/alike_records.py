"""Records that have the same keys, whose values are looked at a column at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any

from msgspec import Struct, structs

from .ids import canonical_id
from .records import Record, text_under

# Enough that what is done once for each block costs nothing.
_BLOCK = 512


def in_blocks(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the first record alone, which says what to read of others, then many at a time.

    Those before an error come before it is raised.
    """
    ahead = iter(records)
    for size in chain([1], repeat(_BLOCK)):
        block: list[Record] = []
        try:
            # A list keeps what came before an error.
            block.extend(islice(ahead, size))
        except Exception:
            if block:
                yield block
            raise
        if not block:
            return
        yield block


class AlikeRecords(Struct, frozen=True):
    """Records that have the same keys."""

    records: Sequence[Record]
    """The records."""
    values: Sequence[Mapping[str, object]]
    """Their values."""
    columns: Mapping[str, Sequence[Any]]
    """Key -> the value of each record."""
    places: Sequence[str]
    """Their places for messages."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> AlikeRecords | None:
        """Return records; None if their keys differ."""
        values = [record.values for record in records]
        if not (keys := [*values[0]]) or {*map(len, values)} != {len(keys)}:
            return None
        try:
            # Of one key alone it would return the value itself.
            rows = [*map(itemgetter(*keys, keys[0]), values)]
        except KeyError:
            return None
        columns = dict(zip(keys, zip(*rows, strict=True), strict=False))
        return cls(records, values, columns, [record.place for record in records])

    def placed(self, places: Sequence[str]) -> AlikeRecords:
        """Return the records with other places."""
        return structs.replace(self, places=places)

    def record(self, at: int) -> Record:
        """Return one of the records."""
        return Record(self.values[at], self.records[at].position, self.places[at])

    def ids(self, keys: Iterable[str]) -> list[str]:
        """Return the id of each record under the first of some keys that they have.

        Raises:
            ArchiveError: One is not an id.
            StopIteration: They have no such key.
        """
        values = self.columns[next(filter(self.columns.__contains__, keys))]
        if are_texts(values):
            texts = [*map(str.strip, values)]
            joined = "\n".join([*texts, ""])
            if joined.isascii() and ".0\n" not in joined and all(texts):
                return texts
        whole = {*map(type, values)} == {int}
        return [*map(str, values)] if whole else [*map(canonical_id, values, self.places)]

    def texts(self, keys: Collection[str]) -> Sequence[str]:
        """Return what :func:`text_under` does for each record."""
        if not (held := [key for key in keys if key in self.columns]):
            return [""] * len(self.values)
        first = self.columns[held[0]]
        if are_plain(first):
            return first
        return [
            text if type(text) is str and text.isascii() else text_under(own, held)
            for text, own in zip(first, self.values, strict=True)
        ]


def are_plain(values: Sequence[Any]) -> bool:
    """Return whether all values are ASCII texts, which are read as they are."""
    return are_texts(values) and "".join(values).isascii()


def are_texts(values: Sequence[Any]) -> bool:
    """Return whether all values are texts."""
    return {*map(type, values)} == {str}
