"""The kinds of fields: how each is written to a message and read from one."""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from .hints import ValueField, members_of
from .places import MalformedError

__all__ = [
    "Codec",
    "Convert",
    "Field",
    "FieldShape",
    "Fill",
    "Kind",
    "Rearranged",
    "ScalarCodec",
    "absent_of",
    "converted",
    "keyed_rows",
    "map_of_messages",
    "map_of_optional_pairs",
    "map_of_scalars",
    "member_writer",
    "message",
    "pairs",
    "rearranged",
    "repeated_messages",
    "repeated_scalars",
    "scalar",
    "shaped",
    "wrapped",
]

Convert: TypeAlias = Callable[[Any], Any]
Fill: TypeAlias = Callable[[Any, Any], None]
"""Writes the first argument to the second, a message."""


class Codec(NamedTuple):
    """A converter for a pair of a value type and a message."""

    write: Fill
    """Value, message -> nothing; it writes the value to the message."""
    read: Convert
    """Message -> value."""


class ScalarCodec(NamedTuple):
    """A converter for a pair of a value type and a scalar."""

    write: Convert
    """Value -> scalar."""
    read: Convert
    """Scalar -> value."""


class FieldShape(NamedTuple):
    """A converter for a field of a value that a message spreads over other fields."""

    covers: tuple[str, ...]
    """The fields of the message."""
    write: Fill
    """Content of the value's field, message -> nothing; it writes the covered fields."""
    read: Convert
    """The whole message -> content of the value's field."""


class Rearranged(NamedTuple):
    """A field whose content is arranged in another way before it is converted."""

    hint: Any
    """The type that has the shape of the message."""
    write: Convert
    """Content of the value's field -> content of that type."""
    read: Convert
    """Content of that type -> content of the value's field."""


class Kind(enum.Enum):
    """What is done about a field."""

    SCALAR = enum.auto()
    """Both sides have the same content; an empty one is not written."""
    NUMBER = enum.auto()
    """The same, and written in any case: -0.0 counts as empty and differs from the default."""
    OPTIONAL = enum.auto()
    """Both sides have the same content, and a message can lack it."""
    ENUM = enum.auto()
    """A scalar is converted; None is not written."""
    LIST = enum.auto()
    """A repeated field or a map is converted."""
    MESSAGE = enum.auto()
    """A message is converted, which can be absent."""
    SHAPED = enum.auto()
    """The message spreads the field over others."""


class Field(NamedTuple):
    """How a field of a value is written and read."""

    name: str
    """Its name."""
    kind: Kind
    """Its kind."""
    write: Fill
    """Writes the content to the message that has the field."""
    read: Convert
    """Content of the message's field -> content of the value's; of ``SHAPED`` the whole message."""
    absent: Callable[[], Any]
    """Makes the content of a field that the message lacks."""


def _none() -> None:
    return None


def scalar(name: str, kind: Kind) -> Field:
    """Return a field that has the same content on both sides."""

    def write(content: Any, message: Any) -> None:
        setattr(message, name, content)

    return Field(name, kind, write, lambda content: content, _none)


def converted(name: str, codec: ScalarCodec) -> Field:
    """Return a field whose scalar is converted; None is not written."""
    convert = codec.write

    def write(content: Any, message: Any) -> None:
        setattr(message, name, convert(content))

    return Field(name, Kind.ENUM, write, codec.read, _none)


def repeated_scalars(name: str) -> Field:
    """Return a field that holds a tuple of scalars."""

    def write(content: Any, message: Any) -> None:
        getattr(message, name).extend(content)

    def read(found: Any) -> tuple[Any, ...]:
        # A slice is a list, from which a tuple is made faster than from protobuf's container.
        return tuple(found[:]) if found else ()

    return Field(name, Kind.LIST, write, read, tuple)


def repeated_messages(name: str, codec: Codec) -> Field:
    """Return a field that holds a tuple of values."""
    fill = codec.write

    def write(content: Any, message: Any) -> None:
        add = getattr(message, name).add
        for part in content:
            fill(part, add())

    return Field(name, Kind.LIST, write, _each(codec.read), tuple)


def map_of_scalars(name: str) -> Field:
    """Return a field that holds a mapping from texts to scalars."""

    def write(content: Any, message: Any) -> None:
        place = getattr(message, name)
        for key, part in content.items():
            place[key] = part

    return Field(name, Kind.LIST, write, _sorted_map, dict)


def map_of_messages(name: str, codec: Codec) -> Field:
    """Return a field that holds a mapping from texts to values."""
    fill = codec.write

    def write(content: Any, message: Any) -> None:
        place = getattr(message, name)
        for key, part in content.items():
            fill(part, place[key])

    return Field(name, Kind.LIST, write, _each_value(codec.read), dict)


