"""What type hints and message descriptors say of a field."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

__all__ = [
    "MismatchError",
    "ValueField",
    "enum_numbers",
    "fields_of",
    "is_map",
    "is_plain",
    "is_repeated",
    "is_scalar",
    "literals_of",
    "members_of",
    "message_of",
    "row_fields",
    "without_none",
    "wrapped_list",
]

_SCALARS: Mapping[type, frozenset[int]] = {
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
    """Makes its default; None: it has none."""


def fields_of(value_type: Any) -> list[ValueField]:
    """Return the fields of a dataclass or a named tuple, in order."""
    hints = get_type_hints(value_type)
    if dataclasses.is_dataclass(value_type):
        return [
            ValueField(field.name, hints[field.name], _default(field))
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


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default is not dataclasses.MISSING:
        return lambda: field.default
    return None if field.default_factory is dataclasses.MISSING else field.default_factory


def without_none(hint: Any) -> Any:
    """Return a hint without ``| None``."""
    members = members_of(hint)
    left = [member for member in members if member is not NoneType]
    return left[0] if len(left) == 1 else hint


def members_of(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union; the hint itself if it is not a union."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a message's field is repeated, maps included."""
    # protobuf 7 has no `label`, and 5 no `is_repeated`. Messages have no default.
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
    return isinstance(hint, type) and field.cpp_type in _SCALARS.get(hint, ())


def wrapped_list(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the ``values`` of a message that is a list which can be absent."""
    message = field.message_type
    if message is None or [inner.name for inner in message.fields] != ["values"]:
        return None
    return message.fields[0]


def row_fields(hint: Any, row: Descriptor) -> tuple[str, str]:
    """Return the names of key and value in the rows of a mapping; no value name: several fields."""
    key, *rest = row.fields
    scalar = without_none(get_args(hint)[1])
    single = len(rest) == 1 and is_plain(get_args(hint)[1], rest[0])
    if key.cpp_type != FieldDescriptor.CPPTYPE_STRING or (scalar in _SCALARS and not single):
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


def literals_of(hint: Any) -> tuple[Any, ...]:
    """Return the values of a ``Literal``; none for another hint."""
    return get_args(hint) if get_origin(hint) is Literal else ()
