"""Items that the HTML page of a run shows, kept so that it can be rendered again."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from hallujudge.metrics import Item, ItemResult

from ..report.limits import KEPT_ITEMS, MOST_ITEMS
from .shown_values import damaged, from_values, to_values

__all__ = ["kept_of", "packed", "questions_of", "unpacked"]

_ItemT = TypeVar("_ItemT", bound=Item)
_SIZE = 4
_VALUES, _MESSAGES = b"v", b"m"
_MOST_BYTES = 1 << 30


def packed(
    pairs: Sequence[tuple[Item, ItemResult]], first: int, *, keep_text: bool, html: bool
) -> bytes:
    """Return what the page needs of a batch, with every field.

    Args:
        pairs: Items with their results.
        first: Position of the first one in the run. The page shows the first items only.
        keep_text: Whether responses are kept.
        html: Whether a page was asked for; otherwise fewer items are kept for a later one.

    Returns:
        The items and results, compressed; nothing beyond what the page shows.
    """
    if not _within(first, html=html) or not _are_known(pairs):
        return b""
    kept = [(item if keep_text else _without_text(item), result) for item, result in pairs]
    values = to_values(kept)
    content = _VALUES + values if values is not None else _MESSAGES + _to_messages(kept)
    # Level 1 takes a third of the time of level 6 for nearly the same size.
    return zlib.compress(content, 1)


def _are_known(pairs: Sequence[tuple[Item, ItemResult]]) -> bool:
    from hallujudge.judge_service.wire.kinds import has_messages

    return all(has_messages(item) for item, _ in pairs)


def _to_messages(pairs: Sequence[tuple[Item, ItemResult]]) -> bytes:
    from hallujudge.judge.v1 import judge_service_pb2 as pb
    from hallujudge.judge_service.wire.convert import item_to_proto, result_to_proto

    batch = pb.ItemBatch(items=[item_to_proto(item) for item, _ in pairs])
    outcomes = pb.ResultBatch(results=[result_to_proto(result) for _, result in pairs])
    # Otherwise maps have an order of their own in each process.
    items = batch.SerializeToString(deterministic=True)
    results = outcomes.SerializeToString(deterministic=True)
    return len(items).to_bytes(_SIZE, "little") + items + results


def kept_of(shown: bytes, first: int, *, html: bool) -> bytes:
    """Return what a run keeps of a part of another run.

    Args:
        shown: What the other run kept.
        first: Position of the part's first item in this run.
        html: Whether a page was asked for.
    """
    return shown if _within(first, html=html) else b""


def _within(first: int, *, html: bool) -> bool:
    return first < (MOST_ITEMS if html else KEPT_ITEMS)


def unpacked(data: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of a batch.

    Raises:
        ArchiveError: The data is damaged, or of another release.
    """
    if not data:
        return
    try:
        content = zlib.decompressobj().decompress(data, _MOST_BYTES)
    except zlib.error as err:
        raise damaged(err) from err
    read = from_values if content[:1] == _VALUES else _from_messages
    yield from read(content[1:])


def questions_of(items: Iterable[Item]) -> dict[str, str]:
    """Return item id -> question, without the items that have none."""
    found = ((item.id, getattr(item, "question", "")) for item in items)
    return {identifier: question for identifier, question in found if question}


def _from_messages(content: bytes) -> Iterator[tuple[Item, ItemResult]]:
    from google.protobuf.message import DecodeError

    from hallujudge.judge.v1 import judge_service_pb2 as pb
    from hallujudge.judge_service.wire.convert import item_from_proto, result_from_proto

    end = _SIZE + int.from_bytes(content[:_SIZE], "little")
    try:
        items = pb.ItemBatch.FromString(content[_SIZE:end]).items
        results = pb.ResultBatch.FromString(content[end:]).results
    except DecodeError as err:
        raise damaged(err) from err
    for item, result in zip(items, results, strict=True):
        yield item_from_proto(item), result_from_proto(result)


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
