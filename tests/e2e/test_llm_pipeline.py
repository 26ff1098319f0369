"""Tri-HE end to end with language models behind real HTTP: claims, verdicts, fallback, report."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.messages import expected_message

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.engine.families.tri_he import ENTRY, TriHePipeline
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Offers, Resources
from hallujudge.judge_service.engine.session import ScoringSession
from hallujudge.judge_service.errors import InvalidInputError, NotFoundError
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.judge_settings import JudgeSettings
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem

SCENE = (Triplet("man", "riding", "horse"), Triplet("horse", "is", "brown"))
TRUE, FALSE = Triplet("man", "riding", "horse"), Triplet("dog", "near", "horse")


def items() -> list[TriHeItem]:
    def item(id: str, image: str, *claims: Triplet, **fields: Any) -> TriHeItem:
        fields = {"claims": claims, "reference_triplets": SCENE} | fields
        return TriHeItem(id=id, group_id=image, question="What?", **fields)

    return [
        item("1", "a", TRUE, FALSE),
        item("2", "a", TRUE),
        item("3", "b", FALSE, FALSE),
        item("4", "b", claims=()),
        item("5", "c", TRUE, reference_triplets=None),
        item("6", "c", claims=None, response=None),
        item("7", "c", claims=None, response="x" * 600_000),
        item("8", "d", Triplet("cat", "REFUSE", "horse")),
    ]


def judge_step(_number: int, body: llm.Body) -> llm.Reply:
    if "RESPONSE" in llm.prompt_of(body):
        names = ("object1", "relation", "object2")
        claims = [dict(zip(names, claim, strict=True)) for claim in (TRUE, FALSE)]
        return llm.completion(json.dumps({"triplets": claims}))
    if "REFUSE" in llm.prompt_of(body):
        return llm.completion(None, refusal="I'd rather not.")
    if "<<<SENTENCE" in llm.prompt_of(body):
        return llm.completion("not_supported")
    return llm.by_scene_graph(0, body)


@asynccontextmanager
async def pipeline(
    options: dict[str, str], **settings: Any
) -> AsyncIterator[tuple[TriHePipeline, llm.ScriptedLlm, llm.ScriptedLlm]]:
    async with llm.ScriptedLlm(judge_step) as one, llm.ScriptedLlm(judge_step) as two:
        made: dict[str, Any] = {
            "llm.url": one.url, "llm.model": "tiny", "llm.dialect": "vllm", "fallback.url": two.url,
            "outage_seconds": 0,
        }  # fmt: skip
        factory = JudgeFactory(from_names(JudgeSettings, made | names_of(settings)))
        try:
            await factory.prepare()
            resources = Resources(lambda: factory)
            made_pipeline = ENTRY.open(ScoreSpec(metric="tri-he", options=options), resources)
            assert isinstance(made_pipeline, TriHePipeline)
            yield made_pipeline, one, two
        finally:
            await factory.close()


async def scored(
    options: dict[str, str], given: list[TriHeItem] | None = None, **settings: Any
) -> tuple[str, list[dict[str, Any]]]:
    async with pipeline(options, **settings) as (opened, _, _):
        session = ScoringSession(ScoreSpec(metric="tri-he", options=options), opened)
        results = [result.to_json() for result in await session.score(given or items())]
        return session.report().to_text(), results


@pytest.mark.parametrize("claims_per_call", [1, 20])
async def test_verdicts_scores_and_reasons(claims_per_call: int) -> None:
    text, results = await scored({"judge": "llm"}, llm_claims_per_call=claims_per_call)
    report = json.loads(text)
    assert report["scores"]["hallu_q"]["value"] == pytest.approx((0.5 + 0 + 1) / 3)
    assert report["scores"]["hallu_i"]["value"] == pytest.approx((0.25 + 1) / 2)
    assert report["scores"]["object_hallu_q"]["value"] == pytest.approx(0.5)
    assert report["coverage"]["reasons"] == {
        "NO_CLAIMS": 1, "NO_VERDICTS": 1, "REFERENCE_MISSING": 1, "RESPONSE_MISSING": 1,
        "RESPONSE_TOO_LONG": 1,
    }  # fmt: skip
    assert "judge:tiny (vllm 0.32.0)" in report["signature"]
    first = results[0]["evidence"]
    assert [claim["verdict"] for claim in first["claims"]] == ["supported", "not_supported"]
    assert first["claims"][1]["part"] == "subject"
    assert first["judging"][0]["judge"] == "llm"
    refused = results[7]["evidence"]
    assert refused["claims"][0]["reason"] == "JUDGE_REFUSED"
    assert refused["judging"][0]["declined"]["JUDGE_REFUSED"]["claims"] == 1


async def test_claims_are_taken_from_answers_by_the_model() -> None:
    answer = TriHeItem(
        id="1", group_id="a", response="A man is riding a horse near a dog.",
        reference_triplets=SCENE,
    )  # fmt: skip
    for extractor in ("llm", "sentences"):
        _, (result,) = await scored({"judge": "llm", "extractor": extractor}, [answer])
        assert result["outcome"] == "scored"
        if extractor == "sentences":
            assert result["evidence"]["extractor"] == "sentences-1"
            (claim,) = result["evidence"]["claims"]
            assert claim["verdict"] == "not_supported"
        else:
            claims = result["evidence"]["claims"]
            assert [claim["triplet"] for claim in claims] == [list(TRUE), list(FALSE)]
            start, end = claims[0]["span"]
            assert (answer.response or "")[start:end] == "man is riding a horse"
            assert result["evidence"]["extractor"].startswith("llm:tiny:extract-triplets-2@")


async def test_claims_are_taken_by_a_prompt_of_ones_own() -> None:
    answer = TriHeItem(
        id="1", group_id="a", response="A man is riding a horse near a dog.",
        reference_triplets=SCENE,
    )  # fmt: skip
    prompt = "List the claims of this answer as triplets. {{response}}"
    digest = sha256(prompt.encode()).hexdigest()
    options = {"judge": "llm", "extractor": "llm", "prompt": prompt}
    text, (result,) = await scored(options, [answer])
    assert result["evidence"]["extractor"] == f"llm:tiny:own@{digest}"
    assert f"own@{digest}" in json.loads(text)["signature"]
    assert prompt not in text
    for refused in ({**options, "prompt": "No slot."}, {**options, "extractor": "rules"}):
        with pytest.raises(InvalidInputError):
            await scored(refused, [answer])


async def test_a_rerun_from_the_cache_gives_the_same_bytes(tmp_path: Path) -> None:
    options = {"judge": "router", "extractor": "llm"}
    settings: dict[str, Any] = {
        "verdict_cache": str(tmp_path / "c"), "fallback.model": "big", "llm.url": "",
    }  # fmt: skip
    given = [items()[0], TriHeItem(id="9", response="Hi.", reference_triplets=SCENE)]
    async with llm.ScriptedLlm(judge_step) as one, llm.ScriptedLlm(judge_step) as two:
        settings |= {"llm.url": one.url, "fallback.url": two.url}
        texts = [await scored(options, given, **settings) for _ in range(2)]
        assert (one.chats, two.chats) == (3, 0)
    assert texts[0] == texts[1]


async def test_what_the_judge_refuses_goes_to_the_fallback_and_its_budget_is_kept() -> None:
    async with pipeline({"judge": "router"}, fallback_model="big", fallback_max_calls=0) as (
        made,
        _,
        two,
    ):
        results = await made.evaluate(items())
    assert two.chats == 0
    assert "JUDGE_BUDGET_EXHAUSTED" in results[7].detail


async def test_a_budget_of_zero_sends_nothing_and_reports_it() -> None:
    for judge in ("llm", "router"):
        options = {"judge": judge, "extractor": "llm"}
        async with pipeline(options, max_calls=0) as (made, one, two):
            given = TriHeItem(id="9", response="Hi.", reference_triplets=SCENE)
            results = await made.evaluate([items()[0], given])
        assert (one.chats, two.chats) == (0, 0)
        assert [result.outcome.value for result in results] == ["unscored"] * 2
        assert "0 of 0 calls made" in results[0].detail
        assert results[1].reason == "JUDGE_BUDGET_EXHAUSTED"


async def test_an_estimate_sends_nothing() -> None:
    settings: dict[str, Any] = {
        "fallback.model": "big", "fallback.price_prompt": 1.0, "fallback.price_completion": 1.0,
    }  # fmt: skip
    async with pipeline({"judge": "router"}, **settings) as (made, one, two):
        local, remote = await made.estimate(items())
        assert (one.chats, two.chats) == (0, 0)
        await made.evaluate(items())
        assert one.chats == local.calls == 3
    assert (local.judge, local.exact, local.cost_at_most) == ("llm", True, None)
    assert (remote.judge, remote.exact) == ("fallback", False)
    assert remote.cost_at_most is not None


@pytest.mark.parametrize("option", ["matcher_model", "small_model"])
@pytest.mark.parametrize("value", ["/etc", "../x", "~/m", ".", "tests", "x" * 5000, "no/model"])
def test_a_remote_caller_names_only_what_is_offered(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    options = {"judge": "llm", option: value}
    resources = Resources(offers=Offers(models=("minilm",)))
    with pytest.raises(NotFoundError, match=f"{option} names something .* it offers minilm$"):
        ENTRY.open(ScoreSpec(metric="tri-he", options=options), resources)


def test_a_threshold_out_of_range_is_named_as_a_field() -> None:
    spec = ScoreSpec(metric="tri-he", options={"keep_above": "1.5", "small_above": "2"})
    with pytest.raises(
        InvalidInputError, match=r"^the option keep_above is 1\.5; .*; the"
    ) as caught:
        ENTRY.open(spec, Resources())
    fields = {violation.field for violation in caught.value.violations}
    assert fields == {"spec.options['keep_above']", "spec.options['small_above']"}


@pytest.mark.parametrize("judge", ["hhem", "factcg", "minicheck-flan-t5"])
def test_a_remote_caller_has_only_the_small_judges_that_are_offered(judge: str) -> None:
    spec = ScoreSpec(metric="tri-he", options={"judge": judge})
    with pytest.raises(
        NotFoundError,
        match=expected_message(
            "judge_service.engine.resources:option-judge-names-something-that-this-server"
        ),
    ):
        ENTRY.open(spec, Resources(offers=Offers(models=("minilm",))))


def test_a_model_that_is_not_there_is_like_one_that_is_not_offered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    resources = Resources(offers=Offers(models=("/no/folder",)))
    said = set()
    for value in ("/no/folder", "other"):
        spec = ScoreSpec(metric="tri-he", options={"matcher_model": value})
        with pytest.raises(NotFoundError) as caught:
            ENTRY.open(spec, resources)
        said.add((str(caught.value), caught.value.reason))
    assert len(said) == 1
    assert "/no/folder" in caplog.text
