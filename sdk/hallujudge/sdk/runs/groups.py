"""Groups of items, which go to another process together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from .batching import batches

if TYPE_CHECKING:
    from hallujudge.metrics import Item

    from ..archives.inputs import ItemSlices, ItemSource, SliceReader
    from ..archives.json_lines import Mark
    from ..backends.base import Batch

__all__ = [
    "ATTEMPTS",
    "GROUP_BATCHES",
    "Group",
    "GroupReaders",
    "ItemGroup",
    "item_groups",
    "slice_groups",
]

ATTEMPTS = 3
"""How often a group is done before its workers' deaths end the run."""

GROUP_BATCHES = 8
"""Batches of a group."""
_SLICE_ITEMS = 2048
_SLICE_BYTES = 1 << 21


class Group(Protocol):
    """Consecutive items of a run."""

    @property
    def first(self) -> int:
        """Position of the first item in the run."""
        ...

    @property
    def size(self) -> int:
        """Number of items."""
        ...

    def batches(self, readers: GroupReaders) -> Iterator[Batch]:
        """Yield the items in batches.

        Args:
            readers: The readers of this process.
        """
        ...


class GroupReaders:
    """Readers of archives that a process was sent; equal ones are one."""

    def __init__(self) -> None:
        self._readers: list[SliceReader] = []

    def of(self, sent: SliceReader) -> SliceReader:
        """Return the first reader that was sent of those equal to it; it has the references."""
        if sent not in self._readers:
            self._readers.append(sent)
        return self._readers[self._readers.index(sent)]


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Items that the sending process read."""

    made: Sequence[Batch]
    """The items in batches."""
    first: int
    """See :class:`Group`."""

    @property
    def size(self) -> int:
        """See :class:`Group`."""
        return sum(map(len, self.made))

    def batches(self, readers: GroupReaders) -> Iterator[Batch]:  # noqa: ARG002  # the protocol's
        """Yield the items in batches; see :class:`Group`."""
        return iter(self.made)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceGroup:
    """Items that the receiving process reads."""

    reader: SliceReader
    """Reads the archive."""
    start: Mark
    """Where to begin."""
    piece: int
    """How many bytes the items have."""
    first: int
    """See :class:`Group`."""
    size: int
    """See :class:`Group`."""

    def batches(self, readers: GroupReaders) -> Iterator[Batch]:
        """Yield the items in batches; see :class:`Group`."""
        items = readers.of(self.reader).items(self.start, self.piece)
        skipped = self.first - self.start.values
        return batches(islice(items, skipped, skipped + self.size))


def died(group: Group) -> str:
    """Return what to say when the workers of a group died again and again."""
    return (
        f"a worker process died {ATTEMPTS} times while items {group.first + 1} to "
        f"{group.first + group.size} were scored, perhaps for lack of memory; go on with "
        "--workers 1 --resume"
    )


async def groups_of(items: ItemSource, first: int) -> AsyncIterator[Group]:
    """Yield the groups of a source's items for processes of this machine.

    Args:
        items: The items.
        first: Position of the first one that is wanted.
    """
    made = (
        item_groups(items.start_at(first), first)
        if items.slices is None
        else slice_groups(items.slices, first, len(items))
    )
    for group in made:
        yield group


def item_groups(items: Iterator[Item], first: int, size: int = GROUP_BATCHES) -> Iterator[Group]:
    """Yield groups of items that this process reads.

    Args:
        items: The items.
        first: Position of the first one in the run.
        size: Batches of a group.
    """
    source = batches(items)
    while made := list(islice(source, size)):
        group = ItemGroup(made, first)
        yield group
        first += group.size


def slice_groups(slices: ItemSlices, first: int, count: int) -> Iterator[Group]:
    """Yield groups of items that the processes read.

    Args:
        slices: Places of the archive.
        first: Position of the first item that is wanted.
        count: Number of items of the archive.
    """
    start = slices.marks.before(first)
    for mark in [*slices.marks.marks, None]:
        end = count if mark is None else mark.values
        if end <= first or not (mark is None or _is_full(start, mark)):
            continue
        piece = mark.offset - start.offset if mark is not None else 0
        yield SliceGroup(
            reader=slices.reader, start=start, piece=piece, first=first, size=end - first
        )
        first = end
        start = mark or start


def _is_full(start: Mark, end: Mark) -> bool:
    items, size = end.values - start.values, end.offset - start.offset
    return items >= _SLICE_ITEMS or size >= _SLICE_BYTES
