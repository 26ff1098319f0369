"""Fields that a benchmark declares, read of records; those of equal values are one mapping."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from hallujudge.metrics.answers.closed_questions import ClosedQuestions

from .named_keys import MOST_SHARED
from .question_files import field_text
from .record_values import choose_key
from .records import Record

_Value = TypeVar("_Value")
_EXACT, _PLAIN = {str, int, bool}, {str, int, bool, float}


class FieldWay(NamedTuple):
    """How a declared field is read."""

    name: str
    """The field."""
    keys: tuple[str, ...]
    """The keys of its value, the usual one first."""
    value: Callable[[str], str] | None
    """Returns the value that a text stands for; None if texts stay as they are."""
    needed: bool
    """Whether every record needs it."""


def ways_of(
    declared: ClosedQuestions,
    names: Iterable[str],
    named: Mapping[str, str],
    optional: Iterable[str],
) -> list[FieldWay]:
    """Return how some of the declared fields are read.

    Args:
        declared: The benchmark.
        names: The fields; others than the declared ones are left out.
        named: Fields whose keys the user named, which are then the only ones.
        optional: Fields that a record may lack.
    """
    known, values = declared.keys.fields, declared.keys.values
    return [
        FieldWay(
            name,
            (name,) if name in named else known[name],
            _value_of(values.get(name)),
            name not in {*optional},
        )
        for name in names
        if name in known
    ]


class DeclaredFields:
    """Some fields of records.

    Args:
        ways: How each of them is read.
        remedy: The next step where a record lacks one.
        keeps_empty: Whether empty texts are fields too.
    """

    def __init__(self, ways: Iterable[FieldWay], remedy: str, *, keeps_empty: bool = True) -> None:
        self._ways = list(ways)
        self._remedy = remedy
        self._keeps_empty = keeps_empty
        # Most records are like the one before, or have the first key of each field.
        self._last = self._alike([way.keys[0] for way in self._ways])
        self._of_keys: dict[tuple[Any, ...], _Alike] = {}

    def __bool__(self) -> bool:
        return bool(self._ways)

    def of(self, values: Mapping[str, Any], place: str) -> Mapping[str, str]:
        """Return the text of each field; empty for one that is lacking and may be.

        Args:
            values: The values of a record.
            place: Its place, for messages.

        Raises:
            ArchiveError: The record lacks a field; the message lists the tried and the found keys.
        """
        alike = self._last
        found: tuple[Any, ...] | None
        try:
            found = alike.get(values)
            if alike.absent and not values.keys().isdisjoint(alike.absent):
                found = None
        except KeyError:
            found = None
        if found is None:
            alike = self._last = self._alike_of(tuple(values))
            found = alike.get(values)
        if alike.has_others:
            return self._of_others(alike, found, values, place)
        try:
            # Texts equal no value of another type.
            if alike.repeats and (known := alike.known.get(found)) is not None:
                alike.hits += 1
                return known
            # It refuses what is no text, in a fifth of the time of looking at the types.
            "".join(found)
        except TypeError:
            alike.has_others = True
            return self._of_others(alike, found, values, place)
        read: Mapping[str, str] = {name: values[key] for name, key in alike.texts}
        if not read or not (self._keeps_empty or all(read.values())):
            read = self._read(values, place)
        return alike.shared(found, read) if alike.repeats else read

    def _of_others(
        self,
        alike: _Alike,
        found: tuple[Any, ...],
        values: Mapping[str, Any],
        place: str,
    ) -> Mapping[str, str]:
        """Return the fields of a record some of whose values are no texts."""
        if not alike.repeats:
            return self._read(values, place)
        kinds = [*map(type, found)]
        if _EXACT.issuperset(kinds):
            # 1 and true are equal, and have other texts.
            key = (*found, *kinds)
        elif _PLAIN.issuperset(kinds):
            # So have 0.0 and -0.0.
            key = ("", *map(repr, found))
        else:
            # A field whose first key holds null is read of another one.
            return self._read(values, place)
        if (known := alike.known.get(key)) is None:
            return alike.shared(key, self._read(values, place))
        alike.hits += 1
        return known

    def _alike_of(self, keys: tuple[str, ...]) -> _Alike:
        """Return how records with some keys are read, as it is known or from now on."""
        if (known := self._of_keys.get(keys)) is None:
            known = share(self._of_keys, keys, self._alike(keys))
        return known

    def _alike(self, keys: Collection[str]) -> _Alike:
        firsts = [next(filter(keys.__contains__, way.keys), None) for way in self._ways]
        found = [(way, key) for way, key in zip(self._ways, firsts, strict=True) if key is not None]
        held = [key for _, key in found]
        lacking = self._ways if self._keeps_empty else [way for way in self._ways if way.needed]
        as_they_are = all(way.value is None for way in self._ways)
        complete = {way.name for way in lacking} <= {way.name for way, _ in found}
        return _Alike(
            # Of one key alone it would return the value itself.
            itemgetter(*held, held[0]) if held else _nothing_of,
            frozenset().union(*map(_before, self._ways, firsts)),
            [(way.name, key) for way, key in found] if as_they_are and complete else [],
        )

    def _read(self, values: Mapping[str, object], place: str) -> Mapping[str, str]:
        found = {}
        for name, keys, value, needed in self._ways:
            if needed and keys[0] not in values:
                choose_key(Record(values, 0, place), None, keys, f"the {name}", self._remedy)
            text = field_text(values, keys)
            found[name] = text if value is None else value(text)
        if self._keeps_empty or all(found.values()):
            return found
        return {name: text for name, text in found.items() if text}


class _Alike(Struct):
    """The fields of records with the same keys."""

    get: Callable[[Mapping[str, object]], tuple[Any, ...]]
    """Returns the values of the first keys that the records have of the fields."""
    absent: frozenset[str]
    """Keys that such records lack, and that would be read in place of these."""
    texts: Sequence[tuple[str, str]]
    """The fields that are these values if all are texts, each with its key; empty if some are read
    otherwise."""
    known: dict[tuple[Any, ...], Mapping[str, str]] = {}
    """Values -> fields: many records have those of few kinds."""
    hits: int = 0
    """How often fields were known."""
    repeats: bool = True
    """Whether fields are looked for there."""
    has_others: bool = False
    """Whether a record had values that are no texts."""

    def shared(self, key: tuple[Any, ...], fields: Mapping[str, str]) -> Mapping[str, str]:
        """Return fields, or equal ones that are known."""
        if len(self.known) == MOST_SHARED:
            # Those that are another in each record, such as ids, take longer to look up.
            self.repeats = self.hits > MOST_SHARED
            self.known.clear()
            self.hits = 0
        return self.known.setdefault(key, fields) if self.repeats else fields


def _before(way: FieldWay, key: str | None) -> tuple[str, ...]:
    """Return the keys of a field that come before one of them; all of them before None."""
    return way.keys if key is None else way.keys[: way.keys.index(key)]


def _nothing_of(_values: Mapping[str, object]) -> tuple[Any, ...]:
    return ()


def share(known: dict[tuple[Any, ...], _Value], key: tuple[Any, ...], value: _Value) -> _Value:
    """Return the value that is known under a key, which is the given one if there was none."""
    if len(known) == MOST_SHARED:
        known.clear()
    return known.setdefault(key, value)


def _value_of(values: Mapping[str, str] | None) -> Callable[[str], str] | None:
    """Return the function from a field's text to its value; None if texts stay as they are.

    A text that stands for no value has none of the spaces around it.
    """
    if values is None:
        return None

    # Values repeat, and there are several for every answer.
    @lru_cache(maxsize=4096)
    def value(text: str) -> str:
        text = text.strip().removesuffix(".0")
        return values.get(text.casefold(), text)

    return value
