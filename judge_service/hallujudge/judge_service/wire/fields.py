"""How the fields of values are written to messages and read from them.

Converters write to messages in place, because protobuf copies a nested message that is passed to a
constructor, and takes longer for a nested dictionary. Only messages of scalars are made of one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from ..errors import InvalidInputError, Violation

Convert: TypeAlias = Callable[[Any], Any]
Fill: TypeAlias = Callable[[Any, Any], None]
"""Writes the first argument to the second, a message."""


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


class Codec(NamedTuple):
    """A converter for a value type and a message, or for what a field holds."""

    write: Fill
    """Writes a value to its message, or to the message that has the field."""
    read: Convert
    """Message, or what a field of one holds -> value."""
    contents: Convert | None = None
    """Value -> dictionary of its message's fields, where both have the same scalars."""


class Kind(enum.Enum):
    """How a field is read."""

    HELD = enum.auto()
    """The message always has it: a scalar, a repeated field or a map."""
    OPTIONAL = enum.auto()
    """A scalar that may be absent."""
    MESSAGE = enum.auto()
    """A message, which may be absent."""
    UNION = enum.auto()
    """The message spreads it over the members of a oneof."""


class Field(NamedTuple):
    """How a field of a value is written and read."""

    name: str
    kind: Kind = Kind.HELD
    write: Any = None
    """Writes the content to the value's message, or to the message that is the field; the numbers
    of an enum's members by name; None where both hold the same."""
    read: Any = None
    """What the message holds -> content, or None where they are the same; a union's reads the whole
    message."""
    empty: bool = True
    """Whether content that is empty is written, unless it is None."""
    required: bool = False
    """Whether the content of an absent message can't be the value's default."""
    optional: bool = False
    """Whether it may be None."""
    members: Sequence[str] = ()
    """The fields of a union's message."""


# Values


def writer_of(fields: Sequence[Field]) -> Fill:
    """Return a function that writes the fields of a value to a message."""
    found = [(f.name, attrgetter(f.name), f.write, f.empty, f.kind is Kind.MESSAGE) for f in fields]

    # One function without others inside, because every field of every value comes through here.
    def write(value: Any, message: Any) -> None:
        try:
            for name, get, fill, empty, is_message in found:
                content = get(value)
                # Testing is faster than writing a default with protobuf.
                if not content and (content is None or not empty):
                    continue
                if fill is None:
                    setattr(message, name, content)
                elif isinstance(fill, dict):
                    # By name, because the hash of an enum member is computed in Python.
                    setattr(message, name, fill[content._name_])
                elif is_message:
                    place = getattr(message, name)
                    place.SetInParent()
                    fill(content, place)
                else:
                    fill(content, message)
        except MalformedError as err:
            raise err.within(name) from None
        # What protobuf raises for a value of a wrong type, or out of range; it names no field.
        except (TypeError, ValueError) as err:
            problem = f"{content!r:.80} is not a value that can be sent; check its type"
            raise MalformedError(problem, name) from err

    return write


def reader_of(fields: Sequence[Field]) -> Convert:
    """Return a function: message -> dictionary of the value's fields."""
    names = [f.name for f in fields if f.kind in (Kind.HELD, Kind.OPTIONAL)]
    get = getter(names)
    optional = tuple(f.name for f in fields if f.kind is Kind.OPTIONAL)
    held = tuple((f.name, f.read) for f in fields if f.kind is Kind.HELD and f.read is not None)
    nested = tuple(
        (f.name, f.read, f.required, f.optional) for f in fields if f.kind is Kind.MESSAGE
    )
    unions = tuple((f.name, f.read) for f in fields if f.kind is Kind.UNION)

    def read(message: Any) -> dict[str, Any]:
        found = dict(zip(names, get(message)))  # noqa: B905  # one for each name
        for name in optional:
            # A non-empty field is present; HasField takes longer than this test.
            if not found[name] and not message.HasField(name):
                found[name] = None
        try:
            for name, convert in held:
                found[name] = convert(found[name])
            for name, convert, required, optional_message in nested:
                if message.HasField(name):
                    found[name] = convert(getattr(message, name))
                elif optional_message:
                    found[name] = None
                elif required:
                    raise MalformedError("is missing")
        except MalformedError as err:
            raise err.within(name) from None
        for name, convert in unions:
            found[name] = convert(message)
        return found

    return read


