"""Items that the HTML page of a run may show, kept so that it can be rendered again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from heapq import heappush, heapreplace
from typing import Any, NamedTuple, TypeVar

from hallujudge.metrics import Item, ItemResult, Outcome

from ..report.limits import SHOWN_ITEMS, SHOWN_UNSCORED
from ..report.views import weight_of

__all__ = ["Shown", "ShownItems", "packed", "selected", "unpacked"]

_ItemT = TypeVar("_ItemT", bound=Item)
_SIZE = 4


class Shown(NamedTuple):
    """An item with its result and position."""

    position: int
    """Position of the item in the run."""
    item: Item
    """The item."""
    result: ItemResult
    """Its result."""

    @property
    def rank(self) -> tuple[int, int]:
        """Return what the page orders scored items by: the worst first, then the earliest."""
        return weight_of(self.result.evidence), -self.position


class ShownItems:
    """Chooses the items of each batch that may be among those that the page shows.

    An item is left out only if enough better ones were seen before, so that every shown item is
    kept, whichever batches were seen. The better the choice so far, the fewer are kept.

    Args:
        keep_text: Whether responses are kept.
    """

    def __init__(self, *, keep_text: bool) -> None:
        self._keep_text = keep_text
        self._scored: list[tuple[int, int]] = []
        self._unscored: list[tuple[int, int]] = []

    def packed(self, pairs: Iterable[tuple[Item, ItemResult]], first: int) -> bytes:
        """Return what is kept of a batch; often nothing.

        Args:
            pairs: Items with their results.
            first: Position of the first one in the run.
        """
        kept = [
            Shown(position, item if self._keep_text else _without_text(item), result)
            for position, (item, result) in enumerate(pairs, first)
            if self._is_shown(result, position)
        ]
        return packed(kept) if kept else b""

    def _is_shown(self, result: ItemResult, position: int) -> bool:
        if result.outcome is Outcome.UNSCORED:
            return _enters(self._unscored, (0, -position), SHOWN_UNSCORED)
        return _enters(self._scored, (weight_of(result.evidence), -position), SHOWN_ITEMS)


def selected(shown: Iterable[Shown]) -> list[Shown]:
    """Return the items that the page shows, in input order, of all that were kept."""
    scored: list[tuple[tuple[int, int], Shown]] = []
    unscored: list[Shown] = []
    for entry in shown:
        if entry.result.outcome is Outcome.UNSCORED:
            unscored.append(entry)
        else:
            scored.append((entry.rank, entry))
    scored.sort(key=lambda ranked: ranked[0], reverse=True)
    unscored.sort(key=lambda entry: entry.position)
    chosen = [entry for _, entry in scored[:SHOWN_ITEMS]] + unscored[:SHOWN_UNSCORED]
    return sorted(chosen, key=lambda entry: entry.position)


def packed(shown: Sequence[Shown]) -> bytes:
    """Return items and results as protobuf messages, which keep every field of both."""
    from hallujudge.judge.v1 import judge_service_pb2 as pb
    from hallujudge.judge_service.wire.convert import item_to_proto, result_to_proto

    items = pb.ItemBatch(items=[item_to_proto(entry.item) for entry in shown])
    results = pb.ResultBatch(results=[result_to_proto(entry.result) for entry in shown])
    positions = b"".join(entry.position.to_bytes(8, "little") for entry in shown)
    pieces = (positions, items.SerializeToString(), results.SerializeToString())
    return b"".join(len(piece).to_bytes(_SIZE, "little") + piece for piece in pieces)


def unpacked(data: bytes) -> Iterator[Shown]:
    """Yield the items of one or several packed groups.

    Raises:
        ValueError: The data is damaged.
    """
    at = 0
    while at < len(data):
        pieces = []
        for _ in range(3):
            size = int.from_bytes(data[at : at + _SIZE], "little")
            pieces.append(data[at + _SIZE : at + _SIZE + size])
            at += _SIZE + size
        yield from _group(*pieces)


def _group(positions: bytes, items: bytes, results: bytes) -> Iterator[Shown]:
    from google.protobuf.message import DecodeError

    from hallujudge.judge.v1 import judge_service_pb2 as pb
    from hallujudge.judge_service.wire.convert import item_from_proto, result_from_proto

    try:
        batch = pb.ItemBatch.FromString(items).items
        found = pb.ResultBatch.FromString(results).results
    except DecodeError as err:
        raise ValueError(f"the items of the page are damaged: {err}") from err
    for index, (item, result) in enumerate(zip(batch, found, strict=True)):
        position = int.from_bytes(positions[8 * index : 8 * index + 8], "little")
        yield Shown(position, item_from_proto(item), result_from_proto(result))


def _enters(heap: list[tuple[int, int]], rank: tuple[int, int], room: int) -> bool:
    """Add a rank to the best ones; return whether it is among them."""
    if len(heap) < room:
        heappush(heap, rank)
        return True
    if rank > heap[0]:
        heapreplace(heap, rank)
        return True
    return False


def _without_text(item: _ItemT) -> _ItemT:
    """Return an item without what the model wrote."""
    changes: dict[str, Any] = {}
    for entry in fields(item):
        value = getattr(item, entry.name)
        if entry.name == "response":
            changes["response"] = None
        elif entry.name == "runs" and isinstance(value, Mapping):
            changes["runs"] = {name: replace(run, response=None) for name, run in value.items()}
        elif entry.name == "questions":
            changes["questions"] = tuple(replace(question, response=None) for question in value)
    return replace(item, **changes)
