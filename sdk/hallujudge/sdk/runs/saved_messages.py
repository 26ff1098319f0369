"""Items and results as protobuf messages, where MessagePack can't distinguish their types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.message import DecodeError

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.wire.convert import (
    item_from_proto,
    item_to_proto,
    result_from_proto,
    result_to_proto,
)
from hallujudge.metrics import Item, ItemResult

from .manifest import damaged_items

# Length of the first message, before it: protobuf messages do not say where they end.
_SIZE_BYTES = 4


def to_messages(pairs: Sequence[tuple[Item, ItemResult]]) -> bytes:
    """Return items and results as protobuf messages, which keep every field of both."""
    batch = pb.ItemBatch(items=[item_to_proto(item) for item, _ in pairs])
    outcomes = pb.ResultBatch(results=[result_to_proto(result) for _, result in pairs])
    # Without this, the order of maps differs between processes.
    items = batch.SerializeToString(deterministic=True)
    results = outcomes.SerializeToString(deterministic=True)
    return len(items).to_bytes(_SIZE_BYTES, "little") + items + results


def from_messages(content: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of :func:`to_messages`.

    Raises:
        ArchiveError: The content is damaged.
    """
    end = _SIZE_BYTES + int.from_bytes(content[:_SIZE_BYTES], "little")
    try:
        items = pb.ItemBatch.FromString(content[_SIZE_BYTES:end]).items
        results = pb.ResultBatch.FromString(content[end:]).results
    except DecodeError as err:
        raise damaged_items(err) from err
    for item, result in zip(items, results, strict=True):
        yield item_from_proto(item), result_from_proto(result)
