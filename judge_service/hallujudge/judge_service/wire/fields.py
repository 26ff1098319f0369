"""The kinds of fields: how each is written to a message and read from one."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from .compiled import Field
from .hints import ValueField, members_of
from .places import MalformedError

__all__ = [
    "Codec",
    "Convert",
    "FieldShape",
    "Fill",
    "Rearranged",
    "ScalarCodec",
    "absent_of",
    "converted",
    "keyed_rows",
    "map_of_messages",
    "map_of_scalars",
    "message",
    "pairs",
    "rearranged",
    "repeated_messages",
    "repeated_scalars",
    "scalar",
    "shaped",
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

    write: Convert | None
    """Value -> scalar; None: they are the same."""
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


# Empty lists and maps are not written: that would take protobuf longer than the test.


def scalar(name: str, *, optional: bool) -> Field:
    """Return a field that has the same content on both sides."""
    if not optional:
        return Field(name, f"{{m}}.{name} = {{v}}", f"{{m}}.{name}")
    return Field(
        name,
        f"if (content := {{v}}) is not None:\n    {{m}}.{name} = content",
        f'{{m}}.{name} if {{m}}.HasField("{name}") else None',
    )


def converted(name: str, codec: ScalarCodec) -> Field:
    """Return a field whose scalar is converted; None is not written."""
    content = f"{name}_write(content)" if codec.write else "content"
    return Field(
        name,
        f"if (content := {{v}}) is not None:\n    {{m}}.{name} = {content}",
        f"{name}_read({{m}}.{name})",
        {f"{name}_write": codec.write, f"{name}_read": codec.read},
        located=True,
    )


def repeated_scalars(name: str) -> Field:
    """Return a field that holds a tuple of scalars."""
    return Field(
        name,
        f"if content := {{v}}:\n    {{m}}.{name}.extend(content)",
        # A slice is a list, from which a tuple is made faster than from protobuf's container.
        f"tuple(content[:]) if (content := {{m}}.{name}) else ()",
    )


def repeated_messages(name: str, codec: Codec) -> Field:
    """Return a field that holds a tuple of values."""
    return Field(
        name,
        f"if content := {{v}}:\n"
        f"    add = {{m}}.{name}.add\n"
        f"    for part in content:\n"
        f"        {name}_write(part, add())",
        f"{name}_read({{m}}.{name})",
        {f"{name}_write": codec.write, f"{name}_read": _each(codec.read)},
        located=True,
    )


def map_of_scalars(name: str) -> Field:
    """Return a field that holds a mapping from texts to scalars."""
    return Field(
        name,
        f"if content := {{v}}:\n"
        f"    place = {{m}}.{name}\n"
        f"    for key, part in content.items():\n"
        f"        place[key] = part",
        f"sorted_map({{m}}.{name})",
        {"sorted_map": _sorted_map},
    )


def map_of_messages(name: str, codec: Codec) -> Field:
    """Return a field that holds a mapping from texts to values."""
    return Field(
        name,
        f"if content := {{v}}:\n"
        f"    place = {{m}}.{name}\n"
        f"    for key, part in content.items():\n"
        f"        {name}_write(part, place[key])",
        f"{name}_read({{m}}.{name})",
        {f"{name}_write": codec.write, f"{name}_read": _each_value(codec.read)},
        located=True,
    )


def message(name: str, codec: Codec, absent: Callable[[], Any]) -> Field:
    """Return a field that holds a value.

    Args:
        name: Its name.
        codec: The value's converter.
        absent: Makes the content of a field that the message lacks.
    """
    return Field(
        name,
        f"if (content := {{v}}) is not None:\n"
        f"    place = {{m}}.{name}\n"
        f"    place.SetInParent()\n"
        f"    {name}_write(content, place)",
        f'{name}_read({{m}}.{name}) if {{m}}.HasField("{name}") else {name}_absent()',
        {f"{name}_write": codec.write, f"{name}_read": codec.read, f"{name}_absent": absent},
        located=True,
    )


def pairs(name: str, key: str, value: str, *, optional: bool) -> Field:
    """Return a field that holds a mapping to scalars, which is sent as rows of two fields."""
    return Field(
        name,
        f"if content := {{v}}:\n"
        f"    add = {{m}}.{name}.add\n"
        f"    for key, part in content.items():\n"
        f"        row = add()\n"
        f"        row.{key} = key\n"
        f"        if part is not None:\n"
        f"            row.{value} = part",
        f"{name}_read({{m}}.{name})",
        {f"{name}_read": _pairs_reader(key, value, optional)},
    )


def keyed_rows(name: str, key: str, codec: Codec, *, keyed: bool) -> Field:
    """Return a field that holds a mapping to values, which is sent as rows with their key.

    Args:
        name: Its name.
        key: The field of a row that holds the key.
        codec: Converter of a value and a row.
        keyed: Whether the value has the key too.
    """
    read, get_key = _each(codec.read), attrgetter(key)

    def read_rows(rows: Any) -> dict[str, Any]:
        values = read(rows)
        return dict(zip(map(get_key, values if keyed else rows), values, strict=True))

    return Field(
        name,
        f"if content := {{v}}:\n"
        f"    add = {{m}}.{name}.add\n"
        f"    for key, part in content.items():\n"
        f"        row = add()\n"
        f"        {name}_write(part, row)\n"
        f"        row.{key} = key",
        f"{name}_read({{m}}.{name})",
        {f"{name}_write": codec.write, f"{name}_read": read_rows},
        located=True,
    )


def shaped(name: str, shape: FieldShape) -> Field:
    """Return a field that the message spreads over others."""
    return Field(
        name,
        f"{name}_write({{v}}, {{m}})",
        f"{name}_read({{m}})",
        {f"{name}_write": shape.write, f"{name}_read": shape.read},
    )


def rearranged(field: Field, how: Rearranged) -> Field:
    """Return a field that is written and read in another arrangement."""
    return field._replace(
        write=field.write.replace("{v}", f"{field.name}_arrange({{v}})"),
        read=f"{field.name}_restore({field.read})",
        uses={
            **field.uses,
            f"{field.name}_arrange": how.write,
            f"{field.name}_restore": how.read,
        },
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
        return {
            getattr(row, key): getattr(row, value) if row.HasField(value) else None for row in rows
        }

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
            return tuple([read(message) for message in messages])
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
