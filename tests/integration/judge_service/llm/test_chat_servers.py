"""Circuit breaker, limiter, and several servers of one model."""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter
from dataclasses import replace

import pytest
from msgspec import structs
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of
from support.threads import PATIENCE, until

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.circuits import MAX_CALLERS
from hallujudge.judge_service.llm.client import Answer, ChatClient
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

    poison = structs.replace(REQUEST, messages=[{"role": "user", "content": "poison"}])
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


async def test_a_judge_that_fails_many_callers_is_asked_by_one_probe_of_all() -> None:
    """Two may have prompts that fail for themselves; with a third the judge itself is down."""

    def step(_number: int, _body: llm.Body) -> llm.Reply:
        return llm.completion("ok") if world.now >= 60 else llm.error(503)

    async def asked(number: int) -> Answer:
        with acting_as(Caller(id=f"key:{number}", name=f"key {number}")):
            return await client.ask(REQUEST)

    world = World()
    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, world, max_concurrency=4)
        answers = await asyncio.gather(*(asked(number) for number in range(40)))
        failed = sum(client.statistics.failures.values())
        await client.close()
    assert [answer.reply.content for answer in answers] == ["ok"] * 40
    # The third failure finds four calls under way; probes follow after 1, 2, 4, 8, 15 and 15 s.
    assert failed <= 2 + 4 + 6
    own = sum(map(llm.is_own_question, server.requests[-41:]))
    assert server.chats == failed + 40 + own


async def test_an_answer_to_any_caller_ends_what_all_wait_for() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        poison = llm.prompt_of(body) == "poison"
        return llm.error(500) if poison else llm.completion("ok")

    poison = structs.replace(REQUEST, messages=[{"role": "user", "content": "poison"}])
    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(server, world, retry=RetryPolicy(attempts=1, outage_seconds=0))
        for number in range(3):
            with acting_as(Caller(id=f"key:{number}", name="key")), pytest.raises(CallFailedError):
                await client.ask(poison)
        with acting_as(Caller(id="key:ana", name="ana")):
            with pytest.raises(CallFailedError) as caught:
                await client.ask(REQUEST)
            world.now += 1
            answers = [await client.ask(REQUEST) for _ in range(3)]
        await client.close()
    assert caught.value.kind is FailureKind.CIRCUIT
    assert [answer.reply.content for answer in answers] == ["ok"] * 3


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


async def half_open(server: llm.ScriptedLlm) -> ChatClient:
    """Return a client whose first call failed, so that the next one is a probe."""
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
    return client


async def test_while_half_open_only_one_probe_is_sent() -> None:
    answered = asyncio.Event()
    probe = replace(llm.completion("ok"), hold=answered)
    steps = (llm.always(llm.error(500)), llm.always(probe))
    async with llm.ScriptedLlm(*steps) as server:
        client = await half_open(server)
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
        client = await half_open(server)
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
        request = structs.replace(REQUEST, messages=[{"role": "user", "content": caller.name}])
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
    await client.ask(structs.replace(REQUEST, affinity=image))


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
