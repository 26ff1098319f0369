"""Equal calls of several payers: one is sent, and each payer ends for itself alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, client_of
from support.threads import until

from hallujudge.judge_service.access.caller import Caller, acting_as
from hallujudge.judge_service.llm.ask_once import AskOnce, Reading
from hallujudge.judge_service.llm.budget import Budget, VerdictStore
from hallujudge.judge_service.llm.cache_file import cache_key
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.verdict_cache import VerdictCache

KEY = cache_key({"question": "hello"})
READING: Reading[str] = Reading(
    read=lambda answer: answer.reply.content,
    to_record=lambda value: {"v": value},
    from_record=lambda record: str(record["v"]),
)
ANA, BEN = (Caller(id=f"key:{name}", name=name) for name in ("ana", "ben"))


@asynccontextmanager
async def store(folder: Path, kept: bool) -> AsyncIterator[VerdictStore | None]:
    """Give a verdict cache, or none."""
    if not kept:
        yield None
        return
    cache = VerdictCache(folder / "verdicts.sqlite")
    try:
        yield cache
    finally:
        await cache.close()


def asked(asking: AskOnce[str], payer: Caller, key: str = KEY) -> asyncio.Task[str]:
    """Ask in a task of a payer."""
    with acting_as(payer):
        return asyncio.ensure_future(asking.ask(key, REQUEST, READING, label="m"))


async def turns(count: int = 20) -> None:
    """Let the other tasks go on until they wait."""
    for _ in range(count):
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("kept", [False, True])
async def test_a_payer_that_leaves_after_sending_leaves_the_answer(
    tmp_path: Path, kept: bool
) -> None:
    hold = asyncio.Event()
    reply = replace(llm.completion("yes"), hold=hold)
    async with llm.ScriptedLlm(llm.always(reply)) as server, store(tmp_path, kept) as cache:
        client = client_of(server)
        asking = AskOnce[str](client, cache)
        first = asked(asking, ANA)
        await until(lambda: server.chats == 1)
        second = asked(asking, BEN)
        await turns()
        first.cancel()
        await turns()
        hold.set()
        assert await second == "yes"
        assert first.cancelled()
        await client.close()
    assert server.chats == 1


@pytest.mark.parametrize("kept", [False, True])
async def test_a_payer_that_leaves_before_sending_leaves_the_call(
    tmp_path: Path, kept: bool
) -> None:
    hold = asyncio.Event()
    reply = replace(llm.completion("yes"), hold=hold)
    async with llm.ScriptedLlm(llm.always(reply)) as server, store(tmp_path, kept) as cache:
        client = client_of(server, max_concurrency=1)
        asking = AskOnce[str](client, cache)
        busy = asked(asking, ANA, cache_key({"question": "another"}))
        await until(lambda: server.chats == 1)
        first, second = asked(asking, ANA), asked(asking, BEN)
        await turns()
        first.cancel()
        hold.set()
        assert [await busy, await second] == ["yes", "yes"]
        await client.close()
    assert server.chats == 2


@pytest.mark.parametrize("kept", [False, True])
async def test_the_next_payer_sends_what_failed_for_the_first(tmp_path: Path, kept: bool) -> None:
    hold = asyncio.Event()
    failing = replace(llm.error(500), hold=hold)
    steps = (llm.always(failing), llm.saying("yes"))
    async with llm.ScriptedLlm(*steps) as server, store(tmp_path, kept) as cache:
        client = client_of(server, retry=RetryPolicy(attempts=1, outage_seconds=0))
        asking = AskOnce[str](client, cache)
        first = asked(asking, ANA)
        await until(lambda: server.chats == 1)
        second = asked(asking, BEN)
        await turns()
        hold.set()
        assert await second == "yes"
        with pytest.raises(CallFailedError):
            await first
        await client.close()
    assert server.chats == 2


@pytest.mark.parametrize("kept", [False, True])
async def test_many_payers_pay_one_answer_once(tmp_path: Path, kept: bool) -> None:
    payers = [Caller(id=f"key:{n}", name=str(n)) for n in range(50)]
    async with llm.ScriptedLlm(llm.saying("yes")) as server, store(tmp_path, kept) as cache:
        client = client_of(server, max_concurrency=4)
        asking = AskOnce[str](client, cache)
        calls = [asked(asking, payer) for payer in payers for _ in range(4)]
        assert await asyncio.gather(*calls) == ["yes"] * 200
        await client.close()
    assert server.chats == 1


async def test_another_process_sends_what_a_payer_without_budget_did_not(tmp_path: Path) -> None:
    """Two caches of one file are what two processes have; a refusal ends the claim."""
    async with (
        llm.ScriptedLlm(llm.saying("yes")) as server,
        store(tmp_path, True) as one,
        store(tmp_path, True) as two,
    ):
        clients: list[ChatClient] = [
            client_of(server, budget=Budget(max_calls=0)),
            client_of(server),
        ]
        poor, rich = (AskOnce[str](c, cache) for c, cache in zip(clients, (one, two), strict=True))
        refused, paid = await asyncio.gather(
            asked(poor, ANA), asked(rich, BEN), return_exceptions=True
        )
        assert paid == "yes"
        assert refused == "yes" or (
            isinstance(refused, CallFailedError) and refused.kind is FailureKind.BUDGET
        )
        for client in clients:
            await client.close()
    assert server.chats == 1
