"""Judges that think before they answer, as vLLM 0.32.0 sends them with a reasoning parser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.llm_judges import CLAIMS, EXPECTED, item, judge_of, shown

from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.budget import Budget, Prices
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
        (thinks, None, "llm_max_tokens limits both"),
        (llm.saying(None, reasoning="Hm.", finish="length"), False, "raise llm_max_tokens"),
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
