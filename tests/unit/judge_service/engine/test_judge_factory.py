"""Judges that are made from settings."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.matchers import MatcherSettings
from hallujudge.judge_service.settings.judges import (
    JudgeKeys,
    JudgeSettings,
)
from hallujudge.judge_service.settings.secret import Secret

LLM: dict[str, Any] = {"llm_url": "http://127.0.0.1:1/v1", "llm_model": "m"}


def test_judges_of_the_settings() -> None:
    keys = JudgeKeys(llm=Secret("sk-1"), fallback=Secret("sk-2"))
    settings = JudgeSettings(
        **LLM, fallback_model="gpt", max_calls=0, max_cost=1.5, price_prompt=2.0,
        price_completion=8.0, llm_omit="seed, top_logprobs", llm_claims_per_call=5,
    )  # fmt: skip
    factory = JudgeFactory(settings, keys)
    router = factory.judge("router")
    assert router.name == "llm>fallback"
    first, second = factory.llm(), factory.llm("fallback")
    assert router.judges == (first, second)
    assert first.client.settings.endpoint.key == Secret("sk-1")
    assert second.client.settings.endpoint.url == "https://api.openai.com/v1"
    assert first.client.settings.sampling.omit == ("seed", "top_logprobs")
    assert second.client.budget.prices is not None
    assert first.client.budget._within is second.client.budget._within
    assert "sk-" not in repr(factory.llm().client.settings)
    signature = dict(router.identity.signature_fields())
    assert signature["judge"] == "m>gpt"
    assert "llm.claims_per_call=5" in signature["params"]


def test_matchers_are_kept_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[float] = []

    def open_matcher(settings: MatcherSettings) -> object:
        opened.append(settings.support_above)
        return object()

    monkeypatch.setattr("hallujudge.judge_service.matchers.open_matcher", open_matcher)
    factory = JudgeFactory()
    for threshold in (0.1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.1):
        factory.judge("matcher", MatcherSettings(support_above=threshold))
    assert opened == [0.1, 0.2, 0.3, 0.4, 0.5, 0.1]


def test_the_fallback_is_off_unless_it_is_set_up() -> None:
    assert JudgeFactory(JudgeSettings(**LLM)).judge("router").name == "llm"


@pytest.mark.parametrize(
    ("settings", "name", "words"),
    [
        ({}, "llm", "no llm judge is set up; set llm_url"),
        ({"llm_url": "http://h/v1"}, "llm", "no llm judge is set up"),
        ({}, "gpt", "there is no judge 'gpt'; choose one of matcher, llm, router"),
        (LLM | {"judge_order": "llm,oracle"}, "router", "judge_order names oracle"),
        (LLM | {"judge_order": ""}, "router", "no judge of it is set up"),
        (LLM | {"llm_dialect": "klingon"}, "llm", "the dialect is 'klingon'"),
        (LLM | {"llm_url": "nowhere"}, "llm", "no web address"),
        (LLM | {"judge_order": "fallback", "fallback_model": "g", "max_cost": 1.0}, "router",
         "no prices are set"),
        (LLM | {"llm_dialect": "openai", "max_cost": 1.0}, "llm", "no prices are set"),
        (LLM | {"verdict_cache": "/nonexistent/folder/c"}, "llm", "folder exists"),
    ],
)  # fmt: skip
def test_settings_that_make_no_judge(settings: dict[str, Any], name: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        JudgeFactory(JudgeSettings(**settings)).judge(name)
