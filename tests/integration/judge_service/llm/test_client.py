"""The chat client against a server that misbehaves in every way, over real HTTP."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from support import scripted_llm as llm

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.budget import Budget, Prices
from hallujudge.judge_service.llm.chat import ChatRequest, Sampling
from hallujudge.judge_service.llm.client import ChatClient, ChatSettings, Tools
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.llm.retry import RetryPolicy
from hallujudge.judge_service.settings.secret import Secret

REQUEST = ChatRequest(messages=[{"role": "user", "content": "hello"}], max_tokens=8)


class World:
    """A clock that only sleeping moves, and a sleep that doesn't wait."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def tools(self) -> Tools:
        return Tools(clock=lambda: self.now, random=lambda: 0.5, sleep=self.sleep)


def client_of(
    server: llm.ScriptedLlm,
    world: World | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> ChatClient:
    endpoint = Endpoint(
        url=server.url,
        key=Secret("sk-secret-123"),
        timeout_seconds=options.pop("timeout", 5.0),
        max_reply_bytes=options.pop("max_reply_bytes", 1 << 20),
    )
    settings = ChatSettings(endpoint=endpoint, model="m", **options)
    return ChatClient(settings, budget, (world or World()).tools())


async def failure_of(client: ChatClient) -> CallFailedError:
    with pytest.raises(CallFailedError) as caught:
        await client.ask(REQUEST)
    await client.close()
    return caught.value


async def test_every_sampling_parameter_is_sent_and_the_key_too() -> None:
    async with llm.ScriptedLlm(llm.saying("hi")) as server:
        client = client_of(server, dialect="vllm")
        answer = await client.ask(REQUEST)
        await client.close()
    assert answer.reply.content == "hi"
    assert answer.usage.prompt_tokens == 100
    assert server.headers[0]["authorization"] == "Bearer sk-secret-123"
    assert server.requests[0] == {
        "model": "m",
        "messages": REQUEST.messages,
        "max_tokens": 8,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "n": 1,
        "stream": False,
        "logprobs": True,
        "top_logprobs": 8,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
    }


async def test_openai_gets_its_own_names_and_refused_parameters_are_left_out() -> None:
    async with llm.ScriptedLlm(llm.saying("hi")) as server:
        sampling = Sampling(omit=("temperature", "seed"), top_logprobs=0)
        client = client_of(server, dialect="openai", sampling=sampling)
        await client.ask(REQUEST)
        await client.close()
    sent = server.requests[0]
    assert sent["max_completion_tokens"] == 8
    assert not {"temperature", "seed", "max_tokens", "top_k", "top_logprobs"} & set(sent)
    assert sent["logprobs"] is False


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (llm.always(llm.error(500, "boom")), FailureKind.SERVER),
        (llm.always(llm.error(503)), FailureKind.SERVER),
        (llm.always(llm.error(429, "slow down")), FailureKind.RATE),
        (llm.always(llm.Reply(reset=True)), FailureKind.CONNECTION),
        (llm.always(llm.Reply(body=b'{"choices": [', cut=5)), FailureKind.CONNECTION),
        (llm.always(llm.Reply(body=b'{"choices": [{"mess')), FailureKind.BAD_REPLY),
        (llm.always(llm.as_json({"choices": []})), FailureKind.BAD_REPLY),
        (llm.always(llm.as_json({"answer": "supported"})), FailureKind.BAD_REPLY),
        (
            llm.always(llm.as_json({"choices": [{"message": {"content": 7}}]})),
            FailureKind.BAD_REPLY,
        ),
        (llm.always(llm.as_json({"choices": [{"message": {}}]})), FailureKind.BAD_REPLY),
        (llm.always(llm.as_json([1, 2])), FailureKind.BAD_REPLY),
        (llm.always(llm.Reply(body=b"<html>hello</html>")), FailureKind.BAD_REPLY),
        (llm.always(llm.Reply(body=b"[" * 200_000)), FailureKind.BAD_REPLY),
    ],
)
async def test_transient_faults_are_retried_and_no_more_often_than_allowed(
    step: llm.Step, kind: FailureKind
) -> None:
    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(server, world, retry=RetryPolicy(attempts=3))
        failure = await failure_of(client)
    assert failure.kind is kind
    assert "3 attempts" in failure.detail
    assert server.chats == 3
    assert world.slept == [0.25, 0.5]


