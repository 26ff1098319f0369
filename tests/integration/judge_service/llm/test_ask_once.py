"""Equal calls of several payers: one is sent, and each payer ends for itself alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, client_of
from support.threads import PATIENCE, until

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.engine.streams import ordered_map
from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.llm.ask_once import AskOnce, Reading, run_bounded
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
Work: TypeAlias = Callable[[int], Awaitable[None]]
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


async def in_one_batch(work: Work) -> None:
    """Ask and fail side by side."""
    await run_bounded(range(2), work, 2)


async def in_two_batches(work: Work) -> None:
    """Ask and fail in two chunks of one job or stream."""

    async def source() -> AsyncGenerator[int, None]:
        for number in range(2):
            yield number

    async def chunk(number: int) -> None:
        await run_bounded([number], work, 1)

    async with aclosing(ordered_map(source(), chunk, limit=2)) as ends:
        async for _ in ends:
            pass


class Run:
    """Fails beside a call that is sent.

    Args:
        asking: Makes the call.
        fails: Lets it fail.
    """

    def __init__(self, asking: AskOnce[str], fails: asyncio.Event) -> None:
        self._asking = asking
        self._fails = fails

    async def work(self, number: int) -> None:
        """Fail as the first piece, ask as the second one."""
        if number:
            await self._asking.ask(KEY, REQUEST, READING, label="m")
        await self._fails.wait()
        raise UnavailableError("the spending file can't be written")


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("runs", [in_one_batch, in_two_batches])
async def test_a_call_that_is_sent_is_kept_when_its_run_fails(
    tmp_path: Path, kept: bool, runs: Callable[[Work], Awaitable[None]]
) -> None:
    hold, fails = asyncio.Event(), asyncio.Event()
    reply = replace(llm.completion("yes"), hold=hold)
    async with llm.ScriptedLlm(llm.always(reply)) as server, store(tmp_path, kept) as cache:
        client = client_of(server)
        asking = AskOnce[str](client, cache)
        with acting_as(ANA):
            run = asyncio.ensure_future(runs(Run(asking, fails).work))
        await until(lambda: server.chats == 1)
        fails.set()
        with pytest.raises(UnavailableError):
            await run
        again = asked(asking, ANA)
        await turns()
        hold.set()
        assert await again == "yes"
        await client.close()
    assert server.chats == 1


@pytest.mark.parametrize("runs", [in_one_batch, in_two_batches])
async def test_a_call_whose_run_failed_is_not_made_again(
    runs: Callable[[Work], Awaitable[None]],
) -> None:
    hold, fails = asyncio.Event(), asyncio.Event()
    failing = replace(llm.error(500), hold=hold)
    async with llm.ScriptedLlm(llm.always(failing)) as server:
        client = client_of(server)
        run = asyncio.ensure_future(runs(Run(AskOnce[str](client, None), fails).work))
        await until(lambda: server.chats == 1)
        fails.set()
        with pytest.raises(UnavailableError):
            await run
        assert client.state.running == 1
        hold.set()
        await until(lambda: client.state.running == 0)
        await turns()
        await client.close()
    assert server.chats == 1


@pytest.mark.parametrize("runs", [in_one_batch, in_two_batches])
async def test_a_call_is_cancelled_with_its_run(runs: Callable[[Work], Awaitable[None]]) -> None:
    reply = replace(llm.completion("yes"), delay=PATIENCE)
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        client = client_of(server)
        run = asyncio.ensure_future(runs(Run(AskOnce[str](client, None), asyncio.Event()).work))
        await until(lambda: server.chats == 1)
        run.cancel()
        await asyncio.wait({run})
        await until(lambda: client.state.running == 0 and server.abandoned == 1)
        await client.close()


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


async def test_long_replies_are_not_kept_in_memory_without_end() -> None:
    long = "a long list of claims " * 40_000
    async with llm.ScriptedLlm(llm.always(llm.completion(long))) as server:
        client = client_of(server)
        asking = AskOnce[str](client, None)
        keys = [cache_key({"question": number}) for number in range(45)]
        for key in keys:
            await asked(asking, ANA, key)
        assert server.chats == 45
        # Not all of them fit. Those that were used last stay.
        await asked(asking, ANA, keys[-1])
        assert server.chats == 45
        await asked(asking, ANA, keys[0])
        assert server.chats == 46
        await client.close()
