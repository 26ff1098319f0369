"""Workers return what a server without workers returns, for every metric that they score."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.worker_tasks import (
    RULE_METRICS,
    batch,
    in_process,
    score_request,
    stream_in_process,
    worker_settings,
)

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.server.worker_tasks import Task, Work
from hallujudge.judge_service.wire.convert import spec_to_proto
from hallujudge.metrics import Item

TEXTS = st.sampled_from(["", "Yes.", "No, A", "B", "A dog runs on a sofa.", "\u4e00\u53ea\u72d7"])


@pytest.fixture(scope="module")
def work() -> Iterator[Work]:
    made = Work(worker_settings())
    yield made
    made.close()


def items_of(metric: str, responses: Sequence[str]) -> list[Item]:
    """Return items with these responses, like that of the metric's example."""
    item: Any = metric_entry(metric).trial.item
    if "response" not in item.__struct_fields__:
        return [structs.replace(item, id=str(number)) for number in range(len(responses))]
    return [
        structs.replace(item, id=str(number), response=response, fields={"split": response[:1]})
        for number, response in enumerate(responses)
    ]


def bytes_of(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


@pytest.mark.parametrize("metric", RULE_METRICS)
@given(responses=st.lists(TEXTS, min_size=1, max_size=6), grouped=st.booleans())
@settings(max_examples=8)
def test_a_call(work: Work, metric: str, responses: list[str], grouped: bool) -> None:
    spec = ScoreSpec(metric=metric, group_by=("split",) if grouped else ())
    request = score_request(spec, items_of(metric, responses))
    reply = work.do(Task(kind="score", parts=(request.SerializeToString(),)))
    assert reply.failure is None
    [part] = reply.parts
    expected = asyncio.run(in_process(request))
    assert bytes_of(pb.ScoreResponse.FromString(part)) == bytes_of(expected)
    assert sum(reply.outcomes.values()) == len(responses)


@pytest.mark.parametrize("metric", RULE_METRICS)
@given(responses=st.lists(TEXTS, min_size=2, max_size=6))
@settings(max_examples=4)
def test_a_stream(work: Work, metric: str, responses: list[str]) -> None:
    spec = ScoreSpec(metric=metric, group_by=("split",))
    items = items_of(metric, responses)
    batches = [batch(items[:1]), batch(items[1:])]
    raw_spec = spec_to_proto(spec).SerializeToString()

    def did(kind: str, *parts: bytes) -> tuple[bytes, ...]:
        reply = work.do(Task(kind=kind, parts=(raw_spec, *parts), report=True))
        assert reply.failure is None
        return reply.parts

    replies = [did("batch", one.SerializeToString()) for one in batches]
    raws = (
        *did("open"),
        *(response for response, _ in replies),
        *did("report", *did("merge", *(tally for _, tally in replies))),
    )
    made = [bytes_of(pb.ScoreStreamResponse.FromString(raw)) for raw in raws]
    expected = asyncio.run(stream_in_process(spec, batches))
    assert made == [bytes_of(response) for response in expected]
