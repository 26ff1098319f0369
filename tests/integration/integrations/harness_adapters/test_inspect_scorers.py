"""Scorers and a judge of Inspect AI, with a stand-in; tools/try_inspect.py tries the real one."""

from __future__ import annotations

import importlib
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hallujudge.sdk import Scorer

NAME = "hallujudge.integrations.harness_adapters.inspect_scorers"
GRAPH = [["cat", "on", "sofa"]]


class Score(SimpleNamespace):
    """A score of Inspect AI."""

    @classmethod
    def unscored(cls, **values: Any) -> Score:
        return cls(value=None, **values)


class Model:
    """A model that knows no dog."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def __str__(self) -> str:
        return "mock/model"

    async def generate(self, messages: list[Any], config: Any) -> Any:
        self.asked.append((messages[-1].content, config))
        claim = messages[-1].content.partition("<<<CLAIM")[2]
        usage = SimpleNamespace(input_tokens=7, output_tokens=1)
        verdict = "object1" if "dog" in claim else "supported"
        return SimpleNamespace(completion=verdict, stop_reason="stop", usage=usage)


@pytest.fixture(scope="module")
def scorers() -> Iterator[Any]:
    """The module, with modules in place of the package, which is not installed here."""
    made = {
        "inspect_ai": ModuleType("inspect_ai"),
        "inspect_ai.model": ModuleType("inspect_ai.model"),
        "inspect_ai.scorer": ModuleType("inspect_ai.scorer"),
    }
    kinds = ("ChatMessageAssistant", "ChatMessageSystem", "ChatMessageUser", "GenerateConfig")
    vars(made["inspect_ai.model"]).update(
        dict.fromkeys((*kinds, "Model"), SimpleNamespace), get_model=lambda model, **_: model
    )
    vars(made["inspect_ai.scorer"]).update(
        Metric=object,
        Score=Score,
        mean=lambda: "mean",
        stderr=lambda: "stderr",
        metric=lambda **_: lambda function: function,
        scorer=lambda **_: lambda function: function,
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, module in made.items():
            patch.setitem(sys.modules, name, module)
        patch.delitem(sys.modules, NAME, raising=False)
        yield importlib.import_module(NAME)
    sys.modules.pop(NAME, None)


def sample(number: int, text: str, reference: Any) -> Any:
    return SimpleNamespace(
        sample_id=number,
        output=SimpleNamespace(completion=text),
        metadata={"objects": reference},
    )


async def test_scores_have_evidence_and_make_the_corpus_score(scorers: Any) -> None:
    score = scorers.chair(score="chair_i", reference="objects")
    texts = ["A cat and a dog and a car.", "A cat.", ""]
    found = [await score(sample(at, text, ["cat"]), None) for at, text in enumerate(texts)]
    assert [one.value for one in found] == [2 / 3, 0.0, None]
    assert found[0].metadata["evidence"]["hallucinated"] == [("dog", "dog"), ("car", "car")]
    assert found[0].explanation == "chair_i 0.6667: hallucinated: dog, car"
    assert found[2].reason.startswith("RESPONSE_EMPTY: ")
    assert found[2].explanation == found[2].reason
    kept = [SimpleNamespace(score=one) for one in found]
    assert scorers.corpus()(kept) == 2 / 4


def test_a_model_of_inspect_ai_judges_claims(scorers: Any) -> None:
    model = Model()
    settings = scorers.inspect_judge(model)
    with Scorer("tri-he", settings=settings, options={"judge": "llm"}) as scorer:
        found = scorer(["The cat is on the sofa.", "The dog is on the sofa."], [GRAPH, GRAPH])
        assert "|judge:mock/model," in scorer.header().signature
    assert [one.scores["hallu_q"] for one in found] == [0.0, 1.0]
    assert len(model.asked) == 2
    assert {config.temperature for _, config in model.asked} == {0.0}
    [judging] = found[0].evidence["judging"]
    assert (judging["prompt_tokens"], judging["completion_tokens"]) == (7, 1)


def test_a_failure_is_an_error_and_others_can_not_call_the_judge(scorers: Any) -> None:
    url = str(scorers.inspect_judge(SimpleNamespace())["llm.url"])
    body = json.dumps({"model": "m", "messages": []}).encode()
    with pytest.raises(urllib.error.HTTPError, match="500") as failed:
        urllib.request.urlopen(f"{url}/chat/completions", body)
    assert "has no attribute 'generate'" in json.load(failed.value)["error"]["message"]
    failed.value.close()
    address = url.partition("/v1")[0].rpartition("/")[0]
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        urllib.request.urlopen(f"{address}/v1/chat/completions", body)
    refused.value.close()
