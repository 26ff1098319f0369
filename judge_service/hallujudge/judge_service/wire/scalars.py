"""Converters of enums and literals."""

from __future__ import annotations

import enum
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from .fields import ScalarCodec
from .hints import MismatchError, ValueField, enum_numbers, members_of, without_none
from .places import MalformedError

__all__ = ["enum_codec", "literal_codec"]


def enum_codec(field: ValueField, theirs: FieldDescriptor) -> ScalarCodec:
    """Return the converter of an enum.

    Raises:
        MismatchError: The members have different names.
    """
    known = theirs.enum_type
    if known is None:
        raise MismatchError(f"{theirs.full_name} is not an enum")
    numbers = enum_numbers(without_none(field.hint), known)
    members: dict[int, enum.Enum | None] = {number: member for member, number in numbers.items()}
    # By name: the hash of an enum's member is computed in Python.
    by_name = {member.name: number for member, number in numbers.items()}

    def write(member: enum.Enum) -> int:
        return by_name[member._name_]

    if type(None) in members_of(field.hint):
        # A member that a later release adds counts as none.
        return ScalarCodec(write, members.get)

    return ScalarCodec(write, _Members(members, known.name).__getitem__)


class _Members(dict[int, Any]):
    """The members of an enum by number. Looking one up calls no Python code."""

    def __init__(self, members: dict[int, Any], name: str) -> None:
        super().__init__(members)
        self._name = name

    def __missing__(self, number: int) -> Any:
        raise MalformedError(f"{number} is not a known {self._name}")


def literal_codec(literals: tuple[Any, ...], field: ValueField) -> ScalarCodec:
    """Return the converter of a text that is one of a few."""

    def read(text: str) -> Any:
        if not text and field.default is not None:
            return field.default()
        if text not in literals:
            raise MalformedError(f"{text!r} is not one of {', '.join(literals)}")
        return text

    return ScalarCodec(lambda text: text, read)
