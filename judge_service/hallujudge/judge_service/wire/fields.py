"""How the fields of values are written to messages and read from them.

Converters write to messages in place, because protobuf copies a nested message that is passed to a
constructor, and takes longer for a nested dictionary. Only messages of scalars are made of one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from itertools import starmap
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, structs

from ..errors import InvalidInputError, Violation

Convert: TypeAlias = Callable[[Any], Any]
Fill: TypeAlias = Callable[[Any, Any], None]
"""Writes the first argument to the second, a message."""


DEFAULT: Final = object()
"""What an absent message is read as if the value has a default."""


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
    error = error.within(within) if within else error
    violation = Violation(field=error.place, description=error.problem)
    return InvalidInputError(str(error), violations=(violation,) if error.place else ())


class Codec(NamedTuple):
    """A converter for a value type and its message, or for a field and the message that has it."""

    write: Fill
    """Writes a value to the message."""
    read: Convert
    """Message -> value."""
    row: type[Struct] | None = None
    """The value's type, if its message always has the same scalars."""


class Field(NamedTuple):
    """How a field of a value is written and read."""

    name: str
    write: Fill | None = None
    """Writes the content to the value's message; None where both hold the same."""
    read: Convert | None = None
    """The value's message -> content; None where both hold the same."""
    optional: bool = False
    """Whether the message may lack it, and the value has None then."""
    empty: bool = False
    """Whether content that is empty is written, unless it is None."""
    members: Sequence[str] = ()
    """The message's fields that hold the members of a union."""


# Values


def writer_of(fields: Sequence[Field]) -> Fill:
    """Return a function that writes the fields of a value to a message."""
    found = [(f.name, attrgetter(f.name), f.write, f.empty) for f in fields]

    # One function without others inside, because every field of every value comes through here.
    def write(value: Any, message: Any) -> None:
        try:
            for name, get, fill, empty in found:
                content = get(value)
                # Testing is faster than writing a default with protobuf.
                if content or (empty and content is not None):
                    if fill is None:
                        setattr(message, name, content)
                    else:
                        fill(content, message)
        except MalformedError as err:
            # The place grows from the inside: each level adds its own field.
            raise err.within(name) from None
        # What protobuf raises for a value of a wrong type, or out of range; it names no field.
        except (TypeError, ValueError) as err:
            problem = f"{content!r:.80} is not a value that can be sent; check its type"
            raise MalformedError(problem, name) from err

    return write


def reader_of(fields: Sequence[Field]) -> Convert:
    """Return a function: message -> dictionary of the value's fields."""
    # Read in one call of attrgetter, which is faster than one for each.
    plain = [f.name for f in fields if f.read is None]
    contents = getter(plain)
    optional = [f.name for f in fields if f.optional]
    # Unions last: of several errors, the first is raised.
    converted = [(f.name, f.read) for f in sorted(fields, key=lambda f: len(f.members)) if f.read]
    unions = {f.name for f in fields if f.members}

    def read(message: Any) -> dict[str, Any]:
        found = dict(zip(plain, contents(message)))  # noqa: B905  # one for each name
        for name in optional:
            # A non-empty field is present; HasField takes longer than this test.
            if not found[name] and not message.HasField(name):
                found[name] = None
        try:
            for name, convert in converted:
                if (content := convert(message)) is not DEFAULT:
                    found[name] = content
        except MalformedError as err:
            # The error of a union names the member.
            raise (err if name in unions else err.within(name)) from None
        return found

    return read


def value_reader(value_type: Any, fields: Sequence[Field]) -> Convert:
    """Return a function that makes a value of a message."""
    if by_place(value_type) and all(map(is_same, fields)):
        get = getter([field.name for field in fields])
        return lambda message: value_type(*get(message))
    read = reader_of(fields)

    def make(message: Any) -> Any:
        contents = read(message)
        try:
            # A value checks itself, and a message from outside may not pass.
            return value_type(**contents)
        except ValueError as err:
            raise MalformedError(str(err)) from err

    return make


def is_same(field: Field) -> bool:
    """Return whether the message always has a field, with the content of the value's."""
    return field.write is None and field.read is None and not field.optional


def by_place(value_type: Any) -> bool:
    """Return whether all fields of a value may be given by position."""
    kinds = (parameter.kind for parameter in signature(value_type).parameters.values())
    return Parameter.KEYWORD_ONLY not in kinds


def getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the attributes with these names."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple([getattr(thing, name) for name in names])


