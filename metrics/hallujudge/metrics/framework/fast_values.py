"""Fast construction of frozen values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, make_dataclass
from functools import cache
from itertools import repeat
from operator import attrgetter, call
from types import MemberDescriptorType
from typing import Any, TypeVar

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
    slots = slots_of(value_type, names)
    if slots is None:
        return lambda contents: value_type(**dict(zip(names, contents, strict=True)))
    new = object.__new__
    setters = tuple(slot.__set__ for slot in slots)

    def make(contents: Sequence[object]) -> _ValueT:
        value = new(value_type)
        # Every call returns None, so that none ends the search: a loop without steps in Python.
        any(map(call, setters, repeat(value), contents))
        return value

    return make


def reduced(value: object) -> tuple[object, ...]:
    """Return what pickles a frozen value, for its ``__reduce__``.

    What a dataclass with slots has of its own looks up its fields at each value, which takes most
    of the time in which items are sent to another process.
    """
    value_type: type = type(value)
    contents_of, _ = _in_order(value_type)
    return _restored, (value_type, contents_of(value))


def _restored(value_type: type, contents: Sequence[object]) -> Any:
    _, make = _in_order(value_type)
    return make(contents)


@cache
def _in_order(value_type: Any) -> tuple[Callable[[object], Any], Callable[..., Any]]:
    """Return what gives the contents of a value's fields, and what makes a value of them."""
    names = tuple(field.name for field in fields(value_type))
    return attrgetter(*names), maker_of(value_type, names)


def makers_of(
    value_type: type[_ValueT], names: tuple[str, ...]
) -> Callable[[Sequence[Sequence[object]]], list[_ValueT]]:
    """Return a function that makes many values at once of the contents of each field.

    It takes a third of the time of :func:`maker_of` for each value. Values that check nothing are
    made with another class, which has the same slots and a constructor that sets them without
    calls, and then get their own.

    Args:
        value_type: A dataclass.
        names: Its fields, in the order in which contents are given: as many for each field.
    """
    if slots_of(value_type, names) is None:
        one = maker_of(value_type, names)
        return lambda contents: list(map(one, zip(*contents, strict=True)))
    open_type = _open_type(value_type, names)

    def make(contents: Sequence[Sequence[object]]) -> list[_ValueT]:
        [_] = set(map(len, contents))
        values = list(map(open_type, *contents))
        for value in values:
            value.__class__ = value_type
        return values

    return make


def _open_type(value_type: type, names: Sequence[str]) -> Any:
    """Return a class that can be set, with the slots of a frozen one and a constructor of them."""
    base = value_type.__base__
    assert base is not None, "only object has none"
    can_change = {name: getattr(object, name) for name in ("__setattr__", "__delattr__")}
    own = {"__slots__": vars(value_type)["__slots__"]}
    constructor = {"__init__": vars(make_dataclass("Open", names))["__init__"]}
    return type(value_type.__name__, (base,), own | can_change | constructor)


def slots_of(value_type: type, names: Sequence[str]) -> tuple[MemberDescriptorType, ...] | None:
    """Return the slots of a value that can be filled one by one.

    Args:
        value_type: A dataclass.
        names: Its fields, in the order of the slots.

    Returns:
        None if the value checks its fields when it is made, has other fields, or has no slots.
    """
    slots = [getattr(value_type, name, None) for name in names]
    found = tuple(slot for slot in slots if isinstance(slot, MemberDescriptorType))
    complete = {field.name for field in fields(value_type)} == set(names)
    # Classes with more bases, or without slots of their own, have another layout.
    is_plain = len(value_type.__bases__) == 1 and "__slots__" in vars(value_type)
    is_plain = is_plain and not hasattr(value_type, "__post_init__")
    return found if is_plain and complete and len(found) == len(names) else None
