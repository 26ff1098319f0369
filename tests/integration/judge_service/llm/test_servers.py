"""A judge with several servers: one image's prompts go to one of them, to another if it is down."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World

from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.client import ChatClient, ChatSettings
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint

# Ports differ from run to run, and so do the servers of the images; of forty, both get some.
IMAGES = [f"image {number}" for number in range(40)]


def client_of(
    world: World, servers: list[llm.ScriptedLlm], *, attempts: int = 5, threshold: int = 8
) -> ChatClient:
    first, *others = [Endpoint(url=server.url) for server in servers]
    settings = ChatSettings(
        endpoint=first,
        replicas=tuple(others),
        model="m",
        retry=RetryPolicy(attempts=attempts),
        circuit_threshold=threshold,
    )
    return ChatClient(settings, None, world.tools())


def ok() -> llm.Step:
    return llm.always(llm.completion("ok"))


async def ask_about(client: ChatClient, image: str) -> None:
    await client.ask(replace(REQUEST, affinity=image))


async def test_one_images_prompts_go_to_one_server() -> None:
    async with llm.ScriptedLlm(ok()) as first, llm.ScriptedLlm(ok()) as second:
        client = client_of(World(), [first, second])
        homes: dict[str, set[int]] = {image: set() for image in IMAGES}
        for image in IMAGES * 2:
            before = first.chats
            await ask_about(client, image)
            homes[image].add(first.chats - before)
        await client.close()
    assert all(len(home) == 1 for home in homes.values())
    assert len(set.union(*homes.values())) == 2, "both servers get images"


async def test_the_servers_of_a_process_and_of_another_are_the_same() -> None:
    async with llm.ScriptedLlm(ok()) as first, llm.ScriptedLlm(ok()) as second:
        homes = []
        for order in ([first, second], [second, first]):
            client = client_of(World(), order)
            before = first.chats
            await ask_about(client, "image 3")
            homes.append(first.chats - before)
            await client.close()
    assert homes[0] == homes[1]


async def test_the_images_of_a_server_that_is_down_go_to_another_without_a_wait() -> None:
    world = World()
    async with llm.ScriptedLlm(ok()) as up:
        async with llm.ScriptedLlm(ok()) as gone:
            down = gone
        client = client_of(world, [down, up], threshold=2)
        for image in IMAGES:
            await ask_about(client, image)
        failures = Counter(client.statistics.failures)
        await client.close()
    assert up.chats == len(IMAGES)
    assert world.slept == []
    # After two failures the circuit is open, and the server is not called at all.
    assert failures == {FailureKind.CONNECTION.value: 2}


async def test_a_server_that_is_back_gets_its_images_again() -> None:
    world = World()
    healthy = False

    def step(_number: int, _body: llm.Body) -> llm.Reply:
        return llm.completion("ok") if healthy else llm.error(500)

    async with llm.ScriptedLlm(step) as first, llm.ScriptedLlm(ok()) as second:
        client = client_of(world, [first, second], threshold=1)
        for image in IMAGES:
            await ask_about(client, image)
        assert first.chats == 1
        healthy = True
        world.now += 60
        for image in IMAGES:
            await ask_about(client, image)
        await client.close()
    assert first.chats > 2
    assert first.chats + second.chats == 2 * len(IMAGES) + 1


async def test_all_servers_down_is_an_outage_of_the_judge() -> None:
    world = World()
    async with llm.ScriptedLlm(ok()) as a, llm.ScriptedLlm(ok()) as b:
        client = client_of(world, [a, b], attempts=2)
    with pytest.raises(CallFailedError, match="Connection refused"):
        await ask_about(client, "image")
    await client.close()
    assert world.slept, "an outage is waited for"


async def test_one_attempt_is_one_call_however_many_servers_there_are() -> None:
    async with (
        llm.ScriptedLlm(llm.always(llm.error(500))) as a,
        llm.ScriptedLlm(llm.always(llm.error(500))) as b,
    ):
        client = client_of(World(), [a, b], attempts=1)
        with pytest.raises(CallFailedError):
            await ask_about(client, "image")
        await client.close()
    assert a.chats + b.chats == 1
