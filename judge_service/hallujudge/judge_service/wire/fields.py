"""Fields of values and messages: their types, and how each kind is written and read."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from msgspec import NODEFAULT, Struct, structs

from ..errors import InvalidInputError, Violation

SCALARS: Mapping[type, frozenset[int]] = {
    str: frozenset({FieldDescriptor.CPPTYPE_STRING}),
    bool: frozenset({FieldDescriptor.CPPTYPE_BOOL}),
    float: frozenset({FieldDescriptor.CPPTYPE_DOUBLE}),
    int: frozenset(
        {
            FieldDescriptor.CPPTYPE_INT32,
            FieldDescriptor.CPPTYPE_INT64,
            FieldDescriptor.CPPTYPE_UINT32,
            FieldDescriptor.CPPTYPE_UINT64,
        }
    ),
}


class MismatchError(TypeError):
    """A value and its message have different fields."""


class ValueField(NamedTuple):
    """A field of a value type."""

    name: str
    """Its name."""
    hint: Any
    """Its type."""
    default: Callable[[], Any] | None
    """Makes its default, or None if it is required."""


def fields_of(value_type: Any) -> list[ValueField]:
    """Return the fields of a Struct, a dataclass or a named tuple, in order."""
    hints = get_type_hints(value_type)
    if issubclass(value_type, Struct):
        return [
            ValueField(field.name, hints[field.name], _default(field, NODEFAULT))
            for field in structs.fields(value_type)
        ]
    if dataclasses.is_dataclass(value_type):
        return [
            ValueField(field.name, hints[field.name], _default(field, dataclasses.MISSING))
            for field in dataclasses.fields(value_type)
            if field.init
        ]
    defaults = value_type._field_defaults
    return [
        ValueField(
            name, hints[name], partial(defaults.__getitem__, name) if name in defaults else None
        )
        for name in value_type._fields
    ]


def _default(field: Any, missing: object) -> Callable[[], Any] | None:
    if field.default is not missing:
        return lambda: field.default
    made: Callable[[], Any] = field.default_factory
    return None if made is missing else made


def without_none(hint: Any) -> Any:
    """Return a hint without ``| None``."""
    members = members_of(hint)
    left = [member for member in members if member is not NoneType]
    return left[0] if len(left) == 1 else hint


def members_of(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or a hint that is not a union as its only member."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a message's field is repeated, maps included."""
    # protobuf 7 lacks `label`, and protobuf 5 `is_repeated`. Singular messages have no default.
    if field.message_type is not None and field.has_presence:
        return False
    return isinstance(field.default_value, list)


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a message's field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def message_of(field: FieldDescriptor) -> Descriptor:
    """Return the message that a field holds.

    Raises:
        MismatchError: It holds something else.
    """
    if field.message_type is None:
        raise MismatchError(f"{field.full_name} does not hold a message")
    return field.message_type


def is_plain(hint: Any, field: FieldDescriptor) -> bool:
    """Return whether both sides hold the same scalar."""
    if is_repeated(field) or (NoneType in members_of(hint)) != field.has_presence:
        return False
    return is_scalar(without_none(hint), field)


def is_scalar(hint: Any, field: FieldDescriptor) -> bool:
    """Return whether a hint is the type of a message's field, or of its elements."""
    return isinstance(hint, type) and field.cpp_type in SCALARS.get(hint, ())


