"""Results as a server sends them, with the items that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from typing import Any

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.wire import convert as _convert
from hallujudge.judge_service.wire.scene_graphs import with_graphs
from hallujudge.metrics import ItemResult, Outcome

from ..errors import InternalError
from . import Batch, BatchResult

_OTHER_RELEASE = (
    "the server returned results whose items are not those of the batch sent; install the same "
    "release on both sides"
)

_SCORED: dict[str, Any] = {"outcome": Outcome.SCORED}


def scored_alone(batch: Batch, response: pb.ScoreResponse) -> list[ItemResult]:
    """Return results that hold the scores of a response, and nothing else."""
    columns = response.columns
    if any(len(column.values) != len(batch) for column in columns):
        raise InternalError(_OTHER_RELEASE)
    unscored: dict[int, dict[str, Any]] = {
        one.position: {"outcome": Outcome.UNSCORED, "reason": one.reason, "detail": one.detail}
        for one in response.unscored
    }
    values = [[None if isnan(v) else v for v in column.values] for column in columns]
    names = [column.name for column in columns]
    scores = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return [
        ItemResult(id=item.id, group_id=item.id, scores=own, **unscored.get(at, _SCORED))
        for at, (item, own) in enumerate(zip(batch, scores, strict=True))
    ]


def paired_results(batch: Batch, messages: Iterable[pb.ItemResult]) -> BatchResult:
    """Return the results of a batch with its items.

    Raises:
        InternalError: They are not those of the batch.
    """
    results = [_convert.result_from_proto(result) for result in messages]
    # Results are matched by position, which a server of another release might not keep.
    if [item.id for item in batch] != [result.id for result in results]:
        raise InternalError(_OTHER_RELEASE)
    return BatchResult(items=batch, results=with_graphs(batch, results))