async def test_an_answer_after_faults_is_an_answer() -> None:
    steps = (llm.always(llm.error(500)), llm.always(llm.Reply(reset=True)), llm.saying("fine"))
    async with llm.ScriptedLlm(*steps) as server:
        client = client_of(server)
        answer = await client.ask(REQUEST)
        await client.close()
    assert answer.reply.content == "fine"
    assert (client.statistics.calls, client.statistics.retries) == (3, 2)
    assert dict(client.statistics.failures) == {"JUDGE_SERVER_ERROR": 1, "JUDGE_UNREACHABLE": 1}


async def test_retry_after_is_waited_for() -> None:
    reply = llm.error(429, "slow down", **{"Retry-After": "7"})
    async with llm.ScriptedLlm(llm.always(reply), llm.saying("ok")) as server:
        world = World()
        client = client_of(server, world)
        await client.ask(REQUEST)
        await client.close()
    assert world.now >= 7
    assert world.now < 8.5


async def test_a_retry_after_that_is_a_date_is_understood() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    reply = llm.error(429, **{"Retry-After": date})
    async with llm.ScriptedLlm(llm.always(reply), llm.saying("ok")) as server:
        world = World()
        client = client_of(server, world)
        await client.ask(REQUEST)
        await client.close()
    assert 28 <= world.now <= 35


async def test_a_retry_after_beyond_the_longest_wait_is_not_waited_for() -> None:
    reply = llm.error(429, **{"Retry-After": "86400"})
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        world = World()
        failure = await failure_of(client_of(server, world))
    assert failure.kind is FailureKind.RATE
    assert failure.retry_after == 86400
    assert (world.slept, server.chats) == ([], 1)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refused_key_or_an_unknown_model_is_fatal_at_once_and_for_good(status: int) -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(status, "bad key sk-secret-123"))) as server:
        client = client_of(server)
        for _ in range(3):
            with pytest.raises(InvalidInputError) as caught:
                await client.ask(REQUEST)
        await client.close()
    assert server.chats == 1
    assert "sk-secret" not in str(caught.value)
    assert "***" in str(caught.value)
    assert caught.value.reason in ("JUDGE_AUTH_FAILED", "JUDGE_MODEL_UNKNOWN")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (llm.error(400, "no such parameter"), FailureKind.REFUSED_REQUEST),
        (llm.error(422, "wrong"), FailureKind.REFUSED_REQUEST),
        (llm.error(302), FailureKind.REFUSED_REQUEST),
        (llm.error(400, "x", "context_length_exceeded"), FailureKind.TOO_LONG),
        (llm.error(400, "This model's maximum context length is 8"), FailureKind.TOO_LONG),
        (llm.error(413, "large"), FailureKind.TOO_LONG),
        (llm.error(429, "pay", "insufficient_quota"), FailureKind.QUOTA),
    ],
)
async def test_what_would_fail_again_is_not_repeated(reply: llm.Reply, kind: FailureKind) -> None:
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        failure = await failure_of(client_of(server))
    assert failure.kind is kind
    assert server.chats == 1


async def test_a_slow_drip_ends_at_the_deadline() -> None:
    slow = llm.completion("supported")
    drip = llm.Reply(body=slow.body, headers=slow.headers, drip=0.05)
    async with llm.ScriptedLlm(llm.always(drip)) as server:
        client = client_of(server, timeout=0.3, retry=RetryPolicy(attempts=1))
        failure = await failure_of(client)
    assert failure.kind is FailureKind.TIMEOUT


