"""Several judges in order, at scripted servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.llm_judges import CLAIMS, EXPECTED, as_bytes, item, judge_of, shown
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges.several_judges import Router
from hallujudge.judge_service.llm.budget import Budget
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.verdict_cache import VerdictCache


async def test_the_fallback_is_asked_what_the_first_could_not_answer() -> None:
    def first(_number: int, body: llm.Body) -> llm.Reply:
        claim = llm.claims_of(body)[0]
        return llm.completion("hm") if claim[0] == "dog" else llm.by_scene_graph(0, body)

    async with llm.ScriptedLlm(first) as one, llm.ScriptedLlm() as two:
        router = Router([judge_of(one), judge_of(two, "fallback")])
        (judged,) = await router.judge([item()])
        await router.close()
    assert shown(judged) == EXPECTED
    assert [v.judge for v in judged.verdicts] == ["llm", "fallback", "llm", "llm"]
    assert two.chats == 1
    first_asked, second_asked = judged.judging()
    assert first_asked["judge"] == "llm"
    assert first_asked["answered"] == 3
    assert first_asked["declined"] == {
        "REPLY_OUT_OF_CHOICE": {
            "claims": 1,
            "detail": expected_message(
                "metrics.pope.question_builder:hm-is-not-one-of-supported-object"
            ),
        }
    }
    assert (second_asked["judge"], second_asked["answered"]) == ("fallback", 1)
    assert second_asked["prompt_tokens"] == 100


async def test_a_rerun_after_a_fallback_makes_no_call_and_gives_the_same_bytes(
    tmp_path: Path,
) -> None:
    broken = True

    def first(number: int, body: llm.Body) -> llm.Reply:
        said = llm.claims_of(body)
        if broken and len(said) > 1:
            answers = {claim[0]: "supported" for claim in said[:-1]}
            return llm.completion(json.dumps(answers | {said[-1][0]: "unsure"}))
        return llm.error(500) if broken else llm.by_scene_graph(number, body)

    async with llm.ScriptedLlm(first) as one, llm.ScriptedLlm() as two:
        cache = VerdictCache(tmp_path / "c")
        texts = []
        for _ in range(2):
            router = Router(
                [
                    judge_of(one, cache=cache, claims_per_call=20),
                    judge_of(two, "fallback", cache=cache, claims_per_call=20),
                ]
            )
            texts.append(as_bytes(await router.judge([item(), item(CLAIMS[0], id="2")])))
            await router.close()
            broken = False
        await cache.close()
    assert texts[0] == texts[1]
    assert (one.chats, two.chats) == (3, 2)


async def test_claims_without_a_verdict_from_any_judge() -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(500))) as server:
        budget = Budget(max_calls=0)
        router = Router([judge_of(server), judge_of(server, "fallback", budget=budget)])
        (judged,) = await router.judge([item(CLAIMS[0])])
        await router.close()
    (verdict,) = judged.verdicts
    assert verdict.reason == "JUDGE_BUDGET_EXHAUSTED"
    assert expected_message("metrics.framework.results:llm-judge-server-error") in verdict.detail
    assert (
        expected_message("metrics.framework.results:fallback-judge-budget-exhausted-of-calls-made")
        in verdict.detail
    )


@pytest.mark.parametrize(
    "reply",
    [
        llm.error(404, "no such model"),
        llm.error(403, "not allowed"),
        llm.error(429, "slow down"),
        llm.error(503, "starting"),
        llm.completion("supported", model="another"),
    ],
)
async def test_a_judge_that_gives_no_answer_leaves_every_claim_to_the_fallback(
    reply: llm.Reply,
) -> None:
    retry = RetryPolicy(attempts=2)
    async with llm.ScriptedLlm(llm.always(reply)) as one, llm.ScriptedLlm() as two:
        router = Router([judge_of(one, retry=retry), judge_of(two, "fallback")])
        many = [item(id=str(n)) for n in range(5)]
        results = await router.judge(many)
        await router.close()
    assert [shown(result) for result in results] == [EXPECTED] * 5
    assert {v.judge for result in results for v in result.verdicts} == {"fallback"}


async def test_a_rejected_key_ends_a_run_of_the_router_too() -> None:
    rejected = llm.always(llm.error(401, "bad key"))
    async with llm.ScriptedLlm(rejected) as one, llm.ScriptedLlm() as two:
        router = Router([judge_of(one), judge_of(two, "fallback")])
        with pytest.raises(InvalidInputError, match="HALLUJUDGE_LLM_API_KEY"):
            await router.judge([item()])
        await router.close()
    assert two.chats == 0
