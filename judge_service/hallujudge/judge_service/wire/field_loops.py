"""Conversion of all fields of a value, in a few loops prepared beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from .fields import Convert, Field, Fill, Kind, MalformedError

_Read: TypeAlias = Callable[[Any], list[Any]]
_Getters: TypeAlias = tuple[tuple[str, Convert], ...]


def writer_of(fields: Sequence[Field]) -> Fill:
    """Return a function that writes the fields of a value to a message."""
    scalars = _getters(fields, Kind.SCALAR)
    optional = _getters(fields, Kind.NUMBER) + _getters(fields, Kind.OPTIONAL)
    lists = _converted(fields, Kind.LIST)
    others = _converted(fields, Kind.ENUM) + _converted(fields, Kind.MESSAGE)
    shaped = tuple((get, write) for _, get, write in _converted(fields, Kind.SHAPED))

    def write_held(value: Any, message: Any) -> None:
        for name, get in scalars:
            # Testing is faster than writing a default with protobuf, for the lists below as well.
            if content := get(value):
                setattr(message, name, content)
        for name, get in optional:
            if (content := get(value)) is not None:
                setattr(message, name, content)
        try:
            for name, get, fill in lists:  # noqa: B007  # the handler needs the name
                if content := get(value):
                    fill(content, message)
        except MalformedError as err:
            raise err.within(name) from None

    def write_all(value: Any, message: Any) -> None:
        write_held(value, message)
        try:
            for name, get, fill in others:  # noqa: B007  # the handler needs the name
                if (content := get(value)) is not None:
                    fill(content, message)
        except MalformedError as err:
            raise err.within(name) from None
        for get, fill in shaped:
            fill(get(value), message)

    return write_all if others or shaped else write_held


def inner_writer_of(fields: Sequence[Field], inner: str, inner_fields: Sequence[Field]) -> Fill:
    """Return a function that writes a value to a message and one within it.

    Args:
        fields: The fields that the message has.
        inner: Name of the message within it.
        inner_fields: The fields that this one has.
    """
    write_ours, write_inner, get = writer_of(fields), writer_of(inner_fields), attrgetter(inner)

    def write(value: Any, message: Any) -> None:
        write_ours(value, message)
        part = get(message)
        # Even an empty message must be present, because it names the task of an item.
        part.SetInParent()
        try:
            write_inner(value, part)
        except MalformedError as err:
            raise err.within(inner) from None

    return write


def reader_of(value_type: Any, fields: Sequence[Field]) -> Convert:
    """Return a function that makes a value of a message."""
    read, make = _reader(fields), _maker(value_type, [f.name for f in _in_order(fields)])
    return lambda message: make(read(message))


def inner_reader_of(
    value_type: Any, fields: Sequence[Field], inner: str, inner_fields: Sequence[Field]
) -> Convert:
    """Return a function that makes a value of a message and one within it.

    Args:
        value_type: The type of the value.
        fields: The fields that the message has; each is a scalar or a map of scalars.
        inner: Name of the message within it.
        inner_fields: The fields that this one has.
    """
    ours = _in_order(fields)
    get, read_inner = _getter([f.name for f in ours]), _reader(inner_fields)
    first = len(inner_fields)
    maps = tuple((first + i, f.read) for i, f in enumerate(ours) if f.kind is Kind.LIST)
    make = _maker(value_type, [f.name for f in (*_in_order(inner_fields), *ours)])

    def read(message: Any) -> Any:
        try:
            contents = read_inner(getattr(message, inner))
        except MalformedError as err:
            raise err.within(inner) from None
        contents += get(message)
        for index, convert in maps:
            contents[index] = convert(contents[index])
        return make(contents)

    return read


def row_functions(row_type: type, fields: Sequence[Field]) -> tuple[Fill, Convert]:
    """Return functions that write and read a tuple of scalars, by position.

    Args:
        row_type: A tuple, or a named tuple.
        fields: The fields of the message, in the order of the elements.
    """
    names = tuple(field.name for field in fields)
    optional = tuple((i, f.name) for i, f in enumerate(fields) if f.kind is Kind.OPTIONAL)
    get = _getter(names)
    # The constructor of a named tuple is a Python function; this call skips it.
    make = partial(tuple.__new__, row_type)

    def write(value: Any, message: Any) -> None:
        for name, content in zip(names, value):  # noqa: B905  # one for each name
            if content is not None:
                setattr(message, name, content)

    def read_optional(message: Any) -> Any:
        contents = list(get(message))
        for index, name in optional:
            # A non-empty field is present; HasField takes longer than this test.
            if not contents[index] and not message.HasField(name):
                contents[index] = None
        return make(contents)

    if optional:
        return write, read_optional
    return write, get if row_type is tuple else lambda message: make(get(message))


def _getters(fields: Sequence[Field], kind: Kind) -> _Getters:
    return tuple((f.name, attrgetter(f.name)) for f in fields if f.kind is kind)


def _converted(fields: Sequence[Field], kind: Kind) -> tuple[tuple[str, Convert, Fill], ...]:
    return tuple((f.name, attrgetter(f.name), f.write) for f in fields if f.kind is kind)


def _in_order(fields: Sequence[Field]) -> list[Field]:
    """Return fields in the order in which :func:`_reader` reads them."""
    order = list(Kind)
    return sorted(fields, key=lambda f: order.index(f.kind))


def _reader(fields: Sequence[Field]) -> _Read:
    """Return a function: message -> contents of the fields, ordered by their kinds."""
    ordered = _in_order(fields)
    held = [f for f in ordered if f.kind not in (Kind.MESSAGE, Kind.SHAPED)]
    get = _getter([f.name for f in held])
    optional = tuple((i, f.name) for i, f in enumerate(held) if f.kind is Kind.OPTIONAL)
    converted = tuple(
        (i, f.name, f.read) for i, f in enumerate(held) if f.kind in (Kind.ENUM, Kind.LIST)
    )
    nested = tuple((f.name, f.read, f.absent) for f in ordered if f.kind is Kind.MESSAGE)
    shaped = tuple(f.read for f in ordered if f.kind is Kind.SHAPED)

    def read_held(message: Any) -> list[Any]:
        contents = list(get(message))
        for index, name in optional:
            # A non-empty field is present; HasField takes longer than this test.
            if not contents[index] and not message.HasField(name):
                contents[index] = None
        try:
            for index, name, convert in converted:  # noqa: B007  # the handler needs the name
                contents[index] = convert(contents[index])
        except MalformedError as err:
            raise err.within(name) from None
        return contents

    def read_all(message: Any) -> list[Any]:
        contents = read_held(message)
        try:
            for name, convert, absent in nested:
                found = message.HasField(name)
                contents.append(convert(getattr(message, name)) if found else absent())
        except MalformedError as err:
            raise err.within(name) from None
        for convert in shaped:
            contents.append(convert(message))
        return contents

    return read_all if nested or shaped else read_held


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return lambda thing: (get(thing),)


def _maker(value_type: Any, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes a value of the contents of its fields."""
    if issubclass(value_type, tuple):
        places = [names.index(name) for name in value_type._fields]
        if places == sorted(places):
            return value_type._make  # type: ignore[no-any-return]  # of a named tuple
        return lambda contents: value_type._make([contents[place] for place in places])

    def make(contents: Sequence[Any]) -> Any:
        return value_type(**dict(zip(names, contents, strict=True)))

    if not hasattr(value_type, "__post_init__"):
        return make

    def checked(contents: Sequence[Any]) -> Any:
        try:
            return make(contents)
        except ValueError as err:
            raise MalformedError(str(err)) from err

    return checked
