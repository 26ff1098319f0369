"""Circuit breaker, limiter, several servers, and outages."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of
from support.messages import expected_message
from support.threads import PATIENCE, until

from hallujudge.judge_service.access.caller import Caller, acting_as
from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_servers import MAX_CALLERS
from hallujudge.judge_service.llm.client import Answer, ChatClient, ChatSettings
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint


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


async def test_one_callers_failing_prompts_open_that_callers_circuit_only() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        poison = llm.prompt_of(body) == "poison"
        return llm.error(500, **{"Retry-After": "60"}) if poison else llm.completion("ok")

    poison = replace(REQUEST, messages=[{"role": "user", "content": "poison"}])
    ana, ben = Caller(id="key:ana", name="ana"), Caller(id="key:ben", name="ben")
    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(server, world, retry=RetryPolicy(attempts=1, outage_seconds=0))
        with acting_as(ana):
            failed = await asyncio.gather(
                *(client.ask(poison) for _ in range(8)), return_exceptions=True
            )
            with pytest.raises(CallFailedError) as caught:
                await client.ask(poison)
        with acting_as(ben):
            answers = [await client.ask(REQUEST) for _ in range(3)]
        assert client.state.circuit_open, "the metrics show that a caller's circuit is open"
        await client.close()
    assert {type(one) for one in failed} == {CallFailedError}
    assert caught.value.kind is FailureKind.CIRCUIT
    assert [answer.reply.content for answer in answers] == ["ok"] * 3
    assert (server.chats, world.slept) == (11, [])


async def test_callers_beyond_the_most_are_forgotten_unless_their_circuit_is_open() -> None:
    steps = (llm.always(llm.error(500)), llm.saying("ok"))
    async with llm.ScriptedLlm(*steps) as server:
        client = client_of(
            server, retry=RetryPolicy(attempts=1, outage_seconds=0), circuit_threshold=1
        )
        with acting_as(Caller(id="key:ana", name="ana")), pytest.raises(CallFailedError):
            await client.ask(REQUEST)
        circuits = []
        for number in range(MAX_CALLERS + 10):
            with acting_as(Caller(id=f"peer:{number}", name="peer")):
                circuits.append(weakref.ref(client.servers[0].breaker))
        with acting_as(Caller(id="key:ana", name="ana")):
            assert client.servers[0].is_down
        await client.close()
    assert sum(circuit() is not None for circuit in circuits) <= MAX_CALLERS


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


async def test_after_a_rate_limits_pause_keys_take_turns() -> None:
    """The limit is the account's: calls that wait for its end have no claim to come first."""
    ana, ben = (Caller(id=f"key:{name}", name=name) for name in ("ana", "ben"))
    world, paused, over = World(), asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        paused.set()
        await over.wait()
        world.now += seconds

    def step(number: int, _body: llm.Body) -> llm.Reply:
        return llm.error(429, **{"Retry-After": "30"}) if number == 1 else llm.completion("ok")

    def asked(caller: Caller, calls: int) -> list[asyncio.Task[Answer]]:
        request = replace(REQUEST, messages=[{"role": "user", "content": caller.name}])
        with acting_as(caller):
            return [asyncio.ensure_future(client.ask(request)) for _ in range(calls)]

    async with llm.ScriptedLlm(step) as server:
        endpoint = Endpoint(url=server.url)
        settings = ChatSettings(endpoint=endpoint, model="m", max_concurrency=64)
        client = ChatClient(settings, None, replace(world.tools(), sleep=sleep))
        calls = asked(ana, 1)
        await paused.wait()
        calls += asked(ana, 100)
        await asyncio.sleep(0)
        calls += asked(ben, 10)
        await asyncio.sleep(0)
        assert server.chats == 1, "the pause is for all calls of the account"
        over.set()
        await asyncio.gather(*calls)
        await client.close()
    sent = [llm.prompt_of(body) for body in server.requests[1:]]
    assert sent[:40].count("ben") == 10, sent


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


# Ports differ from run to run, and so do the servers of the images; of forty, both get some.
IMAGES = [f"image {number}" for number in range(40)]


def client_of_servers(
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
        client = client_of_servers(World(), [first, second])
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
            client = client_of_servers(World(), order)
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
        client = client_of_servers(world, [down, up], threshold=2)
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
        client = client_of_servers(world, [first, second], threshold=1)
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
        client = client_of_servers(world, [a, b], attempts=2)
    with pytest.raises(CallFailedError, match="Connection refused"):
        await ask_about(client, "image")
    await client.close()
    assert world.slept, "an outage is waited for"


async def test_one_attempt_is_one_call_however_many_servers_there_are() -> None:
    async with (
        llm.ScriptedLlm(llm.always(llm.error(500))) as a,
        llm.ScriptedLlm(llm.always(llm.error(500))) as b,
    ):
        client = client_of_servers(World(), [a, b], attempts=1)
        with pytest.raises(CallFailedError):
            await ask_about(client, "image")
        await client.close()
    assert a.chats + b.chats == 1


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
@pytest.mark.parametrize("seconds", [5, 60])
@pytest.mark.parametrize("at_once", [1, 16])
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
    assert expected_message("judge_service.llm.chat:the-reply-is-not-json-its-bytes") in told
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
