"""A call leaves none of its messages in memory, however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import grpc
import pytest

from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import ServerSettings

_SCORE = "/hallujudge.judge.v1.JudgeService/Score"
_STREAM = "/hallujudge.judge.v1.JudgeService/ScoreStream"
# The items of the first have no metric; the second is not a message.
_MESSAGES = {"refused": b"\x12\x00" * 100_003, "malformed": b"\x0a\xff" * 100_003}


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from running, as it may not run for long on a server."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def copies_of(message: bytes) -> int:
    """Return how many other objects of equal bytes are alive.

    Modules are left out; what they hold is in their dictionaries. On Python 3.12 and 3.13.0 the
    referents of ``_asyncio`` include freed memory, and a later collection never ends (gh-122695).
    """
    held = {
        id(referent)
        for holder in gc.get_objects()
        # isinstance would ask the objects themselves, some of which warn.
        if not issubclass(type(holder), ModuleType)
        for referent in gc.get_referents(holder)
        if type(referent) is bytes and len(referent) == len(message) and referent is not message
    }
    return len(held)


@pytest.mark.parametrize("name", _MESSAGES)
@pytest.mark.parametrize("method", [_SCORE, _STREAM])
@pytest.mark.usefixtures("uncollected")
async def test_a_refused_message_is_freed(method: str, name: str) -> None:
    message = _MESSAGES[name]
    server = await start(ServerSettings(port=0))
    async with grpc.aio.insecure_channel(server.address) as channel:
        for _ in range(3):
            with contextlib.suppress(grpc.RpcError):
                await asyncio.wait_for(_call(channel, method, message), 60)
        await server.stop(0)
    assert copies_of(message) == 0


async def _call(channel: grpc.aio.Channel, method: str, message: bytes) -> None:
    made: Any = channel
    if method == _SCORE:
        await made.unary_unary(method)(message)
        return
    async for _ in made.stream_stream(method)(iter([message])):
        pass
