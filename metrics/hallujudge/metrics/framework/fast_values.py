"""Fast construction of frozen values.

The constructor of a frozen dataclass sets each field with a call. Here a value is filled while it
has another class: one with the same slots that can be set, which differs in nothing else. Then the
value gets its own class. This takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import repeat
from types import MemberDescriptorType
from typing import Any, TypeVar

_ValueT = TypeVar("_ValueT")

# Written for the names of a class, as dataclasses do, since setting an attribute by its name takes
# ten times as long.
_MAKERS = """
def make(contents):
    value = new(open_type)
    {targets} = contents
    value.__class__ = value_type
    return value


def make_many(contents):
    [count] = set(map(len, contents))
    values = list(map(new, repeat(open_type, count)))
    for value, {targets} in zip(values, *contents, strict=True):
        value.__class__ = value_type
    return values
"""


def maker_of(
    value_type: type[_ValueT], names: tuple[str, ...]
) -> Callable[[Sequence[object]], _ValueT]:
    """Return a function that makes a value of the contents of its fields.

    A value that checks something when it is made is made by its constructor.

    Args:
        value_type: A dataclass.
        names: Its fields, in the order in which contents are given.
    """
    if _has_slots(value_type, names):
        make: Callable[[Sequence[object]], _ValueT] = _makers(value_type, names)["make"]
        return make
    return lambda contents: value_type(**dict(zip(names, contents, strict=True)))


def makers_of(
    value_type: type[_ValueT], names: tuple[str, ...]
) -> Callable[[Sequence[Sequence[object]]], list[_ValueT]]:
    """Return a function that makes many values at once of the contents of each field.

    Args:
        value_type: A dataclass.
        names: Its fields, in the order in which contents are given: as many for each field.
    """
    if _has_slots(value_type, names):
        make: Callable[..., list[_ValueT]] = _makers(value_type, names)["make_many"]
        return make
    one = maker_of(value_type, names)
    return lambda contents: list(map(one, zip(*contents, strict=True)))


def _makers(value_type: type, names: tuple[str, ...]) -> dict[str, Any]:
    """Return functions that make one value and many of a class."""
    base = value_type.__base__
    assert base is not None, "only object has none"
    can_change = {name: getattr(object, name) for name in ("__setattr__", "__delattr__")}
    slots = {"__slots__": value_type.__dict__["__slots__"]}
    known: dict[str, Any] = {
        "new": object.__new__,
        "repeat": repeat,
        "open_type": type(value_type.__name__, (base,), slots | can_change),
        "value_type": value_type,
    }
    targets = "".join(f"value.{name}, " for name in names).rstrip()
    # The names are those of a class's fields.
    exec(_MAKERS.format(targets=targets), known)  # noqa: S102
    return known


def _has_slots(value_type: type, names: Sequence[str]) -> bool:
    """Return whether all fields of a value are slots that hold whatever they are given.

    Args:
        value_type: A dataclass.
        names: The fields that are given.
    """
    complete = {field.name for field in fields(value_type)} == set(names)
    slots = [isinstance(getattr(value_type, name, None), MemberDescriptorType) for name in names]
    # Classes with more bases, or without slots of their own, have another layout.
    is_plain = len(value_type.__bases__) == 1 and "__slots__" in vars(value_type)
    return complete and all(slots) and is_plain and not hasattr(value_type, "__post_init__")