def map_of_optional_pairs(name: str, pair: tuple[str, str], read: Convert) -> Field:
    """Return a field that holds a mapping from texts to values with two optional scalars.

    INFACT's runs are such values, and an item has many of them: a loop over their two fields takes
    half as long again.
    """
    first, second = pair
    get_pair = attrgetter(first, second)

    def write(content: Any, message: Any) -> None:
        place = getattr(message, name)
        for key, part in content.items():
            row, (one, other) = place[key], get_pair(part)
            if one is not None:
                setattr(row, first, one)
            if other is not None:
                setattr(row, second, other)

    return Field(name, Kind.LIST, write, _each_value(read), dict)


def message(name: str, codec: Codec, absent: Callable[[], Any]) -> Field:
    """Return a field that holds a value.

    Args:
        name: Its name.
        codec: The value's converter.
        absent: Makes the content of a field that the message lacks.
    """
    return Field(name, Kind.MESSAGE, member_writer(name, codec.write), codec.read, absent)


def member_writer(name: str, fill: Fill) -> Fill:
    """Return a function that writes a value to a message within a message."""

    def write(content: Any, message: Any) -> None:
        place = getattr(message, name)
        place.SetInParent()
        fill(content, place)

    return write


def wrapped(values: Field) -> Codec:
    """Return the converter of a message that has one repeated field, ``values``."""
    fill, read = values.write, values.read

    def write(content: Any, message: Any) -> None:
        if content:
            fill(content, message)

    return Codec(write, lambda message: read(message.values))


def pairs(name: str, key: str, value: str, *, optional: bool) -> Field:
    """Return a field that holds a mapping to scalars, which is sent as rows of two fields."""

    def write(content: Any, message: Any) -> None:
        add = getattr(message, name).add
        for key_content, part in content.items():
            row = add()
            setattr(row, key, key_content)
            if part is not None:
                setattr(row, value, part)

    return Field(name, Kind.LIST, write, _pairs_reader(key, value, optional), dict)


def keyed_rows(name: str, key: str, codec: Codec, *, keyed: bool) -> Field:
    """Return a field that holds a mapping to values, which is sent as rows with their key.

    Args:
        name: Its name.
        key: The field of a row that holds the key.
        codec: Converter of a value and a row.
        keyed: Whether the value has the key too.
    """
    fill, read, get_key = codec.write, _each(codec.read), attrgetter(key)

    def write(content: Any, message: Any) -> None:
        add = getattr(message, name).add
        for key_content, part in content.items():
            row = add()
            fill(part, row)
            setattr(row, key, key_content)

    def read_rows(rows: Any) -> dict[str, Any]:
        values = read(rows)
        return dict(zip(map(get_key, values if keyed else rows), values, strict=True))

    return Field(name, Kind.LIST, write, read_rows, dict)


def shaped(name: str, shape: FieldShape) -> Field:
    """Return a field that the message spreads over others."""
    return Field(name, Kind.SHAPED, shape.write, shape.read, _none)


def rearranged(field: Field, how: Rearranged) -> Field:
    """Return a field that is written and read in another arrangement."""
    return field._replace(
        write=lambda content, message: field.write(how.write(content), message),
        read=lambda content: how.read(field.read(content)),
    )


def absent_of(field: ValueField) -> Callable[[], Any]:
    """Return what stands for a message that is not there."""
    if type(None) in members_of(field.hint):
        return lambda: None
    if field.default is not None:
        return field.default

    def missing() -> Any:
        raise MalformedError("is missing")

    return missing


def _pairs_reader(key: str, value: str, optional: bool) -> Convert:
    get = attrgetter(key, value)

    def read_optional(rows: Any) -> dict[str, Any]:
        found = {}
        for row in rows:
            name, content = get(row)
            found[name] = content if row.HasField(value) else None
        return found

    return read_optional if optional else lambda rows: dict(map(get, rows))


def _sorted_map(found: Any) -> dict[str, Any]:
    """Return a map's content. Maps have no order on the wire; sorted, they have one."""
    if not found:
        return {}
    return {key: found[key] for key in sorted(found)}


def _each(read: Convert) -> Convert:
    """Return a function that reads all messages of a repeated field."""

    def read_all(messages: Any) -> tuple[Any, ...]:
        try:
            return tuple(map(read, messages))
        except MalformedError:
            # Which one it was is only looked for where one is wrong.
            return tuple(_located(read, message, f"[{i}]") for i, message in enumerate(messages))

    return read_all


def _each_value(read: Convert) -> Convert:
    """Return a function that reads all messages of a map, in the order of their keys."""

    def read_all(found: Any) -> dict[str, Any]:
        try:
            return {key: read(found[key]) for key in sorted(found)}
        except MalformedError:
            return {key: _located(read, found[key], f"[{key}]") for key in sorted(found)}

    return read_all


def _located(read: Convert, message: Any, place: str) -> Any:
    try:
        return read(message)
    except MalformedError as err:
        raise err.within(place) from None
