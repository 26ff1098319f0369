"""Estimates: what would be sent, counted without sending it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.llm_judges import CLAIMS, item, judge_of
from support.messages import expected_message

from hallujudge.judge_service.judges.llm_judge import estimate_judge
from hallujudge.judge_service.llm.budget import Prices
from hallujudge.judge_service.llm.estimate import approximate_counter
from hallujudge.judge_service.llm.verdict_cache import VerdictCache


async def test_an_estimate_counts_what_would_be_sent_and_sends_no_chat(tmp_path: Path) -> None:
    async with llm.ScriptedLlm() as server:
        cache = VerdictCache(tmp_path / "c")
        judge = judge_of(server, cache=cache, dialect="vllm")
        await judge.judge([item(CLAIMS[0])])
        items = [item(), item(CLAIMS[1], id="2")]
        seen = await estimate_judge(judge, items, prices=Prices(prompt=1, completion=2))
        rough = await estimate_judge(judge, items, approximate_counter())
        assert server.chats == 1
        await judge.judge(items)
        await judge.close()
        await cache.close()
        assert server.chats == 1 + seen.calls
    assert (seen.calls, seen.cached, seen.repeated) == (3, 1, 1)
    assert (seen.prompt_tokens, seen.exact) == (3 * 42, True)
    assert seen.cost_at_most == pytest.approx(
        (seen.prompt_tokens + 2 * seen.most_completion_tokens) / 1e6
    )
    assert (rough.exact, rough.counter) == (
        False,
        expected_message("judge_service.llm.estimate:approximation-four-bytes-token"),
    )
    assert rough.cost_at_most is None


@pytest.mark.parametrize("dialect", ["vllm", "openai", "plain"])
async def test_an_estimate_says_when_the_server_counts_no_tokens(dialect: Any) -> None:
    async with llm.ScriptedLlm(counts_tokens=False) as server:
        judge = judge_of(server, dialect=dialect)
        seen = await estimate_judge(judge, [item(CLAIMS[0])])
        await judge.close()
    assert ("/tokenize" in server.paths) == (dialect == "vllm")
    assert (seen.exact, seen.counter) == (
        False,
        expected_message("judge_service.llm.estimate:approximation-four-bytes-token"),
    )
    sent = json.dumps([m["content"] for m in judge.questions(item(CLAIMS[0]))[0].messages])
    assert len(sent) / 8 < seen.prompt_tokens < len(sent) / 2


async def test_an_estimate_counts_by_a_tokenizer_file(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    whole = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    whole.save(str(tmp_path / "tokenizer.json"))
    async with llm.ScriptedLlm() as server:
        judge = judge_of(server, tokenizer=str(tmp_path))
        seen = await estimate_judge(judge, [item(CLAIMS[0])])
        await judge.close()
    (question,) = judge.questions(item(CLAIMS[0]))
    words = sum(len(message["content"].split()) for message in question.messages)
    assert seen.prompt_tokens == words + 8 * len(question.messages)
    assert seen.counter.startswith(str(tmp_path))
