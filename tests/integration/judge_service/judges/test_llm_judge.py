"""The language-model judge at a scripted server."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support import scripted_llm as llm
from support.llm_judges import CLAIMS, EXPECTED, as_bytes, item, judge_of, shown
from support.messages import expected_message
from support.threads import PATIENCE, until

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges.several_judges import Router
from hallujudge.judge_service.llm.budget import Budget, Prices
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.metrics.framework.claims import Sentence


@pytest.mark.parametrize("dialect", ["vllm", "openai", "plain"])
@pytest.mark.parametrize("claims_per_call", [1, 20])
async def test_verdicts_in_every_dialect_one_claim_a_call_or_all(
    dialect: Any, claims_per_call: int
) -> None:
    async with llm.ScriptedLlm() as server:
        judge = judge_of(server, dialect=dialect, claims_per_call=claims_per_call)
        (judged,) = await judge.judge([item()])
        await judge.close()
    assert shown(judged) == EXPECTED
    assert {v.judge for v in judged.verdicts} == {"llm"}
    assert server.chats == (4 if claims_per_call == 1 else 1)
    (asked,) = judged.judging()
    assert (asked["answered"], asked["calls"]) == (4, server.chats)
    choices = ["supported", "object1", "object2", "relation"]
    if dialect == "vllm" and claims_per_call == 1:
        assert server.requests[0]["structured_outputs"] == {"choice": choices}
    elif dialect == "vllm":
        pattern = server.requests[0]["structured_outputs"]["regex"]
        answer = {str(n): choice for n, choice in enumerate(choices, start=1)}
        assert re.fullmatch(pattern, json.dumps(answer, separators=(",", ":")))
        assert not re.fullmatch(pattern, json.dumps(answer))
    else:
        assert server.requests[0]["response_format"]["json_schema"]["strict"] is True


async def test_the_prompts_of_an_image_begin_alike_and_end_with_the_claim() -> None:
    async with llm.ScriptedLlm() as server:
        judge = judge_of(server)
        await judge.judge([item()])
        await judge.close()
    prompts = ["\n".join(m["content"] for m in r["messages"]) for r in server.requests]
    assert len(prompts) == len(CLAIMS)
    shared = len(_common_prefix(prompts))
    assert all(shared > 0.9 * len(prompt) for prompt in prompts)
    assert all(prompt.endswith("CLAIM>>>") for prompt in prompts)


def _common_prefix(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    end = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:end]


async def test_sentences_are_judged_as_a_whole() -> None:
    async with llm.ScriptedLlm(llm.saying("not_supported")) as server:
        judge = judge_of(server, claims_per_call=20, dialect="vllm")
        (judged,) = await judge.judge([item(Sentence("A man rides."), Sentence("A dog."))])
        await judge.close()
    assert shown(judged) == [("not_supported", None)] * 2
    assert server.chats == 2


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (llm.saying("maybe"), "REPLY_OUT_OF_CHOICE"),
        (llm.saying('{"verdict": "perhaps"}'), "REPLY_OUT_OF_CHOICE"),
        (llm.saying("supp", finish="length"), "REPLY_TRUNCATED"),
        (llm.saying("<think>It is", finish="length"), "REPLY_TRUNCATED"),
        (llm.saying("<think>It is.</think>"), "REPLY_ONLY_THOUGHT"),
        (llm.saying(None, reasoning="It is."), "REPLY_ONLY_THOUGHT"),
        (llm.saying(None, refusal="I won't."), "JUDGE_REFUSED"),
        (llm.saying(None, finish="content_filter"), "JUDGE_REFUSED"),
        (llm.always(llm.as_json({"choices": []})), "JUDGE_BAD_REPLY"),
        (llm.always(llm.error(500)), "JUDGE_SERVER_ERROR"),
        (llm.to_prompts(llm.error(400, "no")), "JUDGE_REQUEST_REFUSED"),
        (llm.always(llm.Reply(reset=True)), "JUDGE_UNREACHABLE"),
    ],
)
async def test_no_verdict_is_unscored_with_its_reason_and_never_guessed(
    step: llm.Step, reason: str
) -> None:
    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server)
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    (verdict,) = judged.verdicts
    assert (verdict.verdict.value, verdict.part, verdict.reason) == ("unscored", None, reason)
    (asked,) = judged.asked
    assert asked.answered == 0
    assert [declined.reason for declined in asked.declined] == [reason]


async def test_a_refused_key_ends_the_run_at_once() -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(401, "no"))) as server:
        judge = judge_of(server, max_concurrency=2)
        with pytest.raises(
            InvalidInputError, match=expected_message("judge_service.llm.client:set-the-right-key")
        ):
            await judge.judge([item(id=str(n)) for n in range(50)])
        await judge.close()
    assert server.chats <= 2


async def test_a_claim_that_comes_up_many_times_at_once_is_asked_about_once() -> None:
    async with llm.ScriptedLlm() as server:
        judge = judge_of(server)
        results = await judge.judge([item(CLAIMS[0], id=str(n)) for n in range(30)])
        await judge.close()
    assert server.chats == 1
    assert {shown(r)[0] for r in results} == {("supported", None)}


async def test_cancelling_a_run_reaches_the_server_and_keeps_what_was_answered(
    tmp_path: Path,
) -> None:
    stuck = True

    def step(number: int, body: llm.Body) -> llm.Reply:
        reply = llm.by_scene_graph(number, body)
        return replace(reply, delay=PATIENCE) if stuck and number == 2 else reply

    async with llm.ScriptedLlm(step) as server:
        cache = VerdictCache(tmp_path / "c")
        judge = judge_of(server, cache=cache, max_concurrency=1)
        run = asyncio.ensure_future(judge.judge([item()]))
        await until(lambda: server.chats == 2)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await until(lambda: server.abandoned == 1)
        assert await cache.count() == 1
        # Neither the cancelled call nor its place among the calls is kept: the next run asks again.
        stuck = False
        async with asyncio.timeout(PATIENCE):
            (judged,) = await judge.judge([item()])
        assert shown(judged) == EXPECTED
        assert server.chats == 2 + 3
        await judge.close()
        await cache.close()


async def test_a_rerun_makes_no_call_and_gives_the_same_bytes(tmp_path: Path) -> None:
    items = [item(id="1"), item(CLAIMS[1], CLAIMS[1], id="2"), item(Sentence("x"), id="3")]

    def step(number: int, body: llm.Body) -> llm.Reply:
        if "SENTENCE" in llm.prompt_of(body):
            return llm.completion('{"verdict":"supported"}')
        return llm.by_scene_graph(number, body)

    async with llm.ScriptedLlm(step) as server:
        texts = []
        for _ in range(2):
            cache = VerdictCache(tmp_path / "verdicts.sqlite")
            judge = judge_of(server, cache=cache)
            texts.append(as_bytes(await Router([judge]).judge(items)))
            await judge.close()
            await cache.close()
        assert server.chats == 5
    # The server is gone, and its port with it.
    cache = VerdictCache(tmp_path / "verdicts.sqlite")
    judge = judge_of(server, cache=cache)
    texts.append(as_bytes(await judge.judge(items)))
    await cache.close()
    assert texts[0] == texts[1] == texts[2]


async def test_failures_are_not_remembered(tmp_path: Path) -> None:
    steps = (llm.saying("maybe"), llm.always(llm.error(400)), llm.by_scene_graph)
    async with llm.ScriptedLlm(*steps) as server:
        cache = VerdictCache(tmp_path / "c")
        judge = judge_of(server, cache=cache)
        seen = [shown((await judge.judge([item(CLAIMS[0])]))[0])[0][0] for _ in range(4)]
        await judge.close()
        await cache.close()
    assert seen == ["unscored", "unscored", "supported", "supported"]
    assert server.chats == 3


@pytest.mark.parametrize(
    "other",
    [
        {"revision": "b"},
        {"server": "vllm 2"},
        {"claims_per_call": 2},
        {"dialect": "vllm"},
        {"constraint": "none"},
        {"name": "other"},
    ],
)
async def test_everything_that_a_verdict_depends_on_is_in_the_key(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    async with llm.ScriptedLlm() as server:
        cache = VerdictCache(tmp_path / "c")
        first = judge_of(server, cache=cache, revision="a", server="vllm 1")
        second = judge_of(server, cache=cache, **({"revision": "a", "server": "vllm 1"} | other))
        two = item(*CLAIMS[:2])
        await first.judge([two])
        before = server.chats
        await second.judge([two])
        await first.close()
        await second.close()
        await cache.close()
    assert server.chats > before


async def test_refused_calls_are_no_replies_that_were_used_again() -> None:
    async with llm.ScriptedLlm(llm.to_prompts(llm.error(400, "no"))) as server:
        judge = judge_of(server)
        paying = structs.replace(item(*CLAIMS[:2], CLAIMS[0]), payer="1")
        (judged,) = await judge.judge([paying])
        await judge.close()
    (asked,) = judged.judging()
    assert (asked["calls"], asked["reused"]) == (0, 0)


async def test_a_server_version_is_learnt_and_remembered_while_the_server_is_away(
    tmp_path: Path,
) -> None:
    cache = VerdictCache(tmp_path / "c")
    async with llm.ScriptedLlm(version="9.9") as server:
        judge = judge_of(server, cache=cache, dialect="vllm")
        first = await judge.judge([item()])
        assert judge.identity.server == ""
        await judge.prepare()
        await judge.close()
    assert judge.identity.server == "vllm 9.9"
    again = judge_of(server, cache=cache, dialect="vllm")
    assert as_bytes(await again.judge([item()])) == as_bytes(first)
    await again.close()
    await cache.close()


async def test_cost_is_kept_with_the_item() -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 900},
    }
    async with llm.ScriptedLlm(llm.saying("supported", usage=usage)) as server:
        prices = Prices(prompt=2.0, completion=10.0, cached=0.5)
        judge = judge_of(server, budget=Budget(prices=prices))
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    (asked,) = judged.judging()
    assert asked["cost"] == pytest.approx((100 * 2 + 900 * 0.5 + 3 * 10) / 1e6)
    assert asked["cached_tokens"] == 900


async def test_equal_claims_are_asked_about_once_also_without_a_cache() -> None:
    async with llm.ScriptedLlm() as server:
        judge = judge_of(server, max_concurrency=2)
        items = [item(CLAIMS[n % 3], id=str(n)) for n in range(40)]
        results = [*await judge.judge(items[:20]), *await judge.judge(items[20:])]
        await judge.close()
    assert server.chats == 3
    assert [shown(result)[0] for result in results] == [EXPECTED[n % 3] for n in range(40)]


async def test_many_equal_claims_at_once_are_one_record_with_one_latency(tmp_path: Path) -> None:
    def step(number: int, body: llm.Body) -> llm.Reply:
        return replace(llm.by_scene_graph(number, body), delay=0.001 * (number % 5))

    items = [item(CLAIMS[n % 4], CLAIMS[(n + 1) % 4], id=str(n)) for n in range(60)]
    texts = []
    async with llm.ScriptedLlm(step) as server:
        for _ in range(2):
            cache = VerdictCache(tmp_path / "c")
            judge = judge_of(server, cache=cache, max_concurrency=16)
            texts.append(as_bytes(await Router([judge]).judge(items)))
            await judge.close()
            await cache.close()
        assert server.chats == 4
    assert texts[0] == texts[1]
