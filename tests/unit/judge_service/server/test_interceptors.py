"""How calls end that gRPC itself ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import pytest

from hallujudge.judge_service.access.memory import MemoryBudget
from hallujudge.judge_service.server.authentication import Authenticator
from hallujudge.judge_service.server.connections import ConnectionGuard, ConnectionLimits
from hallujudge.judge_service.server.flow_control import Admission, CallTimes, RunningCalls
from hallujudge.judge_service.server.interceptors import GuardInterceptor

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


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_whose_server_has_stopped_is_cancelled_and_is_no_defect(
    streams: bool, caplog: pytest.LogCaptureFixture
) -> None:
    times = CallTimes(first_message=10, idle=10, total=10)
    admission = Admission(running=1, waiting=1)
    connections = ConnectionGuard(ConnectionLimits(files=9, total=9, by_address=9))
    guard = GuardInterceptor(
        Authenticator(), admission, MemoryBudget(1 << 20), RunningCalls(times), connections
    )
    make = grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
    guarded: Any = guard.wrapped(SCORE, cast(Any, make)(unheard))
    call = (
        anext(guarded.stream_stream(unread(), Context()))
        if streams
        else guarded.stream_unary(unread(), Context())
    )
    with caplog.at_level(logging.INFO), pytest.raises(asyncio.CancelledError):
        await call
    assert caplog.records == []
