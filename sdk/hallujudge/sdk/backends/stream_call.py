"""One call of ScoreStream: what it sends, and the error that it ends with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from typing import Any

import grpc

from hallujudge.judge.v1 import judge_service_pb2 as pb

__all__ = ["responses_of"]

# gRPC's message for a write to a call that has ended, and the wait for the server's own status.
_WRITE_FAILED = "Internal error from Core"
_STATUS_SECONDS = 2.0


async def responses_of(call: Any) -> AsyncGenerator[pb.ScoreStreamResponse, None]:
    """Yield the messages of a stream; if it fails, raise the error that the server sent.

    A server may end a stream while the client is writing to it. gRPC then reports its own status,
    a failed write, in place of the server's, or before the server's arrives.
    """
    status = _ServerStatus(call)
    try:
        async for response in call:
            yield response
    except grpc.aio.AioRpcError as err:
        if err.details() != _WRITE_FAILED:
            raise
        raise (await status.arrived() or err) from err
    finally:
        call.cancel()


class _ServerStatus:
    """The status that a server sent for a call, even if gRPC reports a different one."""

    def __init__(self, call: Any) -> None:
        self._error: grpc.aio.AioRpcError | None = None
        self._told = asyncio.Event()
        call.add_done_callback(self._done)

    async def arrived(self) -> grpc.aio.AioRpcError | None:
        """Return the status as an error; None if it does not arrive in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._told.wait(), _STATUS_SECONDS)
        return self._error

    def _done(self, call: Any) -> None:
        # Register the callback again for each status: a later one overwrites this one.
        details = _now(call.details())
        if details != _WRITE_FAILED and not self._told.is_set():
            self._error = grpc.aio.AioRpcError(
                _now(call.code()),
                grpc.aio.Metadata(),
                _now(call.trailing_metadata()),
                details=details,
            )
            self._told.set()


def _now(answer: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that never suspends."""
    try:
        answer.send(None)
    except StopIteration as done:
        return done.value
    answer.close()
    raise AssertionError("a call that is done keeps its status waiting")
