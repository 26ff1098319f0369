"""From files, mappings or records to items of a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..errors import UnsupportedError
from .chair import read_chair
from .infact import read_infact
from .inputs import InputOptions, ItemSource, References, Responses
from .mementos import read_mementos
from .pope import read_pope
from .tri_he import read_tri_he
from .vidhal import read_vidhal

__all__ = ["read_items"]

_Reader: TypeAlias = (
    "Callable[[Responses, References | None, InputOptions, tuple[str, ...]], ItemSource]"
)

_READERS: Mapping[str, _Reader] = {
    "chair": read_chair,
    "pope": read_pope,
    "tri-he": read_tri_he,
    "mementos": read_mementos,
    "vidhal-mcqa": read_vidhal,
    "vidhal-ordering": read_vidhal,
    "infact": read_infact,
}


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
    if metric not in _READERS:
        raise UnsupportedError(f"there is no reader for metric {metric!r} yet")
    return _READERS[metric](responses, references, options or InputOptions(), group_by)
