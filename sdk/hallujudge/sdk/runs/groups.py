"""Groups of batches, which go to another process together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from .batching import batches

if TYPE_CHECKING:
    from hallujudge.metrics import Item

    from ..backends.base import Batch

__all__ = ["ATTEMPTS", "Group", "groups"]

ATTEMPTS = 3
"""How often a group is done before its workers' deaths end the run."""

_BATCHES = 8


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive batches."""

    batches: Sequence[Batch]
    """The batches."""
    first: int
    """Position of the first item in the run."""

    @property
    def size(self) -> int:
        """Number of items."""
        return sum(map(len, self.batches))

    def died(self) -> str:
        """Return what to say when the workers of this group died again and again."""
        return (
            f"a worker process died {ATTEMPTS} times while items {self.first + 1} to "
            f"{self.first + self.size} were scored, perhaps for lack of memory; go on with "
            "--workers 1 --resume"
        )


async def groups(items: Iterator[Item], first: int) -> AsyncIterator[Group]:
    """Yield the groups of items.

    Args:
        items: The items.
        first: Position of the first one in the run.
    """
    source = batches(items)
    while group := list(islice(source, _BATCHES)):
        made = Group(group, first)
        yield made
        first += made.size
