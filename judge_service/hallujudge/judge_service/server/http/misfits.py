"""Finds the field that makes JSON unfit for a message.

protobuf's own parser names it for some problems only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from ...errors import Violation
from ...wire.hints import is_map, is_repeated

__all__ = ["find_misfit"]

_TEXTS = (FieldDescriptor.CPPTYPE_STRING,)
_NUMBERS = (
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
    FieldDescriptor.CPPTYPE_FLOAT,
    FieldDescriptor.CPPTYPE_DOUBLE,
)
_MAX_NAME = 80


def find_misfit(value: Any, descriptor: Descriptor) -> Violation | None:
    """Return the first field that does not fit; None: the problem is another one.

    Args:
        value: What the JSON says.
        descriptor: The type of the message.
    """
    return next(_in_message(value, descriptor, ""), None)


def _in_message(value: Any, descriptor: Descriptor, path: str) -> Iterator[Violation]:
    if not isinstance(value, dict):
        yield _violation(path, "an object", value)
        return
    known = {name: field for field in descriptor.fields for name in (field.name, field.json_name)}
    members: dict[str, str] = {}
    for name, part in value.items():
        place = f"{path}.{name[:_MAX_NAME]}" if path else name[:_MAX_NAME]
        field = known.get(name)
        if field is None:
            problem = f"is not a field; the fields are {', '.join(sorted(_names(descriptor)))}"
            yield Violation(field=place, description=problem)
            continue
        oneof = field.containing_oneof
        if oneof is not None and (other := members.setdefault(oneof.name, name)) != name:
            yield Violation(field=place, description=f"is given beside {other}; give one of them")
        if part is not None:
            yield from _in_field(part, field, place)


def _in_field(value: Any, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    if is_map(field):
        assert field.message_type is not None, "a map has entries"
        if not isinstance(value, dict):
            yield _violation(path, "an object", value)
            return
        entry = field.message_type.fields_by_name["value"]
        for key, part in value.items():
            yield from _in_value(part, entry, f"{path}[{key[:_MAX_NAME]}]")
    elif is_repeated(field):
        if not isinstance(value, list):
            yield _violation(path, "a list", value)
            return
        for number, part in enumerate(value):
            yield from _in_value(part, field, f"{path}[{number}]")
    else:
        yield from _in_value(value, field, path)


def _in_value(value: Any, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    if field.message_type is not None:
        yield from _in_message(value, field.message_type, path)
    elif field.cpp_type in _TEXTS and not isinstance(value, str):
        yield _violation(path, "text", value)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and not isinstance(value, bool):
        yield _violation(path, "true or false", value)
    elif field.cpp_type in _NUMBERS and not _is_number(value):
        yield _violation(path, "a number", value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):  # large integers, and numbers that JSON does not have
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _violation(path: str, expected: str, value: Any) -> Violation:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    found = "null" if value is None else kinds.get(type(value), "a number")
    return Violation(field=path, description=f"must be {expected}, not {found}")


def _names(descriptor: Descriptor) -> Iterator[str]:
    return (field.json_name for field in descriptor.fields)
