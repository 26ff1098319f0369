"""Choices as probabilities without text, over real HTTP, with the released servers' shapes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import pytest
from support import scripted_llm as llm
from support.llm_judges import CLAIMS, EXPECTED, item, judge_of, shown
from support.probability_servers import ScoringServer, by_scene, decisions

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges.choice_judge import ChoiceJudge
from hallujudge.judge_service.judges.judge_checks import check_endpoint, retry_claims
from hallujudge.judge_service.judges.llm_judge import estimate_judge
from hallujudge.judge_service.judges.questions import choice_question
from hallujudge.judge_service.llm.http import SenderName
from hallujudge.judge_service.llm.prompt_templates import own_template
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.judge_settings import JudgeSettings
from hallujudge.metrics.framework.claims import Sentence

# 0.8 and three times 0.04 are 0.92 of the probability.
SURE = {"margin": round(math.log(20), 6), "score": round(0.8 / 0.92, 6)}


def decider(**options: Any) -> llm.ScriptedLlm:
    server = llm.ScriptedLlm()
    server.probabilities = {"decisions": decisions(by_scene, **options)}
    return server


@pytest.fixture(params=["http", "openai"])
def sender(request: pytest.FixtureRequest) -> SenderName:
    return cast("SenderName", request.param)


async def test_scoring_reads_each_claims_probabilities_and_writes_no_text() -> None:
    async with ScoringServer(by_scene) as server:
        judge = judge_of(server, api="scoring", dialect="vllm")
        assert judge.reports_probabilities
        estimate = await estimate_judge(judge, [item()])
        (judged,) = await judge.judge([item()])
        await judge.close()
    assert shown(judged) == EXPECTED
    first, second, *_ = judged.verdicts
    assert (round(first.margin or 0, 6), first.score) == (SURE["margin"], SURE["score"])
    assert second.score == round(0.04 / 0.92, 6)
    # One request for each choice, all claims in each; only what the claims differ in is repeated.
    scored = [body for path, body in server.posted if path == "/generative_scoring"]
    assert [len(body["items"]) for body in scored] == [4] * 4
    assert len({tuple(body["label_token_ids"]) for body in scored}) == 4
    assert all(len(body["query"]) > 9 * max(map(len, body["items"])) for body in scored)
    assert all(prompt.endswith("CLAIM>>><|eot_id|><|assistant|>\n\n") for prompt in server.prompts)
    assert "A = supported, B = object1, C = object2, D = relation." in server.prompts[0]
    (asked,) = judged.judging()
    sent = sum(len(b["query"]) + len(i) for b in scored for i in b["items"])
    assert (asked["calls"], asked["prompt_tokens"], asked["answered"]) == (1, sent, 4)
    assert (estimate.calls, estimate.prompt_tokens) == (1, sent)
    assert server.chats == 0


async def test_scoring_needs_letters_of_one_token_and_says_so_at_the_start() -> None:
    async with ScoringServer(by_scene, letters={"C": [7, 8]}) as server:
        judge = judge_of(server, api="scoring")
        with pytest.raises(InvalidInputError, match=r"'C' is not one token .* set llm.api to chat"):
            await judge.prepare()
        await judge.close()
    assert "/generative_scoring" not in server.paths


async def test_scoring_at_a_server_that_is_not_vllm_ends_at_once() -> None:
    async with llm.ScriptedLlm() as server:
        # llama-server's route of the same name takes other requests.
        server.probabilities = {"tokenize": llm.always(llm.as_json({"tokens": [496]}))}
        judge = judge_of(server, api="scoring")
        with pytest.raises(InvalidInputError, match=r"not vLLM's.*set llm.api to chat"):
            await judge.judge([item()])
        await judge.close()


async def test_a_prompt_that_vllm_would_cut_is_unscored_alone() -> None:
    long = Sentence("word " * 3000)
    async with ScoringServer(lambda _text: (0.9, 0.05), most=2000) as server:
        judge = judge_of(server, api="scoring")
        (judged,) = await judge.judge([item(long, Sentence("A man rides."))])
        await judge.close()
    first, second = judged.verdicts
    assert (first.verdict.value, first.reason) == ("unscored", "PROMPT_TOO_LONG")
    assert "and the model reads 1999" in first.detail
    assert second.verdict.value == "supported"


async def test_choices_that_the_model_would_not_make_are_no_verdict() -> None:
    async with ScoringServer(lambda _text: (0.002, 0.001, 0.0, 0.0)) as server:
        judge = judge_of(server, api="scoring")
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    (verdict,) = judged.verdicts
    assert (verdict.verdict.value, verdict.reason) == ("unscored", "REPLY_OUT_OF_CHOICE")
    assert "0.003 of the probability" in verdict.detail


async def test_ties_go_to_neither_choice() -> None:
    async with ScoringServer(lambda _text: (0.4, 0.1, 0.4, 0.05)) as server:
        judge = judge_of(server, api="scoring")
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    (verdict,) = judged.verdicts
    assert (verdict.verdict.value, verdict.reason) == ("unscored", "CHOICES_TIED")
    assert verdict.detail == "supported and object2 are equally likely"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"data": []}, "JUDGE_BAD_REPLY"),
        ({"data": [{"index": 1, "score": 0.5}]}, "JUDGE_BAD_REPLY"),
        ({"data": [{"index": 0, "score": "high"}]}, "JUDGE_BAD_REPLY"),
        ({"data": [{"index": 0, "score": 1.5}]}, "JUDGE_BAD_REPLY"),
        ({"scores": []}, "JUDGE_NOT_THE_API"),
    ],
)
async def test_odd_replies_of_scoring_are_never_guessed(data: llm.Body, reason: str) -> None:
    async with ScoringServer(by_scene) as server:
        server.probabilities["generative_scoring"] = llm.always(llm.as_json(data))
        judge = judge_of(server, api="scoring")
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    assert [verdict.reason for verdict in judged.verdicts] == [reason]


async def test_a_server_without_scoring_is_said_to_have_none() -> None:
    async with ScoringServer(by_scene) as server:
        # FastAPI's answer to an unknown path.
        missing = llm.as_json({"detail": "Not Found"}, 404)
        server.probabilities["generative_scoring"] = llm.always(missing)
        judge = judge_of(server, api="scoring")
        with pytest.raises(InvalidInputError, match="/generative_scoring, which vLLM has"):
            await judge.judge([item()])
        await judge.close()


async def test_decisions_are_one_request_an_image_and_refusals_are_unscored(
    sender: SenderName,
) -> None:
    async with decider(refuses=lambda text: '"hat"' in text) as server:
        judge = judge_of(server, api="decisions", dialect="openai", sender=sender)
        (judged,) = await judge.judge([item(*CLAIMS, Sentence("A man rides a horse."))])
        await judge.close()
    assert [v.verdict.value for v in judged.verdicts[:2]] == ["supported", "not_supported"]
    refused = judged.verdicts[2]
    assert (refused.verdict.value, refused.reason) == ("unscored", "JUDGE_REFUSED")
    assert refused.detail == "the model declined to answer"
    first = judged.verdicts[0]
    assert (round(first.margin or 0, 6), first.score) == (SURE["margin"], SURE["score"])
    bodies = sorted((body for _, body in server.posted), key=lambda b: -len(b["questions"]))
    assert [len(body["questions"]) for body in bodies] == [4, 1]
    question = bodies[0]["questions"][0]
    assert [choice["value"] for choice in question["choices"]] == [
        "supported", "object1", "object2", "relation",
    ]  # fmt: skip
    assert question["instructions"].endswith('<<<CLAIM\n["man", "riding", "horse"]\nCLAIM>>>')
    assert "SCENE>>>" in bodies[0]["input"]
    assert "riding" not in bodies[0]["input"].partition("<<<OBJECTS")[2]
    (asked,) = judged.judging()
    assert (asked["calls"], asked["prompt_tokens"], asked["cached_tokens"]) == (2, 600, 200)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"type": "choice", "choice": "maybe", "probabilities": []}, "REPLY_OUT_OF_CHOICE"),
        ({"type": "predicate", "probability": 0.9}, "REPLY_OUT_OF_CHOICE"),
        ({"type": "choice", "choice": "supported", "probabilities": []}, "JUDGE_BAD_REPLY"),
        ({"type": "refusal", "name": "2"}, "JUDGE_BAD_REPLY"),
        ({"choice": "supported"}, "JUDGE_BAD_REPLY"),
        (7, "JUDGE_BAD_REPLY"),
    ],
)
async def test_odd_decisions_are_never_guessed(answer: Any, reason: str) -> None:
    server = llm.ScriptedLlm()
    server.probabilities = {"decisions": llm.always(llm.as_json({"answers": [answer]}))}
    async with server:
        judge = judge_of(server, api="decisions")
        (judged,) = await judge.judge([item(CLAIMS[0])])
        await judge.close()
    assert [verdict.reason for verdict in judged.verdicts] == [reason]


async def test_protocols_share_no_verdicts_and_each_finds_its_own_again(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "verdicts.sqlite")
    calls = []
    async with ScoringServer(by_scene) as server:
        server.probabilities["decisions"] = decisions(by_scene)
        for api in ("chat", "scoring", "decisions") * 2:
            judge = judge_of(server, api=api, dialect="vllm", cache=cache)
            (judged,) = await judge.judge([item()])
            assert shown(judged) == EXPECTED
            assert f"api={api}" in judge.identity.signature
            calls.append(judge.client.statistics.calls)
            await judge.close()
    await cache.close()
    assert calls == [4, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("api", ["scoring", "decisions"])
async def test_other_questions_with_choices_are_asked_in_the_same_way(api: str) -> None:
    template = own_template("--- system ---\nGrade.\n--- user ---\n{{answer}}", ("answer",))
    question = choice_question(template, {"answer": "A cat."}, ("correct", "incorrect", "unclear"))
    async with ScoringServer(lambda _text: (0.2, 0.7, 0.1)) as server:
        server.probabilities["decisions"] = decisions(lambda _text: (0.2, 0.7, 0.1))
        judge = judge_of(server, api=api)
        (chosen,) = await ChoiceJudge([judge], [template]).choose([question])
        await judge.close()
    assert (chosen.choice, chosen.probabilities) == ("incorrect", (0.2, 0.7, 0.1))


async def test_doctor_and_card_try_the_chosen_protocol() -> None:
    async with ScoringServer(by_scene) as server:
        server.model = "model-llm"
        judge = judge_of(server, api="scoring", dialect="vllm")
        checks = {check.name: check for check in await check_endpoint(judge)}
        retrials = await retry_claims(judge, [item()])
        await judge.close()
    assert all(check.ok for check in checks.values()), checks
    assert checks["probabilities"].detail == "0.920 for all choices together"
    assert server.chats == 0
    assert [retrial.change for retrial in retrials] == [
        "repetition", "rewording 1", "rewording 2", "rewording 3", "reversed order",
    ]  # fmt: skip
    assert {(retrial.claims, retrial.flips) for retrial in retrials} == {(4, 0)}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch.requests": "r.jsonl"}, "batch files hold requests of chat; set llm.api to chat"),
        ({"llm.sender": "openai"}, "llm.api to decisions or chat, or llm.sender to http"),
    ],
)
def test_protocols_that_cannot_be_asked_are_refused(
    settings: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = from_names(
        JudgeSettings,
        {"llm.url": "http://h/v1", "llm.model": "m", "llm.api": "scoring", **settings},
    )
    with pytest.raises(InvalidInputError, match=said):
        JudgeFactory(found).llm()
