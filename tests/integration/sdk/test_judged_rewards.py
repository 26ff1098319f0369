"""Rewards by Tri-HE: with a matcher, and judged by a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.threads import until
from support.word_matchers import WordEncoder

from hallujudge.judge_service.matchers import matcher_models as opening
from hallujudge.judge_service.matchers.model_folders import ModelFolder
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.sdk.rewards import Reward

GRAPH = [["man", "riding", "horse"], ["dog", "under", "tree"]]
NOUNS = ["cat", "bus", "boat", "girl", "cup", "ball", "bird", "bed", "chair"]
# Answers with a claim each, all different.
ANSWERS = [f"A {one} is under a {other}." for one, other in permutations(NOUNS, 2)][:64]


class CountingEncoder(WordEncoder):
    """An encoder that counts how often it is called."""

    calls = 0

    def encode(self, texts: Sequence[str]) -> Any:
        """Return the vectors."""
        self.calls += 1
        return super().encode(texts)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> CountingEncoder:
    made = CountingEncoder()
    folder = ModelFolder(name="words", path=Path(), sha256="0" * 64, config={})
    monkeypatch.setattr(opening, "open_encoder", lambda *_: made)
    monkeypatch.setattr(opening, "find_model", lambda *_, **__: folder)
    return made


def test_scene_graphs_are_encoded_once_for_all_calls(encoder: CountingEncoder) -> None:
    reward = Reward("tri-he", "hallu_q", options={"judge": "matcher"})
    reward(ANSWERS, [GRAPH] * len(ANSWERS))
    assert encoder.calls <= 3, "claims with references, then names in them: for all answers at once"
    first = list(encoder.asked)
    assert len(first) == len(set(first)), "no text is encoded twice"
    assert any("horse" in text for text in first)
    found = reward(["A man is riding a horse.", *ANSWERS], [GRAPH] * (len(ANSWERS) + 1))
    assert found[0] == 1.0
    fresh = encoder.asked[len(first) :]
    assert not set(fresh) & set(first), "vectors of the scene graph are kept between calls"
    calls = encoder.calls
    assert reward(ANSWERS[:3], [GRAPH] * 3) == found[1:4]
    assert encoder.calls == calls, "nothing new to encode"
    reward.scorer.close()


def judged(url: str, **settings: object) -> Reward:
    return Reward(
        "tri-he",
        "hallu_q",
        options={"judge": "llm"},
        settings={"llm.url": url, "llm.model": "m", **names_of(settings)},
    )


async def test_all_claims_of_a_batch_are_judged_at_once() -> None:
    held = asyncio.Event()
    count = 24

    def step(number: int, body: llm.Body) -> llm.Reply:
        said = llm.by_scene_graph(number, body)
        return llm.Reply(body=said.body, headers=said.headers, hold=held)

    async with llm.ScriptedLlm(step) as model:
        reward = await asyncio.to_thread(judged, model.url, llm_max_concurrency=count)
        call = asyncio.create_task(asyncio.to_thread(reward, ANSWERS[:count], [GRAPH] * count))
        await until(lambda: model.in_flight == count)
        held.set()
        assert await call == [0.0] * count
        await asyncio.to_thread(reward.scorer.close)


async def test_a_budget_leaves_the_rest_without_a_reward(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with llm.ScriptedLlm() as model:
        reward = await asyncio.to_thread(judged, model.url, max_calls=5)
        found = await asyncio.to_thread(reward, ANSWERS[:8], [GRAPH] * 8)
        assert (found.count(0.0), found.count(None)) == (5, 3)
        [said] = [one.getMessage() for one in caplog.records if "can't score" in one.getMessage()]
        assert "3 of 8 responses" in said
        assert "JUDGE_BUDGET_EXHAUSTED" in said
        scored = await asyncio.to_thread(reward.scorer, ANSWERS[8:10], [GRAPH] * 2)
        assert [one.reason for one in scored] == ["NO_VERDICTS"] * 2
        assert "JUDGE_BUDGET_EXHAUSTED" in scored[0].detail
        assert model.chats == 5, "the budget is of all calls of the reward"
        await asyncio.to_thread(reward.scorer.close)
