"""The batches in which items are scored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.streams import StreamIds
from hallujudge.judge_service.installation import is_whole
from hallujudge.judge_service.threads import import_in_thread

from .. import runs

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.metrics import Item

    from ..backends import Batch

BATCH_ITEMS = 64
"""How many items make a batch."""
_MANY_ITEMS = 512
# A batch is one message to a server, and must stay below its size limit.
_BATCH_CHARS = 1 << 20


def batch_size(spec: ScoreSpec, *, local: bool) -> int:
    """Return how many items make a batch of a run.

    A batch costs as much time as thirty answers or ten captions. Items that need a model or a
    parser are kept soon, and those for a server must fit its messages.

    Args:
        spec: How the items are scored.
        local: Whether processes of this machine score, not a server.
    """
    if not local:
        return BATCH_ITEMS
    entry = runs.metric_entry(spec.metric)
    return BATCH_ITEMS if entry.needs_models(spec) or entry.parses(spec) else _MANY_ITEMS


def batches_of(items: Iterable[Item], size: int = BATCH_ITEMS) -> Iterator[Batch]:
    """Yield batches that are small in number and in text, so that no message grows too large.

    Consecutive items of one image stay in one batch if they can: a judge's prompts about an image
    begin with the same text, which its server then has in its prefix cache.

    A batch depends on nothing before its first item, so that a resumed run makes the same ones.

    Args:
        items: The items.
        size: How many make a batch; up to twice as many if they are of one image.
    """
    batch: list[Item] = []
    chars = 0
    for item in items:
        length = len(getattr(item, "response", None) or "")
        if pictures := getattr(item, "pictures", ()):
            length += sum(len(picture.data) for picture in pictures)
        if batch and (
            chars + length > _BATCH_CHARS
            or (len(batch) >= size and _is_full_batch(batch, item.group_id, 2 * size))
        ):
            yield batch
            batch, chars = [], 0
        batch.append(item)
        chars += length
    if batch:
        yield batch


def _is_full_batch(batch: Batch, group: str, most: int) -> bool:
    """Return whether an item of a group begins a new batch, after as many as make one.

    An image with more questions than ``most`` is split, so that no batch grows without limit.
    """
    return len(batch) == most or not group or batch[-1].group_id != group


async def batches_async(
    items: Iterable[Item], size: int = BATCH_ITEMS
) -> AsyncGenerator[Batch, None]:
    """Yield the same batches asynchronously.

    A client alone leaves the check of ids to its server.

    Raises:
        InvalidInputError: Two items have the same id.
    """
    known = StreamIds() if is_whole() else None
    if known is not None:
        await import_in_thread("numpy")
    for batch in batches_of(items, size):
        if known is not None:
            known.add_ids([item.id for item in batch])
        yield batch
