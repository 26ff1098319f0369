"""How calls wait for a supervised server that is started again."""

from __future__ import annotations

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World

from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.circuits import Supervision
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError
from hallujudge.judge_service.llm.http import Endpoint

MOST = 1800.0


def supervised(world: World) -> Supervision:
    return Supervision("vllm", MOST, lambda: world.now)


def client_at(server: llm.ScriptedLlm, supervision: Supervision, world: World) -> ChatClient:
    settings = ChatSettings(
        endpoint=Endpoint(url=server.url, supervision=supervision),
        model="m",
        retry=RetryPolicy(attempts=1, outage_seconds=90.0, give_up_after=300.0),
    )
    return ChatClient(settings, tools=world.tools())


async def test_calls_wait_longer_than_a_run_waits_for_answers() -> None:
    world = World()
    supervision = supervised(world)
    async with llm.ScriptedLlm(llm.saying("yes")) as server:
        client = client_at(server, supervision, world)
        supervision.began("ended with status -9")
        seen: list[str] = []

        async def sleep(seconds: float) -> None:
            await World.sleep(world, seconds)
            seen.append(client.waiting)
            if world.now > 400.0:
                supervision.ended()

        world.sleep = sleep  # type: ignore[method-assign]  # what tools hold is made later
        client = client_at(server, supervision, world)
        answer = await client.ask(REQUEST)
        await client.close()
    assert answer.reply.content == "yes"
    assert server.chats == 1
    assert "vllm ended with status -9 and is started again, since 400 s" in seen[-2]
    assert "1,800 s at most" in seen[-2]
    assert client.waiting == ""


async def test_the_wait_has_a_limit_with_a_sentence() -> None:
    world = World()
    supervision = supervised(world)
    supervision.began("did not answer 6 looks at its health in a row")
    async with llm.ScriptedLlm() as server:
        client = client_at(server, supervision, world)
        with pytest.raises(UnavailableError, match="does not serve again after 1,800 s") as caught:
            await client.ask(REQUEST)
        assert caught.value.reason == "JUDGE_NO_PROGRESS"
        with pytest.raises(CallFailedError, match="does not serve again after 90 s"):
            await client.ask(REQUEST, has_fallback=True)
        await client.close()
        assert server.chats == 0


async def test_a_call_that_fails_at_a_server_that_works_is_a_failure() -> None:
    world = World()
    supervision = supervised(world)

    async def looking(seconds: float) -> None:
        await World.sleep(world, seconds)
        supervision.looked()

    world.sleep = looking  # type: ignore[method-assign]  # what tools hold is made later
    async with llm.ScriptedLlm(llm.always(llm.error(500, "no"))) as server:
        client = client_at(server, supervision, world)
        with pytest.raises(CallFailedError, match="HTTP 500"):
            await client.ask(REQUEST)
        await client.close()
        assert server.chats <= 2


async def test_what_is_given_up_ends_the_wait() -> None:
    world = World()
    supervision = supervised(world)
    supervision.began("ended with status 1")
    supervision.gives_up("vllm ended with status 1, and is given up after 5 restarts")
    assert await supervision.served(world.sleep, MOST) == supervision.given_up
    assert supervision.is_down