def scalar_reader(name: str) -> Convert:
    """Return a function that reads a scalar which a message may lack."""
    get = attrgetter(name)

    def read(message: Any) -> Any:
        # A non-empty field is present; HasField takes longer than this test.
        return content if (content := get(message)) or message.HasField(name) else None

    return read


def message_codec(name: str, codec: Codec, absent: Any = Parameter.empty) -> Codec:
    """Return the converter of a field that is a message.

    Args:
        name: The field.
        codec: The message's converter.
        absent: What an absent message is read as; by default an error.
    """
    fill, read, _ = codec

    def write(content: Any, message: Any) -> None:
        place = getattr(message, name)
        # An empty message would otherwise count as absent.
        place.SetInParent()
        fill(content, place)

    def read_present(message: Any) -> Any:
        if message.HasField(name):
            return read(getattr(message, name))
        if absent is Parameter.empty:
            raise MalformedError("is missing")
        return absent

    return Codec(write, read_present)


def tuple_codec(names: Sequence[str]) -> Codec:
    """Return the converter of a tuple of scalars, by position."""

    def write(row: Any, message: Any) -> None:
        for name, content in zip(names, row):  # noqa: B905  # one for each name
            setattr(message, name, content)

    return Codec(write, getter(names))


# Repeated fields and maps, by the field's name


def scalars_codec(name: str, kind: Any) -> Codec:
    """Return the converter of a tuple of scalars of one type."""
    get = attrgetter(name)

    def write(content: Any, message: Any) -> None:
        # protobuf takes three times as long for whole numbers as an array and its numbers.
        get(message).extend(array("d", content) if kind is float else content)

    def read(message: Any) -> tuple[Any, ...]:
        # A slice is a list, which becomes a tuple faster than protobuf's container does.
        return tuple(found[:]) if (found := get(message)) else ()

    return Codec(write, read)


def list_codec(name: str, codec: Codec) -> Codec:
    """Return the converter of a tuple of values."""
    fill, read, row = codec
    # Without a dictionary for each value, which takes longer.
    get, contents = attrgetter(name), getter(row.__struct_fields__ if row else ())
    made = row if row and by_place(row) else None

    def write(parts: Any, message: Any) -> None:
        add = get(message).add
        for part in parts:
            if row is None:
                fill(part, add())
            else:
                # In two thirds of the time of setting each field.
                add(**structs.asdict(part))

    def read_all(message: Any) -> tuple[Any, ...]:
        rows = get(message)
        try:
            return tuple(starmap(made, map(contents, rows)) if made else map(read, rows))
        except MalformedError:
            # The index is only determined after an error, to keep the usual case fast.
            return tuple(located(read, row, f"[{i}]") for i, row in enumerate(rows))

    return Codec(write, read_all)


def map_codec(name: str, codec: Codec | None) -> Codec:
    """Return the converter of a mapping from texts to values, or to scalars without a codec."""
    get = attrgetter(name)

    def write(parts: Any, message: Any) -> None:
        place = get(message)
        for key, part in parts.items():
            if codec is None:
                place[key] = part
            else:
                codec.write(part, place[key])

    def read(message: Any) -> dict[str, Any]:
        if not (found := get(message)):
            return {}
        # Sorted because maps have no order on the wire.
        if codec is None:
            return {key: found[key] for key in sorted(found)}
        return {key: located(codec.read, found[key], f"[{key}]") for key in sorted(found)}

    return Codec(write, read)


def rows_codec(name: str, key: str, fill: Fill | str, read: Convert) -> Codec:
    """Return the converter of a mapping that is sent as rows, which keep its order.

    Args:
        name: The field with the rows.
        key: The field of a row that holds the key.
        fill: Writes a value to the rest of its row; the name of its only other field for a scalar.
        read: Row -> value.
    """
    get, get_key = attrgetter(name), attrgetter(key)

    def write(parts: Any, message: Any) -> None:
        add = get(message).add
        for row_key, part in parts.items():
            row = add()
            setattr(row, key, row_key)
            if not isinstance(fill, str):
                fill(part, row)
            elif part is not None:
                setattr(row, fill, part)

    def read_rows(message: Any) -> dict[str, Any]:
        rows = get(message)[:]
        try:
            return dict(zip(map(get_key, rows), map(read, rows)))  # noqa: B905  # one for each row
        except MalformedError:
            return {get_key(row): located(read, row, f"[{i}]") for i, row in enumerate(rows)}

    return Codec(write, read_rows)


def located(read: Convert, message: Any, place: str) -> Any:
    """Return what a function reads; its error names the place."""
    try:
        return read(message)
    except MalformedError as err:
        raise err.within(place) from None
