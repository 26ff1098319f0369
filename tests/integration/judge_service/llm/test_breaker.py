"""The circuit breaker of a chat client."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of
from support.threads import PATIENCE, until

from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind


async def test_the_circuit_opens_turns_calls_away_and_closes_after_a_probe() -> None:
    healthy = False

    def step(_number: int, _body: llm.Body) -> llm.Reply:
        return llm.completion("ok") if healthy else llm.error(500)

    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(
            server,
            world,
            retry=RetryPolicy(attempts=1, outage_seconds=0),
            circuit_threshold=3,
            circuit_seconds=30,
        )
        kinds = []
        for _ in range(5):
            with pytest.raises(CallFailedError) as caught:
                await client.ask(REQUEST)
            kinds.append(caught.value.kind)
        assert kinds == [FailureKind.SERVER] * 3 + [FailureKind.CIRCUIT] * 2
        assert server.chats == 3
        world.now += 31  # half-open: one probe, which fails
        for expected in (FailureKind.SERVER, FailureKind.CIRCUIT):
            with pytest.raises(CallFailedError) as caught:
                await client.ask(REQUEST)
            assert caught.value.kind is expected
        world.now += 31
        healthy = True
        assert (await client.ask(REQUEST)).reply.content == "ok"
        assert client.servers[0].breaker.state == "closed"
        await client.close()


async def test_while_half_open_only_one_probe_is_sent() -> None:
    answered = asyncio.Event()
    probe = replace(llm.completion("ok"), hold=answered)
    steps = (llm.always(llm.error(500)), llm.always(probe))
    async with llm.ScriptedLlm(*steps) as server:
        world = World()
        client = client_of(
            server,
            world,
            retry=RetryPolicy(attempts=1, outage_seconds=0),
            circuit_threshold=1,
            circuit_seconds=5,
        )
        with pytest.raises(CallFailedError):
            await client.ask(REQUEST)
        world.now += 6
        calls = [asyncio.ensure_future(client.ask(REQUEST)) for _ in range(10)]
        # Nine are turned away while the probe waits for its answer.
        await until(lambda: sum(call.done() for call in calls) == 9)
        answered.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        await client.close()
    assert server.chats == 2
    turned_away = [o for o in outcomes if isinstance(o, CallFailedError)]
    assert len(turned_away) == 9
    assert {o.kind for o in turned_away} == {FailureKind.CIRCUIT}


async def test_a_probe_that_is_called_off_lets_the_next_one_pass() -> None:
    slow = replace(llm.completion("ok"), delay=PATIENCE)
    steps = (llm.always(llm.error(500)), llm.always(slow), llm.saying("ok"))
    async with llm.ScriptedLlm(*steps) as server:
        world = World()
        client = client_of(
            server,
            world,
            retry=RetryPolicy(attempts=1, outage_seconds=0),
            circuit_threshold=1,
            circuit_seconds=5,
        )
        with pytest.raises(CallFailedError):
            await client.ask(REQUEST)
        world.now += 6
        probe = asyncio.ensure_future(client.ask(REQUEST))
        await until(lambda: server.chats == 2)
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()
