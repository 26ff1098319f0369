"""How much Python runs for a small call: a server's throughput is what is left of it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from types import FrameType
from typing import Any, cast

import pytest

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.observe import CallRecord, Recorder
from hallujudge.judge_service.server.authentication import Authenticator
from hallujudge.judge_service.server.http.asgi_app import routes_of
from hallujudge.judge_service.server.http.exchange import HttpContext
from hallujudge.judge_service.server.services import Services
from hallujudge.judge_service.server.workers import Workers
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem

SCORE = "/hallujudge.judge.v1.JudgeService/Score"


class Noting(Recorder):
    """What logs or metrics would be told."""

    ended: CallRecord

    def call_ended(self, call: CallRecord) -> None:
        super().call_ended(call)
        self.ended = call


def score_call(recorder: Recorder) -> Callable[[], Awaitable[bytes]]:
    """Return a call of a server with one caption, from the bytes that come to those that go."""
    services = Services(
        settings=ServerSettings(),
        engine=Engine(),
        jobs=None,
        recorder=recorder,
        authenticator=Authenticator(),
        # So small a message does not go to a worker.
        workers=cast(Workers, object()),
    )
    route = routes_of(services)[SCORE]
    caption = ChairItem(
        id="1",
        response="A dog and a cat sit on a couch next to a person with a laptop.",
        reference_objects=("dog", "couch"),
    )
    request = pb.ScoreRequest(
        spec=spec_to_proto(ScoreSpec(metric="chair")), items=[item_to_proto(caption)]
    )
    raw = request.SerializeToString()
    context = HttpContext(metadata=(), address="ipv4:127.0.0.1:4000")

    async def raws() -> AsyncIterator[bytes]:
        yield raw

    async def call() -> bytes:
        return route.written(await route.binary(raws(), context))

    return call


async def functions_of(call: Callable[[], Awaitable[Any]]) -> Counter[str]:
    """Return the functions in Python that a call runs, and how often."""
    ran: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran[f"{frame.f_code.co_filename}:{frame.f_code.co_name}"] += 1

    sys.setprofile(note)
    try:
        await call()
    finally:
        sys.setprofile(None)
    return ran


@pytest.mark.parametrize(("recorder", "most"), [(Recorder(), 232), (Noting(), 250)])
async def test_a_call_with_one_caption_runs_few_functions(recorder: Recorder, most: int) -> None:
    call = score_call(recorder)
    assert pb.ScoreResponse.FromString(await call()).report.scores
    ran = await functions_of(call)
    assert ran.total() <= most, ran.most_common(20)


async def test_a_call_imports_nothing_after_the_first() -> None:
    call = score_call(Recorder())
    await call()
    ran = await functions_of(call)
    assert [name for name in ran if "importlib" in name] == []


async def test_a_call_is_recorded_where_somebody_looks() -> None:
    recorder = Noting()
    await score_call(recorder)()
    assert (recorder.ended.method, recorder.ended.status) == ("Score", "OK")
    assert (recorder.ended.metric, recorder.ended.items) == ("chair", 1)
