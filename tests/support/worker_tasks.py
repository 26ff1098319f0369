"""Requests for worker processes, and the responses of a server without workers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.server.judge_servicer import JudgeServicer
from hallujudge.judge_service.server.worker_tasks import WorkerSettings
from hallujudge.judge_service.settings.server_settings import LimitSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem, Item
from hallujudge.metrics.families import metric_names

__all__ = [
    "RULE_METRICS",
    "SETTINGS",
    "batch",
    "captions",
    "in_process",
    "score_request",
    "stream_in_process",
    "worker_settings",
]

SETTINGS = LimitSettings()
RULE_METRICS = tuple(
    name for name in metric_names() if not metric_entry(name).needs_models(ScoreSpec(metric=name))
)
"""The metrics that workers score."""


def worker_settings(**changed: Any) -> WorkerSettings:
    """Return the settings of workers of a server whose other limits are the default ones."""
    limits = replace(SETTINGS, **changed)
    return WorkerSettings(limits=limits, max_graph_bytes=96 << 20)


def captions(count: int, *, first: int = 0) -> list[ChairItem]:
    """Return captions, every other one with an object that the image does not have."""
    return [
        ChairItem(
            id=str(number),
            fields={"split": str(number % 3)},
            response="A dog on a sofa." if number % 2 else "A dog and a cat on a couch.",
            reference_objects=("couch", "dog"),
        )
        for number in range(first, first + count)
    ]


def score_request(spec: ScoreSpec, items: Iterable[Item]) -> pb.ScoreRequest:
    """Return the request for one call."""
    return pb.ScoreRequest(spec=spec_to_proto(spec), items=map(item_to_proto, items))


def batch(items: Iterable[Item]) -> pb.ScoreStreamRequest:
    """Return a batch of a stream."""
    return pb.ScoreStreamRequest(batch=pb.ItemBatch(items=map(item_to_proto, items)))


async def in_process(request: pb.ScoreRequest) -> pb.ScoreResponse:
    """Return the response of a server without workers."""
    return await JudgeServicer(Engine(), SETTINGS).Score(request)


async def stream_in_process(
    spec: ScoreSpec, batches: Sequence[pb.ScoreStreamRequest]
) -> list[pb.ScoreStreamResponse]:
    """Return the responses of a server without workers."""

    async def requests() -> AsyncIterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=spec_to_proto(spec))
        for one in batches:
            yield one

    servicer = JudgeServicer(Engine(), SETTINGS)
    return [one async for one in servicer.ScoreStream(requests(), None)]  # type: ignore[arg-type]  # the context is not used
