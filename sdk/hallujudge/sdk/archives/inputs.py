"""From files, mappings or records to items of a metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hallujudge.metrics import Item

from ..errors import UnsupportedError

__all__ = ["InputOptions", "ItemSource", "References", "Responses", "read_items"]

Responses: TypeAlias = "str | Path | Mapping[str, object] | Iterable[Mapping[str, object]]"
"""A file, a mapping id -> text, or records."""
References: TypeAlias = "str | Path | Mapping[str, object] | Iterable[Mapping[str, object]]"
"""A file, or a mapping id -> reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """How archives are read and joined."""

    id_key: str | None = None
    """Key of the id; None: the usual ones are looked for."""
    text_key: str | None = None
    """Key of the response's text; None: the usual ones are looked for."""
    id_map: str | Path | None = None
    """A JSON list: position or question_id -> image id."""
    allow_unknown: bool = False
    """Responses without a reference become unscored instead of stopping the run."""
    allow_duplicates: bool = False
    """Several responses of one id are scored each, instead of stopping the run."""
    allow_missing: bool = False
    """References without a response become unscored instead of stopping the run."""
    display: str | Path | Mapping[str, object] | None = None
    """For VidHal: video -> letter -> rank of the caption that was shown behind the letter."""
    model_key: str | None = None
    """For Tri-HE's own file: key of the model's answers; its claims are under ``KEY_triplets``."""
    claims_only: bool = False
    """For Tri-HE: the archive must hold claims, not texts to take them from."""
    join: str = "auto"
    """For POPE: how answers find their questions: ``id``, ``text`` (image and question text),
    ``order``, or ``auto``: by id, and by text where answers have none; never by order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSource:
    """Checked items of an archive; read afresh each time it is gone through."""

    count: int
    """How many items there are."""
    make: Callable[[], Iterator[Item]]
    """Reads them."""
    notes: tuple[str, ...] = field(default=())
    """What a user should know and needs to do nothing about."""

    def __iter__(self) -> Iterator[Item]:
        return self.make()

    def __len__(self) -> int:
        return self.count


def read_items(
    metric: str,
    responses: Responses,
    references: References | None,
    *,
    options: InputOptions | None = None,
    group_by: tuple[str, ...] = (),
) -> ItemSource:
    """Items of a metric, after the whole archive was checked.

    The archive is gone through once before anything is scored, so that an error in its last line
    costs no judge call, and nothing of it stays in memory but eight bytes for each id.

    Raises:
        ArchiveError: A file can't be read, ids are missing, twice, or don't join; each is named.
        UnsupportedError: The SDK has no reader for the metric.
    """
    from ._readers import READERS

    if metric not in READERS:
        raise UnsupportedError(f"there is no reader for metric {metric!r} yet")
    return READERS[metric](responses, references, options or InputOptions(), group_by)
