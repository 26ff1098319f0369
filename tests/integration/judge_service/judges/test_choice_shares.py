"""How likely the choices are without a constraint, at servers that mask as vLLM does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.llm_judges import CLAIMS, SCENE, as_bytes, judge_of
from support.probability_servers import ScoringServer

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.judges.choice_judge import ChoiceJudge
from hallujudge.judge_service.judges.judge_calls import share_of
from hallujudge.judge_service.judges.judge_checks import check_endpoint
from hallujudge.judge_service.judges.judge_rules import Escalation, PanelRule, ShareRule
from hallujudge.judge_service.judges.llm_judge import estimate_judge
from hallujudge.judge_service.judges.questions import TRIPLET_CHOICES, Question
from hallujudge.judge_service.judges.several_judges import Panel, Router
from hallujudge.judge_service.llm.budget import Budget, Prices
from hallujudge.judge_service.llm.chat import Sampling
from hallujudge.judge_service.llm.chat_replies import ChatReply, TokenChoice
from hallujudge.judge_service.llm.prompt_templates import load_template
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.metrics.framework.claims import Triplet, choice_share_notes
from hallujudge.metrics.framework.report import JudgingCounts

RAMBLING = {"The": 0.9, "Well": 0.05, "sup": 0.03, "object": 0.01, "relation": 0.01}
CLEAR = {"sup": 0.9, "object": 0.05, "The": 0.05}


def item(rule: ShareRule | None, *claims: Triplet) -> JudgeRequestItem:
    return JudgeRequestItem(
        id="1", claims=claims or CLAIMS, reference_triplets=SCENE, measuring=rule
    )


def free(server: llm.ScriptedLlm) -> list[llm.Body]:
    return [body for body in server.requests if "structured_outputs" not in body]


@pytest.mark.parametrize("claims_per_call", [1, 4])
async def test_a_judge_that_would_ramble_has_margins_as_any_other(claims_per_call: int) -> None:
    step = llm.drawn_from(RAMBLING)
    if claims_per_call > 1:
        step = keyed_or(step)
    async with llm.ScriptedLlm(step) as server:
        judge = judge_of(server, dialect="vllm", claims_per_call=claims_per_call)
        (judged,) = await judge.judge([item(ShareRule(claims=4))])
        await judge.close()
    assert {verdict.verdict.value for verdict in judged.verdicts} == {"supported"}
    assert all((verdict.margin or 0) > 1 for verdict in judged.verdicts)
    (part,) = judged.judging()
    assert part["choice_shares"] == [0.05] * 4
    # Each is a call for one token, without a constraint, that is counted as others are.
    assert [body["max_tokens"] for body in free(server)] == [1] * 4
    assert part["calls"] == server.chats == 4 + 4 // claims_per_call


def keyed_or(other: llm.Step) -> llm.Step:
    """Reply to constrained requests about several claims with margins, and to others as given."""

    def step(number: int, body: llm.Body) -> llm.Reply:
        if "regex" not in body.get("structured_outputs", {}):
            return other(number, body)
        places = []
        for n, mark in enumerate(("{", ",", ",", ","), 1):
            places.append({f'{mark}"{n}":"': 0.0})
            places += [{"supported": -0.1, "relation": -2.4}, {'"': 0.0}]
        places.append({"}": 0.0})
        text = "".join(next(iter(place)) for place in places)
        return llm.completion(text, logprobs={"content": [llm.place(each) for each in places]})

    return step


async def test_the_mean_is_reported_and_a_low_one_warned_of() -> None:
    counts = JudgingCounts()
    part = {"judge": "llm", "answered": 2, "declined": {}, "calls": 2, "prompt_tokens": 1}
    part |= {"cached_tokens": 0, "completion_tokens": 1, "reused": 0, "cost": None}
    counts.add([part | {"choice_shares": [0.1, 0.3]}, part | {"judge": "fallback"}])
    again = JudgingCounts.of(counts.to_json())
    again.add([part | {"choice_shares": [0.2]}])
    one, other = again.shares()
    assert one.to_json()["choice_share"] == {"mean": 0.2, "n": 3}
    assert "choice_share" not in other.to_json()
    (note,) = choice_share_notes((each.judge, each.choice_share) for each in again.shares())
    assert "If nothing kept llm from other words" in note
    assert "a probability of 0.2 only (choice_share, 3 claims)" in note


async def test_claims_below_the_least_share_are_unscored_again_without_a_call(
    tmp_path: Path,
) -> None:
    def of_men(number: int, body: llm.Body) -> llm.Reply:
        sure = llm.claims_of(body)[0][0] == "man"
        return llm.drawn_from(CLEAR if sure else RAMBLING)(number, body)

    sure = llm.ScriptedLlm(llm.drawn_from(CLEAR))
    async with llm.ScriptedLlm(of_men) as server, sure as second:
        cache = VerdictCache(tmp_path / "c")

        async def run(least: float, *fallback: str) -> tuple[list[tuple[str, str]], bytes]:
            judges = [judge_of(server, cache=cache, dialect="vllm")]
            judges += [judge_of(second, name, cache=cache, dialect="vllm") for name in fallback]
            router = Router(judges, measuring=ShareRule(least=least))
            found = await router.judge([item(router.measuring)])
            await router.close()
            return [(v.judge, v.reason) for v in found[0].verdicts], as_bytes(found)

        alone = await run(0.5)
        assert [reason for _, reason in alone[0]] == ["", "CHOICES_UNLIKELY", "", ""]
        assert server.chats == 8
        assert await run(0.5) == alone
        both = await run(0.5, "fallback")
        assert [judge for judge, _ in both[0]] == ["llm", "fallback", "llm", "llm"]
        assert await run(0.5, "fallback") == both
        assert (server.chats, second.chats) == (8, 2)
        # What the second judge once said does not count where the first judge's share is enough.
        assert [judge for judge, _ in (await run(0.01, "fallback"))[0]] == ["llm"] * 4
        assert (server.chats, second.chats) == (8, 2)
        await cache.close()


async def test_measuring_is_paid_for_estimated_and_limited() -> None:
    async with llm.ScriptedLlm(llm.drawn_from(CLEAR)) as server:
        budget = Budget(max_calls=6, prices=Prices(prompt=1e6, completion=1e6))
        judge = judge_of(server, dialect="vllm", budget=budget)
        asked = item(ShareRule(claims=4))
        estimate = await estimate_judge(judge, [asked])
        assert (estimate.calls, estimate.measuring and estimate.measuring.calls) == (4, 4)
        (judged,) = await judge.judge([asked])
        await judge.close()
    (part,) = judged.judging()
    assert (server.chats, part["calls"], part["answered"]) == (6, 6, part["answered"])
    assert part["cost"] == pytest.approx(budget.spent)


async def test_a_share_that_cannot_be_measured_leaves_out_claims_only_where_one_is_needed() -> None:
    def step(number: int, body: llm.Body) -> llm.Reply:
        constrained = "structured_outputs" in body
        return llm.drawn_from(CLEAR)(number, body) if constrained else llm.error(400, "no")

    async with llm.ScriptedLlm(step) as server:
        for least, reason in ((0.0, ""), (0.5, "JUDGE_REQUEST_REFUSED")):
            judge = judge_of(server, dialect="vllm")
            (judged,) = await judge.judge([item(ShareRule(claims=4, least=least))])
            await judge.close()
            assert {verdict.reason for verdict in judged.verdicts} == {reason}
            assert "choice_shares" not in judged.judging()[0]
    async with llm.ScriptedLlm() as silent:  # it reports no log-probabilities
        judge = judge_of(silent, dialect="vllm")
        (judged,) = await judge.judge([item(ShareRule(claims=4, least=0.5))])
        await judge.close()
    assert {verdict.reason for verdict in judged.verdicts} == {"CHOICES_UNLIKELY"}
    assert silent.chats == 4


async def test_a_judge_whose_share_cannot_be_told_is_left_as_it_is() -> None:
    async with llm.ScriptedLlm() as server:
        judge = judge_of(server, dialect="vllm", sampling=Sampling(top_logprobs=0))
        (judged,) = await judge.judge([item(ShareRule(claims=4, least=0.5))])
        await judge.close()
    assert {verdict.reason for verdict in judged.verdicts} == {""}
    assert server.chats == 4


async def test_scoring_tells_the_share_of_every_claim_without_another_call() -> None:
    async with ScoringServer(lambda _text: (0.2, 0.1, 0.05, 0.05)) as server:
        judge = judge_of(server, api="scoring", dialect="vllm")
        (judged,) = await judge.judge([item(ShareRule(claims=4_000, least=0.0))])
        (left,) = await judge.judge([item(ShareRule(least=0.5))])
        await judge.close()
    assert judged.judging()[0]["choice_shares"] == [0.4] * 4
    assert {verdict.reason for verdict in left.verdicts} == {"CHOICES_UNLIKELY"}
    assert server.chats == 0


async def test_answers_and_panels_are_measured_too(tmp_path: Path) -> None:
    template = load_template("judge_claim")
    question = Question(
        template=template,
        messages=[{"role": "user", "content": "Yes or no?"}],
        claims=(0,),
        choices=("yes", "no"),
        keyed=False,
    )
    async with llm.ScriptedLlm(llm.drawn_from({"The": 0.8, "yes": 0.15, "no": 0.05})) as server:
        cache = VerdictCache(tmp_path / "c")
        for escalation in (None, Escalation(below=0.1)):
            for least, reason in ((0.0, ""), (0.5, "CHOICES_UNLIKELY")):
                judge = ChoiceJudge(
                    [judge_of(server, cache=cache, dialect="vllm")],
                    [template],
                    escalation,
                    ShareRule(claims=1, least=least),
                )
                (chosen,) = await judge.choose([question])
                await judge.close()
                assert chosen.reason == reason
                assert chosen.judging()[0]["choice_shares"] == [0.2]
                assert chosen.judging()[0]["calls"] == 2
        assert server.chats == 2
        await cache.close()
    async with llm.ScriptedLlm(llm.drawn_from(RAMBLING)) as server:
        one, two = judge_of(server, dialect="vllm"), judge_of(server, "fallback", dialect="vllm")
        panel = Panel([one, two], PanelRule(members=("llm", "fallback")), ShareRule(least=0.5))
        (judged,) = await panel.judge([item(panel.measuring, CLAIMS[0])])
        await panel.close()
    assert judged.verdicts[0].reason == "CHOICES_UNLIKELY"
    assert [part["choice_shares"] for part in judged.judging()] == [[0.05], [0.05]]


def test_a_part_is_drawn_by_the_prompt() -> None:
    def drawn(rule: ShareRule, count: int) -> list[int]:
        return [n for n in range(count) if rule.draws(asked(n))]

    def asked(number: int) -> Question:
        return Question(
            template=load_template("judge_claim"),
            messages=[{"role": "user", "content": f"claim {number}"}],
            claims=(number,),
            choices=TRIPLET_CHOICES,
            keyed=False,
        )

    assert drawn(ShareRule(claims=40), 40) == list(range(40))
    assert 50 <= len(drawn(ShareRule(claims=580), 580)) <= 100
    many = drawn(ShareRule(claims=10_000), 10_000)
    assert 430 <= len(many) <= 570
    assert many == drawn(ShareRule(), 10_000) == drawn(ShareRule(claims=50_000), 10_000)
    assert drawn(ShareRule(claims=10_000, least=0.1), 100) == list(range(100))


@pytest.mark.parametrize(
    ("tokens", "share"),
    [
        ({"sup": 0.6, "The": 0.4}, 0.6),
        ({" supported": 0.5, '"Supported': 0.25, "relations": 0.25}, 0.75),
        ({'"': 0.5, "": 0.25, "object1,": 0.25}, 0.25),
        ({"<think>": 1.0}, 0.0),
    ],
)
def test_the_share_is_that_of_tokens_that_begin_a_choice(
    tokens: dict[str, float], share: float
) -> None:
    top = tuple((text, math.log(part)) for text, part in tokens.items())
    reply = ChatReply(content="x", tokens=(TokenChoice(*top[0], top),))
    assert share_of(reply, TRIPLET_CHOICES) == pytest.approx(share)
    assert share_of(ChatReply(content="x"), TRIPLET_CHOICES) is None
    thinking = ChatReply(content="", thought="The", tokens=reply.tokens)
    assert share_of(thinking, TRIPLET_CHOICES) is None


@pytest.mark.parametrize("least", ["much", "-0.1", "1.5", "nan"])
def test_a_least_share_is_a_share(least: str) -> None:
    with pytest.raises(InvalidInputError, match=r"min_choice_share is .* from 0 to 1"):
        ShareRule.of(least, 0)


@pytest.mark.parametrize(("said", "ok"), [(CLEAR, True), (RAMBLING, False)])
async def test_doctor_always_measures_the_share(said: dict[str, float], ok: bool) -> None:
    async with llm.ScriptedLlm(llm.drawn_from(said)) as server:
        judge = judge_of(server, dialect="vllm")
        checks = {check.name: check for check in await check_endpoint(judge)}
        await judge.close()
    assert checks["verdict"].ok
    assert checks["log-probabilities"].ok is ok
    assert f"choice_share {0.95 if ok else 0.05:.3f}" in checks["log-probabilities"].detail


def before_the_constraint(_number: int, body: llm.Body) -> llm.Reply:
    """Choose as llama-server does, whose lists of tokens know no constraint."""
    listed = {"The": -0.7, "I": -1.2, "A": -2.0}
    if body["max_tokens"] == 1:
        return llm.completion("The", finish="length", logprobs={"content": [llm.place(listed)]})
    content = '{"verdict":"supported"}'
    tokens = [
        llm.place({'{"verdict":"': -9.0, **listed}),
        {**llm.place({"supported": -9.0}), "top_logprobs": llm.place(listed)["top_logprobs"]},
        llm.place({'"}': -0.1}),
    ]
    return llm.completion(content, logprobs={"content": tokens})


async def test_the_share_is_measured_where_no_choice_is_listed(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    async with llm.ScriptedLlm(before_the_constraint) as server:
        judge = judge_of(server, cache=cache)
        asked = item(ShareRule(claims=4))
        (judged,) = await judge.judge([asked])
        assert {claim.margin for claim in judged.verdicts} == {None}
        assert {claim.score for claim in judged.verdicts} == {None}
        assert judged.judging()[0]["choice_shares"] == [0.0] * 4
        calls = server.chats
        await judge.close()
        again = judge_of(server, cache=cache)
        (known,) = await again.recall([asked])
        assert known.shares == (0.0,) * 4
        strict = item(ShareRule(claims=4, least=0.5))
        (judged,) = await again.judge([strict])
        assert {claim.reason for claim in judged.verdicts} == {"CHOICES_UNLIKELY"}
        assert server.chats == calls
        checks = {check.name: check for check in await check_endpoint(again)}
        await again.close()
    await cache.close()
    assert checks["log-probabilities"].ok is False
    assert "verdicts have no margin" in checks["log-probabilities"].detail
    assert "choice_share 0.000" in checks["log-probabilities"].detail


async def test_signatures_say_whether_margins_are_masked_and_which_share_is_needed() -> None:
    async with llm.ScriptedLlm() as server:

        def parameters(rule: ShareRule, **options: Any) -> dict[str, str]:
            return dict(Router([judge_of(server, **options)], None, rule).identity.parameters)

        assert parameters(ShareRule())["masked"] == "yes"
        assert parameters(ShareRule(), constraint="none")["masked"] == "no"
        assert "masked" not in parameters(ShareRule(), api="decisions")
        assert "min_choice_share" not in parameters(ShareRule(claims=9))
        assert parameters(ShareRule(least=0.25))["min_choice_share"] == "0.25"