async def test_an_endless_answer_is_not_read_to_its_end() -> None:
    big = llm.Reply(body=b" " * 300_000)
    async with llm.ScriptedLlm(llm.always(big)) as server:
        client = client_of(server, max_reply_bytes=100_000, retry=RetryPolicy(attempts=1))
        failure = await failure_of(client)
    assert failure.kind is FailureKind.BAD_REPLY
    assert "100000" in failure.detail


async def test_nobody_at_the_address() -> None:
    async with llm.ScriptedLlm() as server:
        client = client_of(server, retry=RetryPolicy(attempts=2))
    failure = await failure_of(client)
    assert failure.kind is FailureKind.CONNECTION


async def test_the_circuit_opens_turns_calls_away_and_closes_after_a_probe() -> None:
    healthy = False

    def step(_number: int, _body: llm.Body) -> llm.Reply:
        return llm.completion("ok") if healthy else llm.error(500)

    async with llm.ScriptedLlm(step) as server:
        world = World()
        client = client_of(
            server, world, retry=RetryPolicy(attempts=1), circuit_threshold=3, circuit_seconds=30
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
        assert client.breaker.state == "closed"
        await client.close()


async def test_while_half_open_only_one_probe_is_sent() -> None:
    slow = llm.completion("ok")
    steps = (
        llm.always(llm.error(500)),
        llm.always(llm.Reply(body=slow.body, headers=slow.headers, delay=0.2)),
    )
    async with llm.ScriptedLlm(*steps) as server:
        world = World()
        client = client_of(
            server, world, retry=RetryPolicy(attempts=1), circuit_threshold=1, circuit_seconds=5
        )
        with pytest.raises(CallFailedError):
            await client.ask(REQUEST)
        world.now += 6
        outcomes = await asyncio.gather(
            *(client.ask(REQUEST) for _ in range(10)), return_exceptions=True
        )
        await client.close()
    assert server.chats == 2
    turned_away = [o for o in outcomes if isinstance(o, CallFailedError)]
    assert len(turned_away) == 9
    assert {o.kind for o in turned_away} == {FailureKind.CIRCUIT}


async def test_a_probe_that_is_called_off_lets_the_next_one_pass() -> None:
    slow = llm.completion("ok")
    steps = (
        llm.always(llm.error(500)),
        llm.always(llm.Reply(body=slow.body, headers=slow.headers, delay=5)),
        llm.saying("ok"),
    )
    async with llm.ScriptedLlm(*steps) as server:
        world = World()
        client = client_of(
            server, world, retry=RetryPolicy(attempts=1), circuit_threshold=1, circuit_seconds=5
        )
        with pytest.raises(CallFailedError):
            await client.ask(REQUEST)
        world.now += 6
        probe = asyncio.ensure_future(client.ask(REQUEST))
        while server.chats < 2:
            await asyncio.sleep(0.01)
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()


async def test_rate_limits_shrink_concurrency_and_other_faults_do_not() -> None:
    def step(number: int, _body: llm.Body) -> llm.Reply:
        return llm.error(429) if number <= 16 else llm.completion("ok")

    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, in_flight=16)
        await asyncio.gather(*(client.ask(REQUEST) for _ in range(16)))
        shrunk = client.limiter.limit
        for _ in range(200):
            await client.ask(REQUEST)
        await client.close()
        assert 1 <= shrunk < 16
        assert client.limiter.limit == 16
    async with llm.ScriptedLlm(llm.always(llm.error(500)), llm.saying("ok")) as server:
        client = client_of(server, in_flight=16)
        await client.ask(REQUEST)
        await client.close()
        assert client.limiter.limit == 16


async def test_never_more_in_flight_than_allowed() -> None:
    reply = llm.completion("ok")
    step = llm.always(llm.Reply(body=reply.body, headers=reply.headers, delay=0.01))
    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, in_flight=4)
        await asyncio.gather(*(client.ask(REQUEST) for _ in range(40)))
        await client.close()
    assert server.most_in_flight == 4


async def test_a_budget_of_zero_sends_nothing() -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        failure = await failure_of(client_of(server, budget=Budget(max_calls=0)))
    assert failure.kind is FailureKind.BUDGET
    assert server.chats == 0


