"""Rate limits of a judge: those of its account pause all calls, that of one prompt only its own."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from msgspec import structs
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.llm.call_policy import Tools
from hallujudge.judge_service.llm.chat import ChatRequest
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import Answer, ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint

ANA, BEN = (Caller(id=f"key:{name}", name=name) for name in ("ana", "ben"))
LIMITED = llm.error(429, "slow down", **{"Retry-After": "60"})


class SharedTime:
    """A clock for many calls: it goes on to the next sleeper's end when all of them wait."""

    def __init__(self) -> None:
        self.now = 0.0
        self.client: ChatClient | None = None
        self.calls: list[asyncio.Task[Answer]] = []
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A difference of two times may be too small to change one of them.
        end = self.now + max(seconds, 1e-6)
        heapq.heappush(self._sleepers, (end, next(self._order), turn))
        await turn

    async def result(self, *calls: asyncio.Task[Answer]) -> list[Answer]:
        """Return the answers of calls, while time goes on."""
        while not all(call.done() for call in calls):
            if self._sleepers and self._all_wait:
                self._wake()
            await asyncio.sleep(0)
        return [call.result() for call in calls]

    @property
    def _all_wait(self) -> bool:
        assert self.client is not None
        asleep = sum(not turn.done() for _, _, turn in self._sleepers)
        queued = self.client.servers[0].limiter.waiting
        return sum(not call.done() for call in self.calls) == asleep + queued

    async def forward(self, seconds: float) -> None:
        """Go on by some seconds."""
        end = self.now + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self._wake()
            await asyncio.sleep(0)
        self.now = max(self.now, end)

    def _wake(self) -> None:
        end, _, turn = heapq.heappop(self._sleepers)
        self.now = max(self.now, end)
        if not turn.done():
            turn.set_result(None)


@asynccontextmanager
async def world_of(server: llm.ScriptedLlm) -> AsyncIterator[tuple[ChatClient, SharedTime]]:
    async with server:
        time = SharedTime()
        settings = ChatSettings(endpoint=Endpoint(url=server.url), model="m", max_concurrency=8)
        client = ChatClient(settings, None, Tools(clock=lambda: time.now, sleep=time.sleep))
        time.client = client
        try:
            yield client, time
        finally:
            await client.close()


def asked(
    client: ChatClient, caller: Caller, text: str, time: SharedTime | None = None
) -> asyncio.Task[Answer]:
    request = structs.replace(REQUEST, messages=[{"role": "user", "content": text}])
    with acting_as(caller):
        call = asyncio.ensure_future(client.ask(request))
    if time is not None:
        time.calls = [one for one in time.calls if not one.done()] + [call]
    return call


def limiting(*poisons: str) -> llm.ScriptedLlm:
    """Return a judge that answers all but some prompts."""

    def step(_number: int, body: llm.Body) -> llm.Reply:
        return LIMITED if llm.prompt_of(body) in poisons else llm.completion("ok")

    return llm.ScriptedLlm(step)


async def test_a_limit_of_one_prompt_takes_the_judge_from_no_other_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = limiting("poison")
    async with world_of(server) as (client, time):
        with caplog.at_level(logging.WARNING):
            poison = asked(client, ANA, "poison", time)
            while not server.chats:
                await asyncio.sleep(0)
            for number in range(50):
                await time.result(asked(client, BEN, f"hat {number}", time))
                await time.result(asked(client, ANA, f"coat {number}", time))
        assert time.now < 5, "the pause ends when another prompt gets through"
        number = 50
        while not poison.done() and number < 500:
            await time.result(asked(client, BEN, f"hat {number}", time))
            await time.forward(1)
            number += 1
        assert poison.done()
        failure = poison.exception()
    assert isinstance(failure, CallFailedError)
    assert failure.kind is FailureKind.RATE
    assert client.statistics.failures == {"JUDGE_RATE_LIMITED": client.statistics.retries + 1}
    said = [record.getMessage() for record in caplog.records]
    assert "HTTP 429" in said[0]
    assert "all calls wait" in said[0]
    assert any("calls go on" in line for line in said)


async def test_limits_of_a_few_prompts_are_theirs_too() -> None:
    poisons = [f"poison {number}" for number in range(3)]
    server = limiting(*poisons)
    async with world_of(server) as (client, time):
        failing = [asked(client, ANA, text, time) for text in poisons]
        number = 0
        while not all(call.done() for call in failing) and number < 500:
            await time.result(asked(client, BEN, f"hat {number}", time))
            await time.forward(1)
            number += 1
        assert number < 500
        kinds = [getattr(call.exception(), "kind", None) for call in failing]
    assert kinds == [FailureKind.RATE] * 3
    assert client.statistics.answered == number


async def test_a_limit_of_the_account_is_probed_seldom_and_loses_no_call() -> None:
    limits = 0

    def step(_number: int, _body: llm.Body) -> llm.Reply:
        nonlocal limits
        if time.now >= 60:
            return llm.completion("ok")
        limits += 1
        return llm.error(429, **{"Retry-After": str(60 - time.now)})

    server = llm.ScriptedLlm(step)
    async with world_of(server) as (client, time):
        calls = [asked(client, ANA, "first", time)]
        while not client.statistics.failures:
            await asyncio.sleep(0)
        assert "all calls wait" in client.waiting
        calls += [asked(client, BEN, f"hat {number}", time) for number in range(40)]
        answers = await time.result(*calls)
    assert {answer.reply.content for answer in answers} == {"ok"}
    # After 1, 3, 7, 15 and 31 seconds.
    assert limits <= 6
    assert client.statistics.answered == 41


async def test_a_probe_is_of_a_caller_whose_calls_were_not_limited() -> None:
    server = limiting(*(f"poison {number}" for number in range(20)))
    async with world_of(server) as (client, time):
        calls = [asked(client, ANA, "poison 0", time)]
        while not client.statistics.failures:
            await asyncio.sleep(0)
        calls += [asked(client, ANA, f"poison {number}", time) for number in range(1, 20)]
        await time.result(asked(client, BEN, "hat", time))
        sent = [llm.prompt_of(body) for body in server.requests]
        assert sent[:2] == ["poison 0", "hat"]
        assert time.now < 2
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_long_wait_that_the_server_asks_of_one_prompt_turns_no_other_away() -> None:
    late = asyncio.Event()

    def step(_number: int, body: llm.Body) -> llm.Reply:
        if llm.prompt_of(body) != "poison":
            return llm.completion("ok")
        return replace(llm.error(429, "no", **{"Retry-After": "3600"}), hold=late)

    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, World())
        poison = asked(client, ANA, "poison")
        while not server.chats:
            await asyncio.sleep(0)
        await asked(client, ANA, "hat 1")
        late.set()
        with pytest.raises(CallFailedError) as caught:
            await poison
        assert caught.value.kind is FailureKind.RATE
        assert (await asked(client, ANA, "hat 2")).reply.content == "ok"
        await client.close()


@pytest.mark.parametrize("nonsense", ["-5", "1e9", "999999999", "nan", "inf", "soon"])
async def test_a_retry_after_that_no_server_means_is_not_obeyed(nonsense: str) -> None:
    steps = (llm.always(llm.error(429, **{"Retry-After": nonsense})), llm.saying("ok"))
    async with llm.ScriptedLlm(*steps) as server:
        world = World()
        client = client_of(server, world)
        request: ChatRequest = REQUEST
        assert (await client.ask(request)).reply.content == "ok"
        await client.close()
    # The client's own first wait.
    assert world.slept == [0.25]