def value_reader(value_type: Any, fields: Sequence[Field]) -> Convert:
    """Return a function that makes a value of a message."""
    kinds = {parameter.kind for parameter in signature(value_type).parameters.values()}
    if Parameter.KEYWORD_ONLY not in kinds and all(map(is_same, fields)):
        get = getter([field.name for field in fields])
        return lambda message: value_type(*get(message))
    read = reader_of(fields)

    def make(message: Any) -> Any:
        contents = read(message)
        try:
            return value_type(**contents)
        except ValueError as err:
            raise MalformedError(str(err)) from err

    return make


def is_same(field: Field) -> bool:
    """Return whether the message always has a field, with the content of the value's."""
    return field.kind is Kind.HELD and field.read is None


def getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the attributes with these names."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple([getattr(thing, name) for name in names])


def tuple_codec(names: Sequence[str]) -> Codec:
    """Return the converter of a tuple of scalars, by position."""

    def write(row: Any, message: Any) -> None:
        for name, content in zip(names, row):  # noqa: B905  # one for each name
            setattr(message, name, content)

    return Codec(write, getter(names))


def wrapped_codec(values: Codec) -> Codec:
    """Return the converter of a message that has one repeated field, ``values``."""
    return Codec(values.write, lambda message: values.read(message.values))


# Repeated fields and maps, by the field's name


def scalars_codec(name: str) -> Codec:
    """Return the converter of a tuple of scalars."""
    return Codec(lambda content, message: getattr(message, name).extend(content), _scalars)


def scalar_map_codec(name: str) -> Codec:
    """Return the converter of a mapping from texts to scalars."""

    def write(content: Any, message: Any) -> None:
        place = getattr(message, name)
        for key, part in content.items():
            place[key] = part

    return Codec(write, _sorted_map)


def list_codec(name: str, codec: Codec) -> Codec:
    """Return the converter of a tuple of values."""
    fill, read, contents = codec

    def write(parts: Any, message: Any) -> None:
        add = getattr(message, name).add
        for part in parts:
            if contents is None:
                fill(part, add())
            else:
                # In two thirds of the time of setting each field.
                add(**contents(part))

    def read_all(messages: Any) -> tuple[Any, ...]:
        try:
            return tuple(map(read, messages))
        except MalformedError:
            # The index is only determined after an error, to keep the usual case fast.
            return tuple(located(read, message, f"[{i}]") for i, message in enumerate(messages))

    return Codec(write, read_all)


def map_codec(name: str, codec: Codec) -> Codec:
    """Return the converter of a mapping from texts to values."""
    fill, read, _ = codec

    def write(parts: Any, message: Any) -> None:
        place = getattr(message, name)
        for key, part in parts.items():
            fill(part, place[key])

    return Codec(
        write, lambda found: {key: located(read, found[key], f"[{key}]") for key in sorted(found)}
    )


def rows_codec(name: str, key: str, fill: Fill | str, read: Convert) -> Codec:
    """Return the converter of a mapping that is sent as rows, which keep its order.

    Args:
        name: The field with the rows.
        key: The field of a row that holds the key.
        fill: Writes a value to the rest of its row; the name of its only other field for a scalar.
        read: Row -> value.
    """
    get_key = attrgetter(key)

    def write(parts: Any, message: Any) -> None:
        add = getattr(message, name).add
        for row_key, part in parts.items():
            row = add()
            setattr(row, key, row_key)
            if not isinstance(fill, str):
                fill(part, row)
            elif part is not None:
                setattr(row, fill, part)

    def read_rows(rows: Any) -> dict[str, Any]:
        found = {}
        try:
            for index, row in enumerate(rows):  # noqa: B007  # the handler needs the index
                found[get_key(row)] = read(row)
        except MalformedError as err:
            raise err.within(f"[{index}]") from None
        return found

    return Codec(write, read_rows)


def _scalars(found: Any) -> tuple[Any, ...]:
    # A slice is a list, which becomes a tuple faster than protobuf's container does.
    return tuple(found[:]) if found else ()


def _sorted_map(found: Any) -> dict[str, Any]:
    """Return a map's content, sorted because maps have no order on the wire."""
    contents = {}
    # A loop, since a comprehension is a call of its own until Python 3.12.
    for key in sorted(found) if found else ():
        contents[key] = found[key]
    return contents


def located(read: Convert, message: Any, place: str) -> Any:
    """Return what a function reads; its error names the place."""
    try:
        return read(message)
    except MalformedError as err:
        raise err.within(place) from None
