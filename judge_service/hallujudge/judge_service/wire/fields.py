"""A converter for the fields of a value, and the pieces that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from hallujudge.metrics.framework.slots import maker_of

from .hints import ValueField, members_of
from .places import MalformedError

__all__ = [
    "Codec",
    "Convert",
    "FieldShape",
    "FieldTable",
    "Parts",
    "Rearranged",
    "Special",
    "absent_of",
    "each",
    "each_value",
    "getter",
    "reader_of",
    "same",
    "sorted_map",
]

Parts: TypeAlias = dict[str, Any]
"""Arguments of a constructor, by name."""
Convert: TypeAlias = Callable[[Any], Any]


class Codec(NamedTuple):
    """A converter for a pair of a value type and a message."""

    write: Convert
    """Value -> what a message's constructor takes for it."""
    read: Convert
    """Message -> value."""


class FieldShape(NamedTuple):
    """A converter for a field of a value that a message spreads over other fields."""

    covers: tuple[str, ...]
    """The fields of the message."""
    write: Convert
    """Content of the value's field -> arguments for the covered fields."""
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


class Special(NamedTuple):
    """A field whose content is converted."""

    name: str
    """Its name."""
    write: Convert
    """Content of the value's field -> content of the message's; None stays None."""
    read: Convert
    """The other way round."""
    absent: Callable[[], Any] | None
    """Makes the content of a field that the message lacks; None: it always has the field."""


class FieldTable(NamedTuple):
    """The fields of a value and its message."""

    plain: tuple[str, ...]
    """Fields whose content is the same on both sides."""
    optional: tuple[str, ...]
    """Those of them that a message can lack."""
    special: tuple[Special, ...]
    """Fields whose content is converted."""
    shaped: tuple[tuple[str, FieldShape], ...]
    """Fields that the message spreads over others."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the value's fields, in the order of :meth:`reader`."""
        converted = sorted(self.special, key=lambda special: special.absent is not None)
        return (*self.plain, *(s.name for s in converted), *(name for name, _ in self.shaped))

    def writer(self) -> Convert:
        """Return a function: value -> arguments of the message's constructor."""
        alike = (*self.plain, *(s.name for s in self.special if s.write is same))
        # In benchmarks/bench_codec.py a loop over getters takes half the time of dict(zip(…)).
        getters = tuple((name, attrgetter(name)) for name in alike)
        converted = tuple(
            (s.name, attrgetter(s.name), s.write) for s in self.special if s.write is not same
        )
        shaped = self.shaped
        if not converted and not shaped:
            return _plain_writer(getters)

        def write(value: Any) -> Parts:
            parts: Parts = {}
            for name, get in getters:
                parts[name] = get(value)
            try:
                for name, get, convert in converted:
                    content = get(value)
                    if content is not None:
                        parts[name] = convert(content)
            except MalformedError as err:
                raise err.within(name) from None
            for name, shape in shaped:
                parts.update(shape.write(getattr(value, name)))
            return parts

        return write

    def reader(self) -> Callable[[Any], list[Any]]:
        """Return a function: message -> contents of the value's fields, ordered as the names."""
        always = tuple(special for special in self.special if special.absent is None)
        names = (*self.plain, *(special.name for special in always))
        get = getter(names)
        optional = tuple((names.index(name), name) for name in self.optional)
        converted = tuple((names.index(s.name), s.name, s.read) for s in always)
        nested = tuple((s.name, s.read, s.absent) for s in self.special if s.absent is not None)
        shaped = tuple(shape.read for _, shape in self.shaped)

        def read(message: Any) -> list[Any]:
            contents = list(get(message))
            has = message.HasField
            for index, name in optional:
                if not has(name):
                    contents[index] = None
            try:
                for index, name, convert in converted:  # noqa: B007  # the handler needs the name
                    contents[index] = convert(contents[index])
                for name, convert, absent in nested:
                    found = has(name)
                    contents.append(convert(getattr(message, name)) if found else absent())
            except MalformedError as err:
                raise err.within(name) from None
            for convert in shaped:
                contents.append(convert(message))
            return contents

        return read


def _plain_writer(getters: tuple[tuple[str, Convert], ...]) -> Convert:
    def write(value: Any) -> Parts:
        parts: Parts = {}
        for name, get in getters:
            parts[name] = get(value)
        return parts

    return write


def same(content: Any) -> Any:
    """Return the content as it is."""
    return content


def getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple(getattr(thing, name) for name in names)


def reader_of(value_type: Any, table: FieldTable) -> Convert:
    """Return a function that makes a value of a message."""
    read_fields, make = table.reader(), maker_of(value_type, table.names)

    def read(message: Any) -> Any:
        contents = read_fields(message)
        try:
            return make(contents)
        except ValueError as err:
            raise MalformedError(str(err)) from err

    return read


def each(read: Convert) -> Convert:
    """Return a function that reads all messages of a repeated field."""

    def read_all(messages: Any) -> tuple[Any, ...]:
        try:
            return tuple(map(read, messages))
        except MalformedError:
            # Which one it was is only looked for where one is wrong.
            return tuple(_located(read, message, f"[{i}]") for i, message in enumerate(messages))

    return read_all


def sorted_map(found: Any) -> dict[str, Any]:
    """Return a map's content. Maps have no order on the wire; sorted, they have one."""
    keys = list(found)
    if len(keys) > 1:
        keys.sort()
    return {key: found[key] for key in keys}


def each_value(read: Convert) -> Convert:
    """Return a function that reads all messages of a map, in the order of their keys."""
    return lambda found: {key: _located(read, found[key], f"[{key}]") for key in sorted(found)}


def _located(read: Convert, message: Any, place: str) -> Any:
    try:
        return read(message)
    except MalformedError as err:
        raise err.within(place) from None


def absent_of(field: ValueField) -> Callable[[], Any]:
    """Return what stands for a message that is not there."""
    if type(None) in members_of(field.hint):
        return lambda: None
    if field.default is not None:
        return field.default

    def missing() -> Any:
        raise MalformedError("is missing")

    return missing
