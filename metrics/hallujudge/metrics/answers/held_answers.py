"""Answers that one record holds: in lists of one length, or in objects by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .table_cells import with_lists


class HeldAnswers(NamedTuple):
    """The answers that a record holds."""

    keys: frozenset[str]
    """The keys that hold them."""
    answers: Mapping[str, Mapping[str, object]]
    """Name of an answer -> what the record says of it alone; what is missing is empty."""
    others: frozenset[str]
    """Names of which the first key says nothing, so that they are none of the answers."""


def in_columns(record: Mapping[str, object], columns: Mapping[str, str]) -> HeldAnswers | None:
    """Return the answers that a record holds; None if it has none of the keys.

    Args:
        record: The record.
        columns: Key of a list, or of an object by name, with a value for each answer -> key of such
            a value. The first one that the record has says which answers there are.

    Raises:
        ValueError: They are no lists of one length, and no objects; with the next step.
    """
    given = with_lists(record, columns)
    found: dict[str, Any] = {key: given[key] for key in columns if given.get(key) is not None}
    if not found:
        return None
    size, held = -1, {}
    for number, (key, value) in enumerate(found.items()):
        # Objects have the length -1: they may have other names, and may not be mixed with lists.
        by_number = isinstance(value, (list, tuple))
        length = len(value) if by_number else -1
        size = size if number else length
        if length != size or not (by_number or isinstance(value, Mapping)):
            raise ValueError(
                f"columns that are no lists of one length, and no objects: {key} of {value!r:.60}",
                f"Write {', '.join(columns)} with a value for each answer",
            )
        names = map(str, range(1, length + 1))
        held[columns[key]] = dict(zip(names, value, strict=True)) if by_number else value
    first, *_ = held.values()
    answers = {
        name: {key: "" if (said := of.get(name)) is None else said for key, of in held.items()}
        for name in first
    }
    others = frozenset(name for of in held.values() for name in of if name not in first)
    return HeldAnswers(frozenset(found), answers, others)