async def test_retries_count_as_calls() -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(500))) as server:
        failure = await failure_of(client_of(server, budget=Budget(max_calls=2)))
    assert failure.kind is FailureKind.BUDGET
    assert server.chats == 2


async def test_money_is_held_before_a_call_so_that_calls_in_flight_cannot_pass_the_limit() -> None:
    # "hello" is 5 bytes and 16 for the message: 21 prompt tokens at most, and 8 generated.
    prices = Prices(prompt=1_000_000, generated=1_000_000)
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    async with llm.ScriptedLlm(llm.saying("ok", usage=usage)) as server:
        budget = Budget(max_cost=100, prices=prices)
        client = client_of(server, budget=budget)
        outcomes = await asyncio.gather(
            *(client.ask(REQUEST) for _ in range(50)), return_exceptions=True
        )
        while not isinstance(outcomes[-1], CallFailedError):
            outcomes += await asyncio.gather(client.ask(REQUEST), return_exceptions=True)
        await client.close()
    assert budget.spent <= 100
    assert server.chats == budget.spent / 12
    assert budget.spent > 100 - 29


async def test_what_broke_off_counts_as_spent() -> None:
    prices = Prices(prompt=1_000_000, generated=1_000_000)
    async with llm.ScriptedLlm(llm.always(llm.Reply(reset=True))) as server:
        budget = Budget(prices=prices)
        await failure_of(client_of(server, budget=budget, retry=RetryPolicy(attempts=1)))
    assert budget.spent == 29
    async with llm.ScriptedLlm(llm.always(llm.error(500))) as server:
        budget = Budget(prices=prices)
        await failure_of(client_of(server, budget=budget, retry=RetryPolicy(attempts=1)))
    assert budget.spent == 0


async def test_a_budget_within_another_counts_in_both() -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        shared = Budget(max_calls=3)
        one = client_of(server, budget=Budget(max_calls=2, within=shared))
        two = client_of(server, budget=Budget(within=shared))
        outcomes: list[object] = []
        for client in (one, one, one, two, two):
            outcomes += await asyncio.gather(client.ask(REQUEST), return_exceptions=True)
        await one.close()
        await two.close()
    assert [isinstance(o, CallFailedError) for o in outcomes] == [False, False, True, False, True]
    assert (server.chats, shared.calls) == (3, 3)
    assert "3 of 3 calls made" in str(outcomes[-1])


async def test_a_proxy_is_asked_for_the_address() -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        endpoint = Endpoint(url="http://judge.invalid/v1", proxy=f"http://127.0.0.1:{server.port}")
        client = ChatClient(ChatSettings(endpoint=endpoint, model="m"))
        assert (await client.ask(REQUEST)).reply.content == "ok"
        await client.close()
    assert server.paths == ["http://judge.invalid/v1/chat/completions"]


def test_limits_are_not_negative() -> None:
    with pytest.raises(InvalidInputError, match="max_calls is -1"):
        Budget(max_calls=-1)
    with pytest.raises(InvalidInputError, match="max_cost is nan"):
        Budget(max_cost=float("nan"), prices=Prices(prompt=1, generated=1))


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://x/v1", "http://user:pw@host/v1", "http:///v1"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Endpoint(url=url)
    assert "pw" not in str(caught.value)


def test_a_secret_shows_itself_to_nobody() -> None:
    endpoint = Endpoint(url="http://h/v1", key=Secret(" sk-abc\n"))
    settings = ChatSettings(endpoint=endpoint, model="m")
    shown = [repr(endpoint), str(settings), f"{endpoint.key}", f"{endpoint.key!s:>20}"]
    assert not any("sk-abc" in text for text in shown)
    assert endpoint.key.reveal() == "sk-abc"
    assert endpoint.key == Secret("sk-abc")
    assert not Secret("")
    with pytest.raises(TypeError, match="pickled"):
        __import__("pickle").dumps(endpoint.key)
