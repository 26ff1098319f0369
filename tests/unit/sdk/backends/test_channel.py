"""The connection to a server, and what gRPC says of calls that the server ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from hallujudge.sdk.backends.channel import responses_of

_WRITE_FAILED = "Internal error from Core"
_RESET = "Stream removed (RST_STREAM (Received RST_STREAM with error code 2))"


class EndedCall:
    """A call as grpc.aio 1.85 shows it: a failed write ends it before the server's status is read.

    A callback of the end is called once, and a later status overwrites the one before.
    """

    def __init__(self, statuses: list[str]) -> None:
        self.left = statuses

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        callback(self)

    async def details(self) -> str:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.INTERNAL

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    def cancel(self) -> None:
        self.left = ["cancelled"]

    async def __aiter__(self) -> AsyncIterator[str]:
        yield "a response"
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, nothing, nothing, _WRITE_FAILED, None)


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ([_RESET, _WRITE_FAILED], _RESET),
        ([_WRITE_FAILED, _WRITE_FAILED, _RESET], _RESET),
        ([_WRITE_FAILED], _WRITE_FAILED),
    ],
    ids=["before the write", "after the write", "never"],
)
async def test_the_status_of_the_server_is_raised_in_place_of_a_failed_write(
    statuses: list[str], said: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        assert [each async for each in responses_of(EndedCall(statuses))]
    assert raised.value.details() == said
