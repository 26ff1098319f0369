"""Items and results of one metric as MessagePack, in a tenth of the time of protobuf messages.

msgspec reads values back by the types of their fields. It does not know every type: of claims and
of what judges said it can't tell a union's members apart. Those are left to messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from hallujudge.metrics import Item, ItemResult, Outcome
from hallujudge.metrics.framework.fast_values import maker_of

from ..errors import ArchiveError
from .lines import builtin
from .names import JOURNAL

__all__ = ["damaged", "from_values", "to_values"]

_NAMES = (
    *("id", "group_id", "outcome", "reason", "detail"),
    *("statistics", "scores", "evidence", "fields"),
)
_fields_of = attrgetter(*_NAMES)
_result = maker_of(ItemResult, _NAMES)


class _Codec(NamedTuple):
    """How items and results are written and read."""

    write: Callable[[object], bytes]
    read: Callable[[bytes], Any]


def to_values(pairs: Sequence[tuple[Item, ItemResult]]) -> bytes | None:
    """Return items of shipped families with their results; None if they are left to messages."""
    items: set[type] = {type(item) for item, _ in pairs}
    found = (result.evidence for _, result in pairs)
    kinds: set[type] = {type(evidence) for evidence in found if evidence is not None}
    if len(items) != 1 or len(kinds) > 1:
        return None
    (item_type,), evidence = items, next(iter(kinds), type(None))
    codec = _codec(item_type, evidence)
    if codec is None:
        return None
    names = f"{item_type.__name__} {evidence.__name__}\n".encode()
    return names + codec.write([(item, _row(result)) for item, result in pairs])


def _row(result: ItemResult) -> tuple[object, ...]:
    """Return the fields of a result; statistics are floats, as they are after the wire.

    The page shows the first score of an item: pairs keep their order, a mapping does not.
    """
    *before, statistics, scores, evidence, fields = _fields_of(result)
    return (*before, tuple(map(float, statistics)), tuple(scores.items()), evidence, fields)


def _result_of(row: tuple[Any, ...]) -> ItemResult:
    *before, scores, evidence, fields = row
    return _result((*before, dict(scores), evidence, fields))


def damaged(cause: Exception) -> ArchiveError:
    """Return the error for items that can't be read; journals are checked before for torn bytes."""
    return ArchiveError(
        f"{JOURNAL} holds items that this release can't read ({cause}); score the responses again"
    )


def from_values(data: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of their bytes.

    Raises:
        ArchiveError: The data is damaged, or of another release.
    """
    from msgspec import MsgspecError

    names, _, content = data.partition(b"\n")
    item, _, evidence = names.decode(errors="replace").partition(" ")
    types = _types()
    try:
        codec = _codec(types[item], types[evidence])
        rows = codec.read(content) if codec is not None else ()
    except (KeyError, MsgspecError) as err:
        raise damaged(err) from err
    for made, fields in rows:
        yield made, _result_of(fields)


@cache
def _types() -> Mapping[str, type]:
    """Return the types of items and evidence by name."""
    from hallujudge.judge_service.wire.kinds import EVIDENCE, TASKS

    known = (*TASKS.values(), *EVIDENCE, type(None))
    return {known_type.__name__: known_type for known_type in known}


@cache
def _codec(item_type: type, evidence: type) -> _Codec | None:
    """Return how values of two types are written and read; None: msgspec can't read one of them."""
    from msgspec.msgpack import Decoder, Encoder

    row: Any = tuple[
        str,
        str,
        Outcome,
        str,
        str,
        tuple[float, ...],
        tuple[tuple[str, float | None], ...],
        evidence | None,  # type: ignore[valid-type]  # a type that is known here only
        dict[str, str],
    ]
    try:
        decoder: Any = Decoder(list[tuple[item_type, row]])  # type: ignore[valid-type]
    except TypeError:
        return None
    # The wire gives mappings another order.
    return _Codec(Encoder(enc_hook=builtin, order="deterministic").encode, decoder.decode)
