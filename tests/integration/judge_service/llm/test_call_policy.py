"""Outages of a judge: what is repeated, for how long, and what ends a run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of
from support.messages import expected_message

from hallujudge.judge_service.access import Caller, acting_as, current_caller
from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import Answer, ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint

DOWN = [
    llm.error(503, "starting"),
    llm.error(500, "boom"),
    llm.error(429, "slow down"),
    llm.Reply(reset=True),
    llm.Reply(body=b"<html>Please log in</html>"),
    llm.Reply(),
    llm.as_json({"status": "ok"}),
]


def down_until(world: World, seconds: float, reply: llm.Reply) -> Callable[..., llm.Reply]:
    return lambda _number, _body: reply if world.now < seconds else llm.completion("ok")


def content_of(outcome: Answer | BaseException) -> str:
    """The text of an answer, or why there is none."""
    return outcome.reply.content if isinstance(outcome, Answer) else str(outcome)


@pytest.mark.parametrize("reply", DOWN)
@pytest.mark.parametrize(("seconds", "at_once"), [(5, 1), (60, 16)])
async def test_an_outage_costs_no_call(reply: llm.Reply, seconds: float, at_once: int) -> None:
    world = World()
    async with llm.ScriptedLlm(down_until(world, seconds, reply)) as server:
        client = client_of(server, world, max_concurrency=at_once)
        outcomes = await asyncio.gather(
            *(client.ask(REQUEST) for _ in range(64)), return_exceptions=True
        )
        await client.close()
    assert [content_of(outcome) for outcome in outcomes] == ["ok"] * 64


async def test_a_server_that_is_gone_for_a_while_costs_no_call() -> None:
    world = World()
    server = llm.ScriptedLlm(llm.saying("ok"))
    await server.start()
    await server.stop()
    client = client_of(server, world, max_concurrency=4)
    asked = [asyncio.ensure_future(client.ask(REQUEST)) for _ in range(20)]
    while world.now < 40:
        await asyncio.sleep(0)
    await server.start()
    answers = await asyncio.gather(*asked)
    await client.close()
    await server.stop()
    assert len(answers) == 20


@pytest.mark.parametrize("reply", DOWN)
async def test_a_run_without_any_answer_ends_after_a_stated_time(reply: llm.Reply) -> None:
    world = World()
    retry = RetryPolicy(outage_seconds=1000, give_up_after=300)
    async with llm.ScriptedLlm(llm.saying("ok"), llm.always(reply)) as server:
        client = client_of(server, world, retry=retry)
        await client.ask(REQUEST)
        with pytest.raises(
            UnavailableError,
            match=expected_message("judge_service.llm.call_policy:answered-no-call-for-2"),
        ) as caught:
            await client.ask(REQUEST)
        await client.close()
    assert caught.value.reason == "JUDGE_NO_PROGRESS"
    assert "calls answered before: 1." in str(caught.value)
    assert 300 <= world.now < 320


async def test_one_callers_wait_takes_no_time_from_another_one() -> None:
    """A caller that comes late to an outage has all the time that the first one had."""
    ana, ben = (Caller(id=f"key:{name}", name=name) for name in ("ana", "ben"))
    world, waits, over = World(), asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        if current_caller() is ana:
            waits.set()
            await over.wait()
        world.now += 11

    async with llm.ScriptedLlm(down_until(world, 320, llm.error(500, "boom"))) as server:
        settings = ChatSettings(
            endpoint=Endpoint(url=server.url), model="m", retry=RetryPolicy(give_up_after=300)
        )
        client = ChatClient(settings, None, replace(world.tools(), sleep=sleep))
        with acting_as(ana):
            first = asyncio.ensure_future(client.ask(REQUEST))
        await waits.wait()
        world.now = 299
        with acting_as(ben):
            second = await client.ask(REQUEST)
        over.set()
        answers = [content_of(await first), content_of(second)]
        await client.close()
    assert answers == ["ok", "ok"]


async def test_a_web_page_in_place_of_the_api_is_said_to_be_one() -> None:
    page = llm.Reply(body=b"<html>Please log in</html>")
    async with llm.ScriptedLlm(llm.always(page)) as server:
        client = client_of(server, World(), retry=RetryPolicy(outage_seconds=1000))
        outcomes = await asyncio.gather(
            *(client.ask(REQUEST) for _ in range(200)), return_exceptions=True
        )
        await client.close()
    assert {type(outcome) for outcome in outcomes} == {UnavailableError}
    told = str(outcomes[0])
    assert (
        expected_message("judge_service.llm.chat_replies:the-reply-is-not-json-its-bytes") in told
    )
    assert (
        expected_message("judge_service.llm.call_policy:check-that-the-address-is-that-of") in told
    )
    assert server.chats < 200, "a service that sends no answers is asked less and less often"


async def test_an_unreadable_reply_among_answers_concerns_its_own_call() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        return llm.Reply(body=b"oops") if body["max_tokens"] == 9 else llm.completion("ok")

    world = World()
    odd = type(REQUEST)(messages=REQUEST.messages, max_tokens=9)
    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, world)
        failing = asyncio.ensure_future(client.ask(odd))
        while not failing.done():
            await client.ask(REQUEST)
        await client.close()
    failure = failing.exception()
    assert isinstance(failure, CallFailedError)
    assert failure.kind is FailureKind.NOT_THE_API
    assert world.now < 20


async def test_why_nothing_moves_is_logged_every_half_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    async with llm.ScriptedLlm(llm.always(llm.error(429, "slow down sk-secret-123"))) as server:
        client = client_of(server, world, retry=RetryPolicy(outage_seconds=1000))
        assert client.waiting == ""
        with caplog.at_level(logging.WARNING), pytest.raises(UnavailableError):
            await client.ask(REQUEST)
        assert client.waiting == "", "no call waits any longer"
        await client.close()
    lines = [record.getMessage() for record in caplog.records]
    assert 8 <= len(lines) <= 10
    assert all("HTTP 429: slow down ***" in line for line in lines)
    assert "giving up in" in lines[0]


async def test_a_request_that_the_server_alone_fails_on_does_not_wait_for_an_outage() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        return llm.error(500, "boom") if body["max_tokens"] == 9 else llm.completion("ok")

    world = World()
    poison = type(REQUEST)(messages=REQUEST.messages, max_tokens=9)
    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, world)
        failing = asyncio.ensure_future(client.ask(poison))
        while not failing.done():
            await client.ask(REQUEST)
        await client.close()
    failure = failing.exception()
    assert isinstance(failure, CallFailedError)
    assert "HTTP 500: boom (5 attempts)" in failure.detail
    assert world.now < 20


async def test_with_a_fallback_an_outage_is_waited_for_once() -> None:
    world = World()
    async with llm.ScriptedLlm(llm.always(llm.error(429, "slow down"))) as server:
        client = client_of(server, world)
        with pytest.raises(CallFailedError, match="slow down"):
            await client.ask(REQUEST, has_fallback=True)
        assert 90 <= world.now < 120
        for _ in range(100):
            with pytest.raises(CallFailedError, match="HTTP 429: slow down") as caught:
                await client.ask(REQUEST, has_fallback=True)
        assert world.now < 200
        await client.close()
    assert caught.value.kind in (FailureKind.RATE, FailureKind.CIRCUIT)


async def test_a_failed_call_names_its_first_cause() -> None:
    steps = (llm.always(llm.error(502, "no upstream")), llm.always(llm.error(503, "busy")))
    async with llm.ScriptedLlm(*steps) as server:
        client = client_of(server, retry=RetryPolicy(attempts=2, outage_seconds=0))
        with pytest.raises(CallFailedError) as caught:
            await client.ask(REQUEST)
        await client.close()
    assert caught.value.detail == "HTTP 502: no upstream; then HTTP 503: busy (2 attempts)"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (llm.error(402, "pay"), FailureKind.QUOTA),
        (llm.error(429, "tomorrow", **{"Retry-After": "86400"}), FailureKind.RATE),
    ],
)
async def test_calls_that_are_not_sent_for_want_of_credit_say_so(
    reply: llm.Reply, kind: FailureKind
) -> None:
    world = World()
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        client = client_of(server, world, max_concurrency=1)
        outcomes = await asyncio.gather(
            *(client.ask(REQUEST) for _ in range(5)), return_exceptions=True
        )
        await client.close()
    assert server.chats == 1
    assert [getattr(outcome, "kind", None) for outcome in outcomes] == [kind] * 5
    told = [str(getattr(outcome, "detail", "")) for outcome in outcomes]
    assert told[0].startswith("HTTP 4")
    assert told[1:] == [f"not sent: {told[0]}"] * 4
