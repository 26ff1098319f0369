"""Conversion of all fields of a value, in few loops over what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from hallujudge.metrics.framework.slots import maker_of

from .fields import Convert, Field, Fill, Kind
from .places import MalformedError

__all__ = ["reader_of", "row_functions", "writer_of"]

_Read: TypeAlias = Callable[[Any], list[Any]]
_Getters: TypeAlias = tuple[tuple[str, Convert], ...]


def writer_of(fields: Sequence[Field]) -> Fill:
    """Return a function that writes the fields of a value to a message."""
    scalars = tuple((f.name, attrgetter(f.name)) for f in fields if f.kind is Kind.SCALAR)
    optional = tuple((f.name, attrgetter(f.name)) for f in fields if f.kind is Kind.OPTIONAL)
    lists = _converted(fields, Kind.LIST)
    others = _converted(fields, Kind.ENUM) + _converted(fields, Kind.MESSAGE)
    shaped = tuple((get, write) for _, get, write in _converted(fields, Kind.SHAPED))
    write_scalars = _scalar_writer(scalars, optional)
    if not (lists or others or shaped):
        return write_scalars

    def write(value: Any, message: Any) -> None:
        write_scalars(value, message)
        try:
            for name, get, fill in lists:  # noqa: B007  # the handler needs the name
                # Writing nothing would take protobuf longer than this test.
                if content := get(value):
                    fill(content, message)
            for name, get, fill in others:  # noqa: B007
                if (content := get(value)) is not None:
                    fill(content, message)
        except MalformedError as err:
            raise err.within(name) from None
        for get, fill in shaped:
            fill(get(value), message)

    return write


def _scalar_writer(scalars: _Getters, optional: _Getters) -> Fill:
    def write_optional(value: Any, message: Any) -> None:
        for name, get in optional:
            if (content := get(value)) is not None:
                setattr(message, name, content)

    def write_all(value: Any, message: Any) -> None:
        for name, get in scalars:
            setattr(message, name, get(value))
        for name, get in optional:
            if (content := get(value)) is not None:
                setattr(message, name, content)

    return write_all if scalars else write_optional


def reader_of(
    value_type: Any, fields: Sequence[Field], inner: str = "", inner_fields: Sequence[Field] = ()
) -> Convert:
    """Return a function that makes a value of a message.

    Args:
        value_type: The type of the value.
        fields: Its fields.
        inner: Name of a message within the message; empty: there is none.
        inner_fields: The other fields of the value, which this one has.
    """
    names = [f.name for f in (*_in_order(fields), *_in_order(inner_fields))]
    read_fields, read_inner = _reader(fields), _reader(inner_fields)
    make = _maker(value_type, names)
    if not inner:
        return lambda message: make(read_fields(message))

    def read(message: Any) -> Any:
        contents = read_fields(message)
        try:
            contents += read_inner(getattr(message, inner))
        except MalformedError as err:
            raise err.within(inner) from None
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
    make = partial(tuple.__new__, row_type)

    def write(value: Any, message: Any) -> None:
        for name, content in zip(names, value):  # noqa: B905  # one for each name
            if content is not None:
                setattr(message, name, content)

    def read_optional(message: Any) -> Any:
        contents = list(get(message))
        for index, name in optional:
            if not message.HasField(name):
                contents[index] = None
        return make(contents)

    return write, read_optional if optional else lambda message: make(get(message))


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

    def read_scalars(message: Any) -> list[Any]:
        contents = list(get(message))
        for index, name in optional:
            if not message.HasField(name):
                contents[index] = None
        return contents

    def read_held(message: Any) -> list[Any]:
        contents = list(get(message))
        for index, name in optional:
            if not message.HasField(name):
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

    if nested or shaped:
        return read_all
    return read_held if converted else read_scalars


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple(getattr(thing, name) for name in names)


def _maker(value_type: Any, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes a value of the contents of its fields."""
    if issubclass(value_type, tuple):
        places = [names.index(name) for name in value_type._fields]
        if places == sorted(places):
            return value_type._make  # type: ignore[no-any-return]  # of a named tuple
        return lambda contents: value_type._make([contents[place] for place in places])
    make = maker_of(value_type, tuple(names))
    if not hasattr(value_type, "__post_init__"):
        return make

    def checked(contents: Sequence[Any]) -> Any:
        try:
            return make(contents)
        except ValueError as err:
            raise MalformedError(str(err)) from err

    return checked
