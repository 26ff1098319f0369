"""Records that follow each other, read key by key.

A loop over the values of one key takes no steps in Python where all of them are of one kind, which
they are in most files. That takes a fifth of the time of reading record by record. All other values
are read by the functions of single records, so that both ways find the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TypeVar, cast

from hallujudge.metrics.framework.claims import well_formed

from ..errors import HallujudgeError
from .bad_records import noted
from .joins import plain_ids
from .named_keys import fields_of
from .records import Record, RecordBatch, optional_text, read_record_batches, read_records

_T = TypeVar("_T")
_GATHERED = 256  # records that were not read many at a time
_OBJECT, _TEXT, _WHOLE = {dict}, {str}, {int}
_NOTHING: Mapping[str, str] = {}


class Columns:
    """Some records of an archive.

    Args:
        values: Keys and values of each record.
        records: Returns the records, which few need.
        positions: The position of each in the archive.
    """

    def __init__(
        self,
        values: Sequence[Mapping[str, object]],
        records: Callable[[], Iterable[Record]],
        positions: Sequence[int] = (),
    ) -> None:
        self.values = values
        """Keys and values of each record."""
        self.positions = positions
        """The position of each record in the archive, if it was given."""
        self.size = len(values)
        """How many records there are."""
        self._make = records
        self._records: list[Record] = []
        # A mapping of another kind may make values when it is asked for them.
        plain = set(map(type, values)) <= _OBJECT
        self._keys = frozenset[str]().union(*values) if plain else None

    def records(self) -> list[Record]:
        """Return the records."""
        if not self._records:
            self._records = list(self._make())
        return self._records

    def without(self, dropped: Iterable[bool]) -> Columns:
        """Return the records that are not to be dropped."""
        pairs = zip(self.records(), dropped, strict=True)
        return _of_records([record for record, is_dropped in pairs if not is_dropped])

    def under(self, keys: Iterable[str]) -> list[object] | None:
        """Return the values under the first of some keys that any record has.

        None if not every record has it, and an empty list if no record has any of them.
        """
        if self._keys is None:
            return None
        key = next(filter(self._keys.__contains__, keys), None)
        if key is None:
            return []
        try:
            return list(map(itemgetter(key), self.values))
        except KeyError:
            return None

    def has_any(self, keys: Iterable[str]) -> bool:
        """Return whether a record may have one of some keys."""
        return self._keys is None or not self._keys.isdisjoint(keys)

    def same_texts(self, keys: Iterable[str]) -> list[str] | None:
        """Return the texts of :meth:`under`, as they are; None if there are other values."""
        found = self.under(keys)
        usual = found is not None and set(map(type, found)) <= _TEXT
        return cast("list[str]", found) if usual else None

    def texts(self, keys: Sequence[str]) -> list[str]:
        """Return what :func:`optional_text` does of each record."""
        found = self.under(keys)
        if found is not None and (texts := _as_texts(found)) is not None:
            return texts or [""] * self.size
        return [optional_text(record, keys) for record in self.records()]

    def ids(self, keys: Sequence[str], plain: Callable[[Record], str]) -> list[str]:
        """Return the id of each record.

        Args:
            keys: The usual keys, the most likely first.
            plain: Returns the id of a record whose id is not of a usual kind.
        """
        found = self.under(keys)
        if found and (ids := plain_ids(found)) is not None:
            return ids
        return list(map(plain, self.records()))

    def read(
        self, key: str, plain: Callable[[Record], _T], of_text: Callable[[str], _T] | None = None
    ) -> list[_T]:
        """Return what a function of single records reads under a key.

        Args:
            key: The key.
            plain: The function.
            of_text: Returns what that returns if the value is a text; None if it is the text.
        """
        found = self.same_texts((key,))
        if found and of_text is not None:
            return list(map(of_text, found))
        if found:
            return cast("list[_T]", _well_formed(found))
        if found is not None and self.size:
            # No record has the key.
            return [plain(self.records()[0])] * self.size
        return list(map(plain, self.records()))

    def fields(
        self, keys: Sequence[str], before: Sequence[Mapping[str, str]] | None = None
    ) -> list[Mapping[str, str]]:
        """Return what :func:`fields_of` does of each record; equal fields are one value.

        Args:
            keys: Names of the fields.
            before: Fields that have precedence, unless they are empty; None without.
        """
        if not keys:
            return [_NOTHING] * self.size
        if (columns := self._columns_of(keys)) is None:
            if before is None:
                return [fields_of(keys, values) for values in self.values]
            pairs = zip(before, self.values, strict=True)
            return [
                fields_of(keys, {k: v for k, v in known.items() if v}, values)
                for known, values in pairs
            ]
        if before is not None:
            columns = [
                [known.get(key) or own for known, own in zip(before, column, strict=True)]
                for key, column in zip(keys, columns, strict=True)
            ]
        return fields_of_rows(keys, columns)

    def _columns_of(self, keys: Iterable[str]) -> list[list[str]] | None:
        """Return the texts under each key; None if some are no texts, or are under a path."""
        columns = []
        for key in keys:
            found = self.under((key,))
            if found is None or (found and set(map(type, found)) != _TEXT):
                return None
            if not found and "." in key:
                return None
            columns.append(_well_formed(cast("list[str]", found)) or [""] * self.size)
        return columns


def fields_of_rows(
    names: Sequence[str], columns: Sequence[Sequence[str]]
) -> list[Mapping[str, str]]:
    """Return fields of their values, which are given name by name; equal fields are one value."""
    rows = list(zip(*columns, strict=True))
    made = {row: dict(zip(names, row, strict=True)) for row in set(rows)}
    return list(map(made.__getitem__, rows))


def _as_texts(values: list[object]) -> list[str] | None:
    kinds = set(map(type, values))
    if kinds == _WHOLE:
        return list(map(str, values))
    return _well_formed(cast("list[str]", values)) if kinds <= _TEXT else None


def _well_formed(texts: list[str]) -> list[str]:
    return texts if "".join(texts).isascii() else list(map(well_formed, texts))


def read_columns(source: str | Path | Iterable[object] | Mapping[str, object]) -> Iterator[Columns]:
    """Yield the records of an archive, many at a time, as :func:`read_records` does one by one."""
    if not isinstance(source, (str, Path, Mapping)):
        return columns_of(read_records(source))
    return map(_of_batch, read_record_batches(source))


def _of_batch(batch: RecordBatch) -> Columns:
    end = batch.position + len(batch.values)
    return Columns(batch.values, batch.records, range(batch.position, end))


def columns_of(records: Iterable[Record]) -> Iterator[Columns]:
    """Yield records many at a time, and those before an error before it is raised."""
    found: list[Record] = []
    try:
        for record in records:
            found.append(record)
            if len(found) == _GATHERED:
                yield _of_records(found)
                found = []
    except HallujudgeError:
        if found:
            yield _of_records(found)
        raise
    if found:
        yield _of_records(found)


def _of_records(records: list[Record]) -> Columns:
    values, positions, _ = zip(*records, strict=True) if records else ((), (), ())
    return Columns(values, lambda: records, positions)


def first_fault(read: Callable[[Columns], _T], columns: Columns) -> _T:
    """Return what a function reads of records.

    Raises:
        HallujudgeError: The fault of the first record that has one, which may not be the first that
            the function found.
    """
    try:
        return read(columns)
    except HallujudgeError:
        for record in columns.records():
            read(_of_records([record]))
        raise


def usable_records(read: Callable[[Columns], _T], columns: Columns) -> tuple[Columns, _T] | None:
    """Return records and what a function reads of them, without bad ones where those are noted.

    None if all are bad.

    Raises:
        HallujudgeError: The fault of the first record that has one, where they are not noted.
    """
    try:
        return columns, read(columns)
    except HallujudgeError:
        usable = []
        for record in columns.records():
            with noted(record.position, record.place):
                read(_of_records([record]))
                usable.append(record)
        if len(usable) == columns.size:
            raise
    rest = _of_records(usable)
    return (rest, read(rest)) if usable else None
