"""Fields of records: values to group by, fields that a benchmark declares, and whole rows.

Fields of equal values are one mapping. A row is what is read of an answer, a question or a
caption: where records are like the first, msgspec decodes a block of them into rows, checks the
types of their values, and skips what is not read, in a third of the time of looking at the values
of each record. A block with a record of other keys, or with values of other types, is read record
by record instead, by the function that also says what is wrong with one. Both give equal rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from msgspec import MsgspecError, Struct, defstruct
from msgspec.json import Decoder

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.framework.json_values import well_formed

from ..errors import InvalidInputError
from .inputs import InputOptions
from .json_files import shown
from .json_lines import has_quotes, texts_in
from .question_files import field_text
from .record_values import choose_key, value_at
from .records import Record

_Value = TypeVar("_Value")
_EXACT, _PLAIN = {str, int, bool}, {str, int, bool, float}
# JSON escapes the others, and msgspec does not take them for names.
_UNESCAPED = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')
# Different fields that are remembered, so that equal ones are one value.
_MOST_SHARED = 4096
_NOTHING: Mapping[str, Any] = {}


def fields_of(keys: Iterable[str], *records: Mapping[str, object]) -> dict[str, str]:
    """Return values to group by, each from the first record that has it; empty if none has.

    A list names several groups, which are joined by commas.

    Args:
        keys: Names of keys, or paths such as ``doc.category`` into objects.
        records: The records, in the order of precedence.

    Raises:
        InvalidInputError: A key has an object as its value.
    """
    out = {}
    first = records[0]
    for key in keys:
        # Nearly all values are texts of the first record.
        if type(text := first.get(key)) is str:
            out[key] = well_formed(text)
            continue
        value = None
        for record in records:
            if (value := value_at(record, key)) is not None:
                break
        else:
            out[key] = ""
            continue
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, (Mapping, list)) for part in parts):
            inner = next(iter(parts[0]), "") if isinstance(parts[0], Mapping) else ""
            example = f"{key}.{inner}" if inner else "doc.category"
            raise InvalidInputError(
                f"the key {key!r} to report groups by holds {shown(value)}; name a key of the "
                f"object, such as {example!r:.80}, or another key"
            )
        out[key] = well_formed(",".join(map(str, parts)))
    return out


class SharedFields:
    """Reads values to group by; equal fields of records are one value, of which most are few.

    Args:
        keys: Names of keys, or paths into objects.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        """The keys."""
        self.begun = {*keys, *(key.partition(".")[0] for key in keys)}
        """Where paths begin: a record without any of these keys has blank fields."""
        self.blank: Mapping[str, str] = dict.fromkeys(keys, "")
        """The fields of records without any value."""
        self._known: dict[tuple[str, ...], Mapping[str, str]] = {}

    def of(
        self, values: Mapping[str, object], before: Mapping[str, str] = _NOTHING
    ) -> Mapping[str, str]:
        """Return what :func:`fields_of` does.

        Args:
            values: A record.
            before: Fields that have precedence, unless they are empty.
        """
        filled = {key: value for key, value in before.items() if value}
        records = (filled, values) if filled else (values,)
        found = fields_of(self.keys, *records)
        return share(self._known, tuple(found.values()), found)


# Declared fields ----------------------------------------------------------------------------------


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


def declared_fields(
    declared: ClosedQuestions,
    names: Iterable[str],
    options: InputOptions,
    remedy: str,
    *,
    given: Sequence[str] = (),
    keeps_empty: bool = True,
) -> DeclaredFields:
    """Return the reader of some of the declared fields.

    Args:
        declared: The benchmark.
        names: The fields; others than the declared ones are left out.
        options: How the archive is read: a key that the user named is the only one of its field.
        remedy: The next step where a record lacks a field.
        given: Fields that records may lack, because files say them too.
        keeps_empty: Whether empty texts are fields too.
    """
    keys = declared.keys
    optional = keys.fields if options.allow_unknown else (*keys.optional, *given)
    ways = [
        FieldWay(
            name,
            (name,) if name in options.key_map else keys.fields[name],
            _value_of(keys.values.get(name)),
            name not in optional,
        )
        for name in names
        if name in keys.fields
    ]
    return DeclaredFields(ways, remedy, keeps_empty=keeps_empty)


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
        if len(self.known) == _MOST_SHARED:
            # Those that are another in each record, such as ids, take longer to look up.
            self.repeats = self.hits > _MOST_SHARED
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
    if len(known) == _MOST_SHARED:
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


