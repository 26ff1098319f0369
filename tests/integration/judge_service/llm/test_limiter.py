"""How many calls a chat client makes at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from support import scripted_llm as llm
from support.chat_clients import REQUEST, client_of
from support.threads import until


async def test_rate_limits_shrink_concurrency_and_other_faults_do_not() -> None:
    def step(number: int, _body: llm.Body) -> llm.Reply:
        return llm.error(429) if number <= 16 else llm.completion("ok")

    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, max_concurrency=16)
        await asyncio.gather(*(client.ask(REQUEST) for _ in range(16)))
        shrunk = client.servers[0].limiter.limit
        for _ in range(200):
            await client.ask(REQUEST)
        await client.close()
        assert 1 <= shrunk < 16
        assert client.servers[0].limiter.limit == 16
    async with llm.ScriptedLlm(llm.always(llm.error(500)), llm.saying("ok")) as server:
        client = client_of(server, max_concurrency=16)
        await client.ask(REQUEST)
        await client.close()
        assert client.servers[0].limiter.limit == 16


async def test_never_more_in_flight_than_allowed() -> None:
    full = asyncio.Event()
    async with llm.ScriptedLlm(llm.always(replace(llm.completion("ok"), hold=full))) as server:
        client = client_of(server, max_concurrency=4)
        calls = asyncio.gather(*(client.ask(REQUEST) for _ in range(40)))
        await until(lambda: server.in_flight == 4)
        full.set()
        assert len(await calls) == 40
        await client.close()
    assert server.most_in_flight == 4
