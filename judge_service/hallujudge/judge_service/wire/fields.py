"""A converter for the fields of a value, and the pieces that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

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

    def codec(self) -> Codec:
        """Return the converter between the arguments of both constructors.

        Its functions take all fields with one call, and then convert only those that differ.
        """
        return Codec(self._writer(), self._reader())

    def _writer(self) -> Convert:
        names = (*self.plain, *(special.name for special in self.special))
        get = getter(names)
        converted = tuple(
            (special.name, special.write) for special in self.special if special.write is not same
        )
        shaped = self.shaped
        if not converted and not shaped:
            return lambda value: dict(zip(names, get(value)))  # noqa: B905  # the getter has these

        def write(value: Any) -> Parts:
            parts: Parts = dict(zip(names, get(value)))  # noqa: B905  # the getter has these names
            try:
                for name, convert in converted:
                    content = parts[name]
                    if content is not None:
                        parts[name] = convert(content)
            except MalformedError as err:
                raise err.within(name) from None
            for name, shape in shaped:
                parts.update(shape.write(getattr(value, name)))
            return parts

        return write

    def _reader(self) -> Convert:
        always = tuple(special for special in self.special if special.absent is None)
        names = (*self.plain, *(special.name for special in always))
        get = getter(names)
        converted = tuple((special.name, special.read) for special in always)
        nested = tuple((s.name, s.read, s.absent) for s in self.special if s.absent is not None)
        optional, shaped = self.optional, self.shaped
        if not (converted or nested or shaped):
            return _plain_reader(names, optional)

        def read(message: Any) -> Parts:
            parts: Parts = dict(zip(names, get(message)))  # noqa: B905  # the getter has these names
            has = message.HasField
            for name in optional:
                if not has(name):
                    parts[name] = None
            try:
                for name, convert in converted:
                    parts[name] = convert(parts[name])
                for name, convert, absent in nested:
                    parts[name] = convert(getattr(message, name)) if has(name) else absent()
            except MalformedError as err:
                raise err.within(name) from None
            for name, shape in shaped:
                parts[name] = shape.read(message)
            return parts

        return read


def _plain_reader(names: tuple[str, ...], optional: tuple[str, ...]) -> Convert:
    get = getter(names)
    if not optional:
        return lambda message: dict(zip(names, get(message)))  # noqa: B905  # the getter has these

    def read(message: Any) -> Parts:
        parts: Parts = dict(zip(names, get(message)))  # noqa: B905  # the getter has these names
        has = message.HasField
        for name in optional:
            if not has(name):
                parts[name] = None
        return parts

    return read


def same(content: Any) -> Any:
    """Return the content as it is."""
    return content


def getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple(getattr(thing, name) for name in names)


def reader_of(value_type: Any, fields: Codec) -> Convert:
    """Return a function that makes a value of a message."""
    read_fields = fields.read

    def read(message: Any) -> Any:
        parts = read_fields(message)
        try:
            return value_type(**parts)
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