# Rows ---------------------------------------------------------------------------------------------


class Row(Struct, frozen=True, gc=False):
    """What is read of an answer, of a question with its label, or of a caption."""

    id: str | int
    """The id; an int stands for its digits."""
    key: str = ""
    """What it is joined by where that is not its id: a position, or image and text."""
    response: str | None = None
    """What the model wrote; None without one."""
    label: object = None
    """The label as the file has it."""
    question: str = ""
    """What the model was asked; empty without one."""
    added: str = ""
    """The question of a record of a question file that an answer was added to."""
    image: str = ""
    """What the question is about; empty without one."""
    groups: Mapping[str, object] = _NOTHING
    """Values to group by, under their keys; empty without any."""
    record: Record | None = None
    """The record; None if nothing can be wrong with it."""
    objects: object = None
    """The objects of a caption's image as the file has them."""


class RowDecoder:
    """Decodes blocks of records that have the keys of a sample, and texts where it has some.

    Args:
        sample: The values of an archive's first record.
        keys: Field of a row -> usual keys of its value, of which the first one counts.
        groups: Reads fields to group by.
    """

    def __init__(
        self, sample: Mapping[str, object], keys: Mapping[str, Sequence[str]], groups: SharedFields
    ) -> None:
        found = {name: next(filter(sample.__contains__, names), "") for name, names in keys.items()}
        used = {key: name for name, key in found.items() if key}
        grouped = {key: f"group_{n}" for n, key in enumerate(groups.keys) if key in sample}
        kinds: dict[str, Any] = {key: type(sample[key]) for key in (*used, *grouped)}
        own, objects = found.get("id", ""), found.get("objects", "")
        if kinds.get(objects) is list:
            kinds[objects] = list[str]
        self.usable = (
            len(used) == sum(map(bool, found.values()))
            and used.keys().isdisjoint(grouped)
            and all(map(_UNESCAPED.fullmatch, sample))
            # A path leads into an object, which rows do not hold.
            and groups.begun.isdisjoint(sample.keys() - grouped.keys())
            and kinds.get(own) in (str, int)
            and kinds.get(objects) in (None, list[str])
            and all(kinds[key] is str for key in kinds.keys() - {own, objects})
        )
        """Whether such records can be decoded."""
        self.fields = frozenset(used.values())
        """The fields that they have."""
        if not self.usable:
            return
        # Keys may be any texts, and the fields of a class need names.
        names = {key: f"other_{n}" for n, key in enumerate(sample)} | used | grouped
        kept = {name: getattr(Row(0), name) for name in Row.__struct_fields__}
        absent = {name: value for name, value in kept.items() if name not in used.values()}
        if grouped:
            absent["groups"] = _grouped(grouped)
        self._row = defstruct(
            "DecodedRow",
            [(name, kinds.get(key, Any)) for key, name in names.items()],
            rename={name: key for key, name in names.items()},
            namespace=absent,
            forbid_unknown_fields=True,
            gc=False,
        )
        self._lines, self._list = Decoder(self._row), Decoder(list[self._row])  # type: ignore[name-defined]  # made above
        # All keys are texts, and so are the values of those that are read.
        self._texts = len(names) + list(kinds.values()).count(str)
        self._others = [
            attrgetter(name) for key, name in names.items() if kinds.get(key) not in (str, int)
        ]
        filled = {"id", "image"}.intersection(used.values())
        self._filled = [attrgetter(name) for name in filled if kinds[found[name]] is str]

    def __call__(self, data: bytes, lines: bool) -> list[Any] | None:
        """Return the rows of a block; None if its records are others, or must be looked at.

        Args:
            data: The block.
            lines: Whether it is lines rather than a list.
        """
        if not self.usable:
            return None
        try:
            rows = self._lines.decode_lines(data) if lines else self._list.decode(data)
        except (MsgspecError, ValueError, RecursionError):
            return None
        texts = self._texts * len(rows) + sum(texts_in(list(map(of, rows))) for of in self._others)
        # Duplicate keys, of which the decoder keeps the last value, have more quotes.
        if not has_quotes(data, texts):
            return None
        # Empty ids are refused, and records without an image are counted.
        return rows if all(all(map(str.strip, map(of, rows))) for of in self._filled) else None


def _grouped(names: Mapping[str, str]) -> property:
    """Return the property with the values to group by."""
    return property(lambda row: {key: getattr(row, names[key]) for key in names})
