"""Another question shows whether a failing server or one prompt is the cause."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from support import scripted_llm as llm
from support.chat_clients import REQUEST, World, client_of
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError, UnavailableError
from hallujudge.judge_service.llm.budget import Budget
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.llm.verdict_cache import VerdictCache

POISONED = [replace(REQUEST, messages=[{"role": "user", "content": f"odd {n}"}]) for n in range(20)]


def failing(reply: llm.Reply) -> llm.Step:
    """Return a step that fails the prompts which begin with ``odd``."""
    return lambda _number, body: (
        reply if llm.prompt_of(body).startswith("odd") else llm.completion("ok")
    )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (llm.UNKNOWN_MODEL_AT_LITELLM, "JUDGE_REQUEST_REFUSED"),
        (llm.REJECTED_KEY_AT_LITELLM, "JUDGE_REQUEST_REFUSED"),
        (llm.UNKNOWN_FIELDS_AT_TRANSFORMERS, "JUDGE_REQUEST_REFUSED"),
        (llm.error(403, "not allowed"), "JUDGE_AUTH_FAILED"),
    ],
)
async def test_a_server_that_refuses_every_request_ends_the_run(
    reply: llm.Reply, reason: str
) -> None:
    async with llm.ScriptedLlm(llm.always(reply)) as server:
        client = client_of(server, max_concurrency=4)
        outcomes = await asyncio.gather(
            *(client.ask(each) for each in POISONED), return_exceptions=True
        )
        await client.close()
    assert {type(outcome) for outcome in outcomes} == {InvalidInputError}
    assert {getattr(outcome, "reason", "") for outcome in outcomes} == {reason}
    assert [llm.is_own_question(body) for body in server.requests].count(True) == 1
    assert server.chats <= 5


async def test_the_run_goes_on_if_another_question_is_refused_for_another_reason() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        own = llm.is_own_question(body)
        return llm.error(400, "no image" if own else "the image is too small")

    async with llm.ScriptedLlm(step) as server:
        client = client_of(server)
        with pytest.raises(CallFailedError, match="too small"):
            await client.ask(REQUEST)
        await client.close()


async def test_the_other_question_has_the_form_of_the_call_and_counts_in_the_budget() -> None:
    request = replace(REQUEST, choices=("yes", "no"), schema={"type": "string"}, max_tokens=64)
    async with llm.ScriptedLlm(llm.to_prompts(llm.error(400, "no"))) as server:
        budget = Budget(max_calls=2)
        client = client_of(server, budget=budget, dialect="vllm")
        with pytest.raises(CallFailedError, match="no") as refused:
            await client.ask(request)
        with pytest.raises(CallFailedError) as beyond:
            await client.ask(request)
        await client.close()
    assert refused.value.kind is FailureKind.REFUSED_REQUEST
    assert beyond.value.kind is FailureKind.BUDGET
    first, own = server.requests
    assert own["structured_outputs"] == first["structured_outputs"] == {"choice": ["yes", "no"]}
    assert own["max_tokens"] == 16


@pytest.mark.parametrize(
    "reply",
    [llm.error(500, "boom"), llm.Reply(reset=True), llm.Reply(body=b"oops")],
)
@pytest.mark.parametrize("open_calls", [1, 9])
async def test_calls_that_always_fail_end_while_no_other_call_is_left(
    tmp_path: Path, reply: llm.Reply, open_calls: int
) -> None:
    """A second run, whose other calls are in the verdict cache, ends like the first one."""
    cache = VerdictCache(tmp_path / "verdicts.sqlite")
    async with llm.ScriptedLlm(failing(reply)) as server:
        first = _of_run(server, World(), cache)
        await first.ask(REQUEST)
        await first.close()
        world = World()
        second = _of_run(server, world, cache)
        outcomes = await asyncio.gather(
            *(second.ask(each) for each in POISONED[:open_calls]), return_exceptions=True
        )
        await second.close()
    await cache.close()
    assert {type(outcome) for outcome in outcomes} == {CallFailedError}
    assert world.now < 300


def _of_run(server: llm.ScriptedLlm, world: World, cache: VerdictCache) -> ChatClient:
    settings = ChatSettings(endpoint=Endpoint(url=server.url), model="m", max_concurrency=8)
    return ChatClient(settings, None, world.tools(), store=cache)


async def test_a_server_that_answers_no_question_is_waited_for() -> None:
    world = World()
    async with llm.ScriptedLlm(llm.always(llm.error(500, "boom"))) as server:
        client = client_of(server, world, retry=RetryPolicy(outage_seconds=1000))
        with pytest.raises(
            UnavailableError,
            match=expected_message("judge_service.llm.call_policy:answered-no-call-for-2"),
        ):
            await client.ask(REQUEST)
        await client.close()
    assert world.now >= 300


async def test_a_text_that_takes_too_long_is_no_outage_of_a_server_that_answers() -> None:
    world, request = World(), replace(REQUEST, max_tokens=512)

    def step(_number: int, body: llm.Body) -> llm.Reply:
        if llm.is_own_question(body):
            return llm.completion("Yes.")
        world.now += 120.0
        return llm.error(408, "Request timed out.")

    async with llm.ScriptedLlm(step) as server:
        client = client_of(server, world, retry=RetryPolicy())
        with pytest.raises(CallFailedError, match="5 attempts") as failed:
            await client.ask(request)
        await client.close()
    assert failed.value.kind is FailureKind.TIMEOUT
    assert world.now > 600


async def test_a_missing_route_is_named() -> None:
    request = replace(REQUEST, choices=("yes", "no"), api="decisions")
    async with llm.ScriptedLlm() as server:
        server.probabilities["decisions"] = llm.always(llm.NO_DECISIONS_AT_VLLM)
        client = client_of(server)
        with pytest.raises(InvalidInputError, match=r"POST decisions.*set llm.api to chat"):
            await client.ask(request)
        await client.close()
    async with llm.ScriptedLlm(llm.always(llm.error(404, "Not Found"))) as server:
        client = client_of(server)
        with pytest.raises(InvalidInputError, match="POST chat/completions"):
            await client.ask(REQUEST)
        await client.close()


async def test_a_route_is_missing_though_the_server_answered_by_another(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    await cache.open()
    request = replace(REQUEST, choices=("yes", "no"), api="decisions")
    async with llm.ScriptedLlm() as server:
        server.probabilities["decisions"] = llm.always(llm.error(404, "Not Found"))
        settings = ChatSettings(endpoint=Endpoint(url=server.url), model="m")
        chat = ChatClient(settings, None, World().tools(), store=cache)
        await chat.ask(REQUEST)
        await chat.close()
        decisions = replace(settings, api="decisions")
        client = ChatClient(decisions, None, World().tools(), store=cache)
        with pytest.raises(InvalidInputError, match="POST decisions"):
            await client.ask(request)
        await client.close()
    await cache.close()
