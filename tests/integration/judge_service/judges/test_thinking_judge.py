"""Judges that think before they answer, as vLLM 0.32.0 sends them with a reasoning parser."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.chat_clients import World
from support.llm_judges import CLAIMS, EXPECTED, item, judge_of, shown

from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.budget import Budget, Prices
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat import Sampling
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.verdict_cache import VerdictCache

_ROOM = 1000
_USAGE = {"prompt_tokens": 100, "completion_tokens": 64}


def thinks(number: int, body: llm.Body) -> llm.Reply:
    """Think for more tokens than an answer takes, and answer then."""
    if body["max_tokens"] < _ROOM:
        return llm.completion(None, reasoning="Let me see.", finish="length", usage=_USAGE)
    answer = json_of(llm.by_scene_graph(number, body))
    return llm.completion(answer, reasoning="Let me see.", usage=_USAGE)


def json_of(reply: llm.Reply) -> str:
    return str(json.loads(reply.body)["choices"][0]["message"]["content"])


async def test_a_judge_that_thinks_gets_room_for_it_and_later_runs_know(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    async with llm.ScriptedLlm(thinks) as server:
        budget = Budget(prices=Prices(prompt=0.0, completion=1e6))
        one = judge_of(server, max_concurrency=1).client.settings
        first = LlmJudge("llm", ChatClient(one, budget, store=cache), cache=cache)
        (judged,) = await first.judge([item()])
        assert shown(judged) == EXPECTED
        # Only the first one was cut off, whose tokens are paid for too.
        assert server.chats == len(CLAIMS) + 1
        (asked,) = judged.judging()
        assert (asked["calls"], asked["completion_tokens"], asked["cost"]) == (5, 5 * 64, 5 * 64.0)
        await first.close()
        second = judge_of(server, name="llm", cache=cache)
        await second.judge([item(CLAIMS[0]), item(*CLAIMS[:1], id="2")])
        assert server.chats == len(CLAIMS) + 1, "the limit is no part of what a reply depends on"
        again = ChatClient(one, store=cache)
        third = LlmJudge("llm", again, cache=cache, revision="b")
        await third.judge([item()])
        assert server.chats == 2 * len(CLAIMS) + 1
        assert {body["max_tokens"] >= _ROOM for body in server.requests[-4:]} == {True}
        await second.close()
        await third.close()
    await cache.close()


@pytest.mark.parametrize(
    ("with_room", "reason", "again"),
    [
        (llm.completion("supported", reasoning="Let me see."), "", len(CLAIMS)),
        (llm.completion(None, reasoning="Hm, hm.", finish="length"), "REPLY_TRUNCATED", 1),
        (llm.TOO_LONG_AT_LLAMA, "REPLY_TRUNCATED", 1),
    ],
)
async def test_cut_off_thoughts_are_asked_for_again_only_if_room_was_enough_for_one(
    with_room: llm.Reply, reason: str, again: int
) -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        if body["max_tokens"] >= _ROOM:
            return with_room
        return llm.completion(None, reasoning="Hm.", finish="length")

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server)
        (judged,) = await judge.judge([item()])
        await judge.close()
    assert {claim.reason for claim in judged.verdicts} == {reason}
    assert sum(body["max_tokens"] >= _ROOM for body in server.requests) == again


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (llm.saying(None, reasoning="Hm.", finish="length"), "REPLY_TRUNCATED"),
        (llm.saying("<think>Hm.", finish="length"), "REPLY_TRUNCATED"),
        (llm.saying(None, reasoning="Hm."), "REPLY_ONLY_THOUGHT"),
        (llm.saying("<think>Hm.</think>\n"), "REPLY_ONLY_THOUGHT"),
    ],
)
async def test_what_would_be_the_same_again_is_asked_once(step: llm.Step, reason: str) -> None:
    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, max_tokens=99)
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    assert [claim.reason for claim in judged.verdicts] == [reason]
    assert [body["max_tokens"] for body in server.requests] == [99]


CUT = llm.completion(None, reasoning="Hm.", finish="length", usage=_USAGE)
LATE = llm.error(408, "Request timed out.")


def slow(_number: int, body: llm.Body) -> llm.Reply:
    """Think too slowly for the time that a reply may take, if there is room for a thought."""
    return LATE if body["max_tokens"] >= _ROOM else CUT


async def test_a_thought_that_takes_too_long_is_its_calls_failure() -> None:
    async with llm.ScriptedLlm(slow) as server:
        judge = judge_of(server)
        (judged,) = await judge.judge([item()])
        waiting, is_open = judge.client.waiting, judge.client.state.circuit_open
        await judge.close()
    assert {claim.reason for claim in judged.verdicts} == {"REPLY_TRUNCATED"}
    for named in ("llm.max_tokens", "llm.timeout_seconds", "enable_thinking", "HTTP 408"):
        assert all(claim.detail.count(named) == 1 for claim in judged.verdicts), named
    assert sum(body["max_tokens"] >= _ROOM for body in server.requests) == 1
    assert (waiting, is_open) == ("", False)


async def test_no_call_is_made_longer_before_one_has_shown_that_it_helps() -> None:
    def step(number: int, body: llm.Body) -> llm.Reply:
        longer = sum(body["max_tokens"] >= _ROOM for body in server.requests)
        if body["max_tokens"] >= _ROOM and longer == 1:
            return llm.error(503, "restarting")
        return thinks(number, body)

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, max_concurrency=1)
        (judged,) = await judge.judge([item()])
        await judge.close()
    assert shown(judged) == EXPECTED
    limits = [body["max_tokens"] >= _ROOM for body in server.requests]
    assert limits == [False, True, False, True, True, True, True]


async def test_a_late_thought_of_a_judge_that_is_known_to_think_costs_its_claim_only() -> None:
    def step(number: int, body: llm.Body) -> llm.Reply:
        if not llm.is_own_question(body) and llm.claims_of(body)[0] == list(CLAIMS[1]):
            return slow(number, body)
        return CUT if llm.is_own_question(body) else thinks(number, body)

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, max_concurrency=1, retry=RetryPolicy())
        (judged,) = await judge.judge([item()])
        await judge.close()
    reasons = [claim.reason for claim in judged.verdicts]
    assert reasons == ["", "REPLY_TRUNCATED", "", ""]
    assert "llm.timeout_seconds" in judged.verdicts[1].detail
    assert sum(claims == [list(CLAIMS[1])] for claims in asked_about(server)) == 1


async def test_a_limit_of_the_user_that_takes_too_long_is_named_too() -> None:
    async with llm.ScriptedLlm(slow) as server:
        judge = judge_of(server, max_tokens=_ROOM)
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    assert [claim.reason for claim in judged.verdicts] == ["REPLY_TRUNCATED"]
    assert "llm.timeout_seconds" in judged.verdicts[0].detail


async def test_a_server_that_answers_nothing_is_down_whether_it_thinks_or_not() -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        return slow(0, body) if not llm.is_own_question(body) else LATE

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server)
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    assert [claim.reason for claim in judged.verdicts] == ["JUDGE_TIMEOUT"]


async def test_room_for_a_thought_is_tried_again_later() -> None:
    is_slow, world = True, World()

    def step(number: int, body: llm.Body) -> llm.Reply:
        return slow(number, body) if is_slow else thinks(number, body)

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, world=world)
        (first,) = await judge.judge([item(CLAIMS[0])])
        is_slow = False
        (second,) = await judge.judge([item(CLAIMS[1])])
        world.now += 3600.0
        (third,) = await judge.judge([item(CLAIMS[2])])
        await judge.close()
    reasons = [claim.reason for one in (first, second, third) for claim in one.verdicts]
    assert reasons == ["REPLY_TRUNCATED", "REPLY_TRUNCATED", ""]


def asked_about(server: llm.ScriptedLlm) -> list[list[list[str]]]:
    return [llm.claims_of(body) for body in server.requests if not llm.is_own_question(body)]


async def test_a_verdict_as_the_arguments_of_a_tool_or_as_parts_is_read() -> None:
    def step(number: int, body: llm.Body) -> llm.Reply:
        answer = json_of(llm.by_scene_graph(number, body))
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": answer}}
        parts = [{"type": "text", "text": answer}]
        message = {"content": None, "tool_calls": [call]} if number % 2 else {"content": parts}
        return llm.as_json({"choices": [{"message": message, "finish_reason": "stop"}]})

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server)
        (judged,) = await judge.judge([item()])
        await judge.close()
    assert shown(judged) == EXPECTED


@pytest.mark.parametrize(
    ("step", "ok", "said"),
    [
        (thinks, None, "llm.max_tokens limits both"),
        (llm.saying(None, reasoning="Hm.", finish="length"), False, "raise llm.max_tokens"),
        (llm.saying(None, reasoning="Hm."), False, "without its reasoning parser"),
    ],
)
async def test_doctor_says_what_a_model_that_thinks_needs(
    step: llm.Step, ok: bool | None, said: str
) -> None:
    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, dialect="vllm", sampling=Sampling(top_logprobs=0))
        checks = {check.name: check for check in await check_endpoint(judge)}
        await judge.close()
    assert checks["reasoning"].ok is ok
    assert said in checks["reasoning"].detail


async def test_doctor_waits_for_a_thought_for_a_while_only_and_says_what_to_set() -> None:
    world = World()

    def step(_number: int, body: llm.Body) -> llm.Reply:
        world.now += 2.0
        return replace(CUT, hold=asyncio.Event()) if body["max_tokens"] >= _ROOM else CUT

    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, dialect="vllm", world=world)
        checks = {check.name: check for check in await check_endpoint(judge, patience=0.5)}
        await judge.close()
    assert list(checks) == ["model", "answer", "reasoning"]
    assert (checks["answer"].ok, checks["reasoning"].ok) == (False, False)
    for named in ("thinks", "llm.timeout_seconds", "enable_thinking", "at 32 tokens/s"):
        assert named in checks["reasoning"].detail
    assert sum(body["max_tokens"] >= _ROOM for body in server.requests) == 1


@pytest.mark.parametrize("step", [slow, llm.always(CUT), llm.saying(None, reasoning="Hm.")])
async def test_doctor_says_of_a_thought_alone_that_no_constraint_can_be_seen(
    step: llm.Step,
) -> None:
    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, dialect="vllm")
        checks = {check.name: check for check in await check_endpoint(judge)}
        await judge.close()
    assert checks["structured output"].ok is None
    assert "reasoning" in checks["structured output"].detail
    assert checks["reasoning"].ok is False
    assert "settings" not in checks
    assert sum(body["max_tokens"] >= _ROOM for body in server.requests) <= 1
