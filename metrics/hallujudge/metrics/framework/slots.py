"""Fast construction of frozen values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from inspect import ismemberdescriptor
from typing import TypeVar

__all__ = ["maker_of"]

_ValueT = TypeVar("_ValueT")


def maker_of(
    value_type: type[_ValueT], names: tuple[str, ...]
) -> Callable[[Sequence[object]], _ValueT]:
    """Return a function that makes a value of the contents of its fields.

    A value that checks nothing when it is made is filled slot by slot, which takes half the time of
    its constructor: that of a frozen dataclass sets each field with a call in Python.

    Args:
        value_type: A dataclass.
        names: Its fields, in the order in which contents are given.
    """
    slots = [getattr(value_type, name, None) for name in names]
    complete = {field.name for field in fields(value_type)} == set(names)  # type: ignore[arg-type]
    checks = hasattr(value_type, "__post_init__")
    if checks or not complete or not all(map(ismemberdescriptor, slots)):
        return lambda contents: value_type(**dict(zip(names, contents, strict=True)))
    new = object.__new__
    setters = tuple(slot.__set__ for slot in slots if slot is not None)

    def make(contents: Sequence[object]) -> _ValueT:
        value = new(value_type)
        for put, content in zip(setters, contents):  # noqa: B905  # one for each name
            put(value, content)
        return value

    return make
