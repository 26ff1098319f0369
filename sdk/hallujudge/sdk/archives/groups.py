"""Keys to report groups by, checked against the items that should have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from ..errors import ArchiveError, InvalidInputError
from .inputs import ItemSource, References, Responses
from .records import named, read_records

__all__ = ["group_notes"]

_LOOKED_AT = 100


def group_notes(
    source: ItemSource, keys: Iterable[str], archives: Iterable[Responses | References | None]
) -> tuple[str, ...]:
    """Return a note for each key that some items lack.

    Args:
        source: The items.
        keys: The keys that the user named.
        archives: What the items were read from, for the keys that an error names.

    Raises:
        InvalidInputError: No item has a key; the message names the existing keys.
    """
    keys = tuple(keys)
    if not keys:
        return ()
    lacking: Counter[str] = Counter()
    kept: set[str] = set()
    for item in source:
        kept.update(item.fields)
        lacking.update(key for key in keys if not item.fields.get(key))
    # Scoring may add fields of its own, such as INFACT's level.
    wrong = [key for key in keys if key in kept and lacking[key] == len(source) > 0]
    if wrong:
        there = named(sorted({key for archive in archives for key in _keys(archive)}))
        raise InvalidInputError(
            f"no item has the key {wrong[0]!r} to report groups by; the keys are {there}"
        )
    return tuple(
        f"{count} of {len(source)} items have no {key!r}; they are in the group (none)"
        for key, count in lacking.items()
        if key in kept
    )


def _keys(archive: Responses | References | None) -> Iterator[str]:
    """Yield the keys of an archive's first records, and paths into objects that they hold."""
    if archive is None or isinstance(archive, Mapping):
        return
    try:
        for record in islice(read_records(archive), _LOOKED_AT):
            yield from _paths(record.values)
    except ArchiveError:
        # Some layouts of references have no records.
        return


def _paths(values: Mapping[str, object]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from (f"{key}.{inner}" for inner in value if isinstance(inner, str))
        elif not isinstance(value, (list, tuple)):
            yield key