def wrapped_list(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the field ``values`` of a message that is an optional list, or None."""
    message = field.message_type
    if message is None or [inner.name for inner in message.fields] != ["values"]:
        return None
    return message.fields[0]


def row_fields(hint: Any, row: Descriptor) -> tuple[str, str]:
    """Return the names of key and value in the rows of a mapping; "" for several value fields."""
    key, *rest = row.fields
    scalar = without_none(get_args(hint)[1])
    single = len(rest) == 1 and is_plain(get_args(hint)[1], rest[0])
    if key.cpp_type != FieldDescriptor.CPPTYPE_STRING or (scalar in SCALARS and not single):
        raise MismatchError(f"{row.name} is not a row of {hint}")
    return key.name, rest[0].name if single else ""


def enum_numbers(hint: type[enum.Enum], descriptor: EnumDescriptor) -> dict[enum.Enum, int]:
    """Return the number of each member of an enum.

    Raises:
        MismatchError: Their names differ.
    """
    zero, *others = descriptor.values
    prefix = zero.name.removesuffix("UNSPECIFIED")
    numbers = {value.name.removeprefix(prefix): value.number for value in others}
    if zero.number or prefix == zero.name or numbers.keys() != hint.__members__.keys():
        raise MismatchError(f"enum {hint.__name__} and its message have different members")
    return {hint[name]: number for name, number in numbers.items()}


class MalformedError(ValueError):
    """A message, or a value to send, with invalid content.

    Args:
        problem: What is wrong and what to do.
        place: The field, as a path relative to the converted message. Converters of enclosing
            messages prepend their own field.
    """

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place

    def within(self, place: str) -> MalformedError:
        """Return the error with the field of the enclosing message prepended."""
        joint = "." if self.place and not self.place.startswith("[") else ""
        return MalformedError(self.problem, f"{place}{joint}{self.place}")


def invalid(error: MalformedError, within: str = "") -> InvalidInputError:
    """Return the error for callers.

    Args:
        error: What is wrong.
        within: The field of the request that holds the message, such as ``items[3]``.
    """
    if within:
        error = error.within(within)
    violation = Violation(field=error.place, description=error.problem)
    return InvalidInputError(str(error), violations=(violation,) if error.place else ())


Convert: TypeAlias = Callable[[Any], Any]
Fill: TypeAlias = Callable[[Any, Any], None]
"""Writes the first argument to the second, a message."""


class Codec(NamedTuple):
    """A converter for a pair of a value type and a message."""

    write: Fill
    """Writes a value to a message."""
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
    """How a field is converted."""

    SCALAR = enum.auto()
    """Both sides have the same content; an empty one is not written."""
    NUMBER = enum.auto()
    """The same, but always written: -0.0 is falsy and still differs from the default."""
    OPTIONAL = enum.auto()
    """Both sides have the same content, which may be absent."""
    ENUM = enum.auto()
    """A scalar is converted; None is not written."""
    LIST = enum.auto()
    """A repeated field or a map is converted."""
    MESSAGE = enum.auto()
    """A message is converted, which may be absent."""
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
    """Reads the content of the message's field; for ``SHAPED``, of the whole message."""
    absent: Callable[[], Any] = lambda: None
    """Makes the content of a field that the message lacks."""


def scalar(name: str, kind: Kind) -> Field:
    """Return a field that has the same content on both sides."""

    def write(content: Any, message: Any) -> None:
        setattr(message, name, content)

    return Field(name, kind, write, lambda content: content)


def converted(name: str, codec: ScalarCodec) -> Field:
    """Return a field whose scalar is converted; None is not written."""
    convert = codec.write

    def write(content: Any, message: Any) -> None:
        setattr(message, name, convert(content))

    return Field(name, Kind.ENUM, write, codec.read)


def repeated_scalars(name: str) -> Field:
    """Return a field that holds a tuple of scalars."""

    def write(content: Any, message: Any) -> None:
        getattr(message, name).extend(content)

    def read(found: Any) -> tuple[Any, ...]:
        # A slice is a list, which becomes a tuple faster than protobuf's container does.
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


def message(name: str, codec: Codec, absent: Callable[[], Any]) -> Field:
    """Return a field that holds a value."""
    return Field(name, Kind.MESSAGE, member_writer(name, codec.write), codec.read, absent)


def member_writer(name: str, fill: Fill) -> Fill:
    """Return a function that writes a value to a message within a message."""

    def write(content: Any, message: Any) -> None:
        place = getattr(message, name)
        # Marks the message as present, even if the value writes nothing to it.
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


def rearranged(field: Field, how: Rearranged) -> Field:
    """Return a field that is written and read in another arrangement."""
    return field._replace(
        write=lambda content, message: field.write(how.write(content), message),
        read=lambda content: how.read(field.read(content)),
    )


def absent_of(field: ValueField) -> Callable[[], Any]:
    """Return what makes the content of a field whose message is absent."""
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
    """Return a map's content, sorted because maps have no order on the wire."""
    if not found:
        return {}
    return {key: found[key] for key in sorted(found)}


def _each(read: Convert) -> Convert:
    """Return a function that reads all messages of a repeated field."""

    def read_all(messages: Any) -> tuple[Any, ...]:
        try:
            return tuple(map(read, messages))
        except MalformedError:
            # The index is only determined after an error, to keep the usual case fast.
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
