"""Judges that are made from settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.word_matchers import WordPairs, small

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.judge_service.matchers import ClaimMatcher, MatcherSettings
from hallujudge.judge_service.matchers import matcher_models as opening
from hallujudge.judge_service.matchers.model_folders import ModelFolder
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.connection import Secret
from hallujudge.judge_service.settings.judge_settings import JudgeKeys, JudgeSettings, SmallSettings
from hallujudge.metrics import Triplet, Verdict

LLM: dict[str, Any] = {"llm.url": "http://127.0.0.1:1/v1", "llm.model": "m"}


def test_judges_of_the_settings() -> None:
    keys = JudgeKeys(llm=Secret("sk-1"), fallback=Secret("sk-2"))
    given = {
        **LLM, "fallback.model": "gpt", "max_calls": 0, "max_cost": 1.5,
        "llm.price_prompt": 0.0, "llm.price_completion": 0.0,
        "fallback.price_prompt": 2.0, "fallback.price_completion": 8.0,
        "llm.omit": "seed, top_logprobs", "llm.claims_per_call": 5,
    }  # fmt: skip
    settings = from_names(JudgeSettings, given)
    factory = JudgeFactory(settings, keys)
    router = factory.judge("router")
    assert router.name == "llm>fallback"
    first, second = factory.llm(), factory.llm("fallback")
    assert router.judges == (first, second)
    assert first.client.settings.endpoint.key == Secret("sk-1")
    assert second.client.settings.endpoint.url == "https://api.openai.com/v1"
    assert first.client.settings.sampling.omit == ("seed", "top_logprobs")
    assert second.client.budget.prices is not None
    assert "sk-" not in repr(factory.llm().client.settings)
    signature = dict(router.identity.signature_fields())
    assert signature["judge"] == "m>gpt"
    assert "llm.claims_per_call=5" in signature["params"]


@pytest.mark.parametrize(
    ("settings", "senders"),
    [
        ({}, ("http", "openai")),
        ({"llm.url": "https://api.openai.com/v1", "fallback.dialect": "vllm"}, ("openai",) * 2),
        ({"fallback.url": "http://h/v1", "fallback.dialect": "vllm"}, ("http", "http")),
        ({"fallback.url": "http://h/v1"}, ("http", "openai")),
        (
            {"llm.url": "https://lab.openai.azure.com", "fallback.sender": "http"},
            ("azure", "http"),
        ),
        ({"llm.sender": "azure", "azure.entra": 1}, ("azure", "openai")),
    ],
)
def test_who_sends_to_a_judge(settings: dict[str, Any], senders: tuple[str, str]) -> None:
    factory = JudgeFactory(from_names(JudgeSettings, LLM | {"fallback.model": "gpt"} | settings))
    endpoints = [factory.llm(name).client.settings.endpoint for name in ("llm", "fallback")]
    assert tuple(endpoint.sender for endpoint in endpoints) == senders
    assert [endpoint.entra for endpoint in endpoints] == ["azure.entra" in settings, False]


def test_a_judge_may_have_several_servers() -> None:
    several = {**LLM, "llm.url": "http://gpu1:8000/v1, http://gpu2:8000/v1/"}
    chat = JudgeFactory(from_names(JudgeSettings, several)).llm().client.settings
    assert [endpoint.url for endpoint in chat.endpoints] == [
        "http://gpu1:8000/v1",
        "http://gpu2:8000/v1/",
    ]
    twice = from_names(JudgeSettings, {**several, "llm.url": "http://gpu1/v1,http://gpu1/v1/"})
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.engine.judge_factory:llm-url-names-server-twice"),
    ):
        JudgeFactory(twice).llm()


class WordEncoder:
    """An encoder that counts how often it is made and what it encodes."""

    label = "words"
    size = 2

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Any:
        import numpy as np

        self.texts += texts
        return np.array([[0.8, 0.6] if "dog" in text else [0.6, 0.8] for text in texts], "float32")


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> list[WordEncoder]:
    made: list[WordEncoder] = []

    def open_encoder(model: ModelFolder, settings: MatcherSettings) -> WordEncoder:
        made.append(WordEncoder())
        return made[-1]

    def find_model(name: str, *, allow_download: bool = False) -> ModelFolder:
        return ModelFolder(name=name, path=Path(), sha256="0" * 64, config={})

    monkeypatch.setattr(opening, "open_encoder", open_encoder)
    monkeypatch.setattr(opening, "find_model", find_model)
    return made


async def test_a_threshold_sweep_costs_one_encoding(encoders: list[WordEncoder]) -> None:
    factory = JudgeFactory()
    item = JudgeRequestItem(
        id="1",
        claims=(Triplet("dog", "on", "grass"),),
        reference_triplets=(Triplet("cat", "on", "sofa"),),
    )
    verdicts = []
    for percent in range(90, 100):
        router = factory.judge("matcher", MatcherSettings(support_above=percent / 100 + 0.005))
        ((judged,), *_) = [item.verdicts for item in await router.judge([item])]
        verdicts.append(judged.verdict)
    # The cosine of the two is 0.96.
    assert verdicts == [Verdict.SUPPORTED] * 6 + [Verdict.NOT_SUPPORTED] * 4
    assert len(encoders) == 1, "ten thresholds share one model"
    assert len(encoders[0].texts) == len(set(encoders[0].texts))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[MatcherSettings]:
    """What matchers and small judges were opened with."""
    made: list[MatcherSettings] = []

    def open_matcher(_: opening.MatcherModels, settings: MatcherSettings) -> ClaimMatcher:
        made.append(settings)
        return small(WordPairs(), "hhem")

    monkeypatch.setattr(opening.MatcherModels, "open", open_matcher)
    return made


def test_small_judges_stand_between_matcher_and_llm(opened: list[MatcherSettings]) -> None:
    order = "matcher, minicheck-roberta, hhem, llm"
    factory = JudgeFactory(
        from_names(
            JudgeSettings, {**LLM, "judge_order": order, "small.models": "hhem=/models/hhem"}
        )
    )
    router = factory.judge("router", MatcherSettings(small_above=0.7))
    assert router.name == "matcher>minicheck-roberta>hhem>llm"
    assert [settings.protocol for settings in opened] == [
        "published", "minicheck-roberta", "hhem",
    ]  # fmt: skip
    assert [settings.small_model for settings in opened] == ["", "", "/models/hhem"]
    assert {settings.small_above for settings in opened} == {0.7}


def test_an_option_names_the_model_of_one_small_judge(opened: list[MatcherSettings]) -> None:
    named = MatcherSettings(small_model="/mine")
    factory = JudgeFactory(
        JudgeSettings(judge_order="hhem,factcg", small=SmallSettings(models="hhem=/theirs"))
    )
    factory.judge("hhem", named)
    assert opened[0].small_model == "/mine"
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.engine.judge_options:has-small-judges-hhem-factcg"),
    ):
        factory.judge("router", named)


def test_models_are_kept_but_not_for_ever(encoders: list[WordEncoder]) -> None:
    factory = JudgeFactory()
    for model in ("a", "a", "b", "c", "d", "e", "e", "a"):
        factory.judge("matcher", MatcherSettings(model=model))
    assert len(encoders) == 6


async def test_the_judges_of_one_factory_share_a_budget() -> None:
    factory = JudgeFactory(
        from_names(JudgeSettings, {**LLM, "fallback.model": "gpt", "max_calls": 1})
    )
    assert await factory.llm().client.budget.reserve(1, 1) is not None
    assert await factory.llm("fallback").client.budget.reserve(1, 1) is None


def test_the_fallback_is_off_unless_it_is_set_up() -> None:
    assert JudgeFactory(from_names(JudgeSettings, LLM)).judge("router").name == "llm"


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ({}, "llm", "no llm judge is configured; set llm.url"),
        ({"llm.url": "http://h/v1"}, "llm", "llm.url is set without a model; set llm.model"),
        ({}, "gpt", "judge 'gpt' does not exist; choose from matcher, llm, router, nli, "),
        ({"small.models": "magic=/m"}, "hhem", "entry 'magic=/m'; write JUDGE=MODEL"),
        ({"small.models": "hhem"}, "hhem", "entry 'hhem'; write JUDGE=MODEL"),
        ({"judge_order": "nli,llm"} | LLM, "router", "judge nli needs the option small_model"),
        (LLM | {"judge_order": "llm,oracle"}, "router", "judge_order names oracle"),
        (LLM | {"judge_order": ""}, "router", "none of these judges is configured"),
        (LLM | {"llm.dialect": "klingon"}, "llm", "llm.dialect is 'klingon'; choose"),
        (LLM | {"llm.url": "nowhere"}, "llm", "not a web address"),
        (LLM | {"judge_order": "fallback", "fallback.model": "g", "max_cost": 1.0}, "router",
         "prices of judge 'fallback' are not set"),
        (LLM | {"max_cost": 1e-6}, "llm", "prices of judge 'llm' are not set"),
        (LLM | {"llm.price_prompt": 1.0}, "llm", "llm.price_completion is not set"),
        (LLM | {"llm.dialect": "openai", "max_cost": 1.0}, "llm", "are not set"),
    ],
)  # fmt: skip
def test_settings_that_make_no_judge(settings: dict[str, Any], name: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        JudgeFactory(from_names(JudgeSettings, settings)).judge(name)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (LLM | {"llm.url": "foo"}, "'foo' is not a web address"),
        (LLM | {"llm.url": "http://h:99999/v1"}, "'http://h:99999/v1' is not a web address"),
        (LLM | {"llm.url": "http://[::1/v1"}, r"'http://\[::1/v1' is not a web address"),
        ({"fallback.url": "foo", "fallback.model": "g"}, "'foo' is not a web address"),
        (LLM | {"llm.dialect": "klingon"}, "llm.dialect is 'klingon'"),
        ({"judge_order": "llm,oracle"}, "judge_order names oracle"),
        ({"small.models": "hhem=/m,nli"}, "small.models has the entry 'nli'"),
    ],
)
def test_a_server_refuses_such_settings_before_the_first_run(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        JudgeFactory(from_names(JudgeSettings, settings)).check()


async def test_a_cache_that_cannot_be_used_is_refused_before_the_first_call(tmp_path: Path) -> None:
    settings = from_names(JudgeSettings, {**LLM, "verdict_cache": str(tmp_path / "absent" / "c")})
    with pytest.raises(InvalidInputError, match="folder exists"):
        JudgeFactory(settings).check()
    with pytest.raises(InvalidInputError, match="folder exists"):
        await JudgeFactory(settings).prepare()
