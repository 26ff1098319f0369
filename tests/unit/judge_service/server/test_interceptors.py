"""How calls end, when the end of a refused one is recorded, and what calls share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, TypeVar, cast

import grpc
import pytest

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.fair_queue import CpuScheduler
from hallujudge.judge_service.observe import CallRecord, Recorder
from hallujudge.judge_service.server.authentication import Authenticator
from hallujudge.judge_service.server.connections import ConnectionGuard, ConnectionLimits
from hallujudge.judge_service.server.flow_control import Admission, RunningCalls
from hallujudge.judge_service.server.interceptors import GuardInterceptor
from hallujudge.judge_service.server.observation import ObservingInterceptor
from hallujudge.judge_service.server.services import Services
from hallujudge.judge_service.settings.server_settings import LimitSettings, ServerSettings
from hallujudge.judge_service.tenancy import MemoryBudget
from hallujudge.judge_service.threads import in_thread

_T = TypeVar("_T")

SCORE = "/hallujudge.judge.v1.JudgeService/Score"


class Context:
    """What a call needs of gRPC's context until its message is read."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:4000"

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    async def read(self) -> bytes:
        raise StoppedError


class StoppedError(grpc.aio.BaseError):
    """Stands in for what gRPC raises where a message is read after the server has stopped."""


async def unread() -> AsyncIterator[bytes]:
    raise AssertionError("one message needs no iterator")
    yield b""


async def unheard(request: object, context: object) -> object:
    raise AssertionError("the call has no message")


def guard_of(authenticator: Authenticator) -> GuardInterceptor:
    times = LimitSettings(first_message_seconds=10, idle_seconds=10, max_call_seconds=10)
    admission = Admission(running=1, waiting=1)
    connections = ConnectionGuard(ConnectionLimits(files=9, total=9, by_address=9))
    return GuardInterceptor(
        authenticator=authenticator,
        admission=admission,
        memory=MemoryBudget(1 << 20),
        running=RunningCalls(times),
        connections=connections,
        scheduler=CpuScheduler(),
    )


def handler_of(guard: GuardInterceptor, *, streams: bool) -> Any:
    make = grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
    return guard.wrapped(SCORE, cast(Any, make)(unheard))


def call_of(handler: Any, context: Context) -> Awaitable[object]:
    if handler.stream_stream is not None:
        return cast(Awaitable[object], anext(handler.stream_stream(unread(), context)))
    return cast(Awaitable[object], handler.stream_unary(unread(), context))


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_whose_server_has_stopped_is_cancelled_and_is_no_defect(
    streams: bool, caplog: pytest.LogCaptureFixture
) -> None:
    handler = handler_of(guard_of(Authenticator()), streams=streams)
    with caplog.at_level(logging.INFO), pytest.raises(asyncio.CancelledError):
        await call_of(handler, Context())
    assert caplog.records == []


class Calls(Recorder):
    """Keeps the statuses of the calls that have ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def call_ended(self, call: CallRecord) -> None:
        super().call_ended(call)
        self.ended.append(call.status)


class RefusedContext(Context):
    """Notes which calls are recorded when the client receives the status."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.known: list[str] = []

    async def abort(self, *_: object, **__: object) -> NoReturn:
        self.known = list(self._calls.ended)
        raise grpc.aio.AbortError


@pytest.mark.parametrize("streams", [False, True])
async def test_a_refused_call_is_recorded_once_and_before_its_caller_knows(streams: bool) -> None:
    calls = Calls()
    guarded = handler_of(guard_of(Authenticator(anonymous=False)), streams=streams)
    context = RefusedContext(calls)
    with pytest.raises(grpc.aio.AbortError):
        await call_of(ObservingInterceptor(calls).wrapped(SCORE, guarded), context)
    assert context.known == calls.ended == ["UNAUTHENTICATED"]


class NotingScheduler(CpuScheduler):
    """Counts the work that it runs in threads."""

    ran = 0

    async def in_thread(self, work: Callable[[], _T], *, short: bool = False) -> _T:
        self.ran += 1
        return await super().in_thread(work, short=short)


class ReadContext(Context):
    """A call whose message is empty."""

    async def read(self) -> bytes:
        return b""


async def scored(request: object, context: object) -> str:
    return await in_thread(lambda: "scored")


async def test_calls_of_all_interceptors_share_their_servers_scheduler() -> None:
    """Each transport has interceptors of its own; callers are to take turns across both."""
    scheduler = NotingScheduler()
    services = Services(
        settings=ServerSettings(),
        engine=Engine(),
        jobs=None,
        recorder=Recorder(),
        authenticator=Authenticator(),
        scheduler=scheduler,
    )
    for _ in ("gRPC", "HTTP"):
        (guard,) = services.interceptors()
        made: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(
            scored, request_deserializer=cast(Any, pb.ScoreRequest.FromString)
        )
        assert await call_of(guard.wrapped(SCORE, made), ReadContext()) == "scored"
    assert scheduler.ran == 2
