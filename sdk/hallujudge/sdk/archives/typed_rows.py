"""Rows: what is read of answers and questions, decoded as a whole where records are like the first.

msgspec decodes a block of records into rows, checks the types of their values, and skips what is
not read: in a third of the time of looking at the values of each record. A block with a record of
other keys, or with values of other types, is read record by record instead, by the function that
also says what is wrong with one. Both give equal rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec import MsgspecError, Struct, defstruct
from msgspec.json import Decoder

from .json_lines import has_quotes, texts_in
from .named_keys import SharedFields
from .records import Record

_NOTHING: Mapping[str, object] = {}
# JSON escapes the others, and msgspec does not take them for names.
_UNESCAPED = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]*')


class Row(Struct, frozen=True, gc=False):
    """What is read of an answer, of a question with its label, or of a caption."""

    id: str | int
    """The id; an int stands for its digits."""
    key: str = ""
    """What it is joined by where that is not its id: a position, or image and text."""
    response: str | None = None
    """What the model wrote; None without one."""
    label: object = None
    """The label as the file has it."""
    question: str = ""
    """What the model was asked; empty without one."""
    added: str = ""
    """The question of a record of a question file that an answer was added to."""
    image: str = ""
    """What the question is about; empty without one."""
    groups: Mapping[str, object] = _NOTHING
    """Values to group by, under their keys; empty without any."""
    record: Record | None = None
    """The record; None if nothing can be wrong with it."""
    objects: object = None
    """The objects of a caption's image as the file has them."""


class RowDecoder:
    """Decodes blocks of records that have the keys of a sample, and texts where it has some.

    Args:
        sample: The values of an archive's first record.
        keys: Field of a row -> usual keys of its value, of which the first one counts.
        groups: Reads fields to group by.
    """

    def __init__(
        self, sample: Mapping[str, object], keys: Mapping[str, Sequence[str]], groups: SharedFields
    ) -> None:
        found = {name: next(filter(sample.__contains__, names), "") for name, names in keys.items()}
        used = {key: name for name, key in found.items() if key}
        grouped = {key: f"group_{n}" for n, key in enumerate(groups.keys) if key in sample}
        kinds: dict[str, Any] = {key: type(sample[key]) for key in (*used, *grouped)}
        own, objects = found.get("id", ""), found.get("objects", "")
        if kinds.get(objects) is list:
            kinds[objects] = list[str]
        self.usable = (
            len(used) == sum(map(bool, found.values()))
            and used.keys().isdisjoint(grouped)
            and all(map(_UNESCAPED.fullmatch, sample))
            # A path leads into an object, which rows do not hold.
            and groups.begun.isdisjoint(sample.keys() - grouped.keys())
            and kinds.get(own) in (str, int)
            and kinds.get(objects) in (None, list[str])
            and all(kinds[key] is str for key in kinds.keys() - {own, objects})
        )
        """Whether such records can be decoded."""
        self.fields = frozenset(used.values())
        """The fields that they have."""
        if not self.usable:
            return
        # Keys may be any texts, and the fields of a class need names.
        names = {key: f"other_{n}" for n, key in enumerate(sample)} | used | grouped
        kept = {name: getattr(Row(0), name) for name in Row.__struct_fields__}
        absent = {name: value for name, value in kept.items() if name not in used.values()}
        if grouped:
            absent["groups"] = _grouped(grouped)
        self._row = defstruct(
            "DecodedRow",
            [(name, kinds.get(key, Any)) for key, name in names.items()],
            rename={name: key for key, name in names.items()},
            namespace=absent,
            forbid_unknown_fields=True,
            gc=False,
        )
        self._lines, self._list = Decoder(self._row), Decoder(list[self._row])  # type: ignore[name-defined]  # made above
        # All keys are texts, and so are the values of those that are read.
        self._texts = len(names) + list(kinds.values()).count(str)
        self._others = [
            attrgetter(name) for key, name in names.items() if kinds.get(key) not in (str, int)
        ]
        filled = {"id", "image"}.intersection(used.values())
        self._filled = [attrgetter(name) for name in filled if kinds[found[name]] is str]

    def __call__(self, data: bytes, lines: bool) -> list[Any] | None:
        """Return the rows of a block; None if its records are others, or must be looked at.

        Args:
            data: The block.
            lines: Whether it is lines rather than a list.
        """
        if not self.usable:
            return None
        try:
            rows = self._lines.decode_lines(data) if lines else self._list.decode(data)
        except (MsgspecError, ValueError, RecursionError):
            return None
        texts = self._texts * len(rows) + sum(texts_in(list(map(of, rows))) for of in self._others)
        # Duplicate keys, of which the decoder keeps the last value, have more quotes.
        if not has_quotes(data, texts):
            return None
        # Empty ids are refused, and records without an image are counted.
        return rows if all(all(map(str.strip, map(of, rows))) for of in self._filled) else None


def _grouped(names: Mapping[str, str]) -> property:
    """Return the property with the values to group by."""
    return property(lambda row: {key: getattr(row, names[key]) for key in names})
