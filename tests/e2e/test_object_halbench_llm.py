"""Object HalBench with a language model, over real HTTP: its objects, failures and calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import ServerProcess

from hallujudge.metrics import ItemResult, Report
from hallujudge.metrics.object_halbench import ObjectHalBenchItem
from hallujudge.sdk import Client, ScoreSpec
from hallujudge.sdk.errors import InvalidInputError

METRIC = "object-halbench"
# What the scripted model extracts from an answer with this text.
EXTRACTED = {
    "A kitchen table stands beside a baby dog.": ["kitchen table", "baby dog"],
    "Two wooden dining tables are in the room.": ["wooden dining tables", "room"],
    "Four plain words here.": [],
}


def item(number: int, response: str | None, **more: Any) -> ObjectHalBenchItem:
    given = {"reference_objects": ("person",), **more}
    return ObjectHalBenchItem(id=str(number), response=response, **given)


def score(
    items: list[ObjectHalBenchItem], settings: dict[str, str] | None = None, **options: str
) -> tuple[Report, list[ItemResult]]:
    results: list[ItemResult] = []
    variant = options.pop("variant", "published")
    spec = ScoreSpec(metric=METRIC, variant=variant, options=options)
    with Client.embedded(settings) as client:
        report = client.score_items(spec, items, on_batch=lambda b: results.extend(b.results))
    return report, results


def words_of(result: ItemResult) -> list[tuple[str, str, bool]]:
    mentions = result.evidence.mentions  # type: ignore[union-attr]  # CHAIR's evidence
    return [(m.word, m.object, m.hallucinated) for m in mentions]


def extracting(_number: int, body: llm.Body) -> llm.Reply:
    prompt = llm.prompt_of(body)
    if "REFUSE" in prompt:
        return llm.completion(None, refusal="No.")
    if "BROKEN" in prompt:
        return llm.completion('["dog"]')
    found = next((names for text, names in EXTRACTED.items() if text in prompt), ["dog"])
    return llm.completion(json.dumps({"objects": found}))


@pytest.fixture(scope="module")
def model() -> Iterator[llm.ScriptedLlm]:
    server = llm.ScriptedLlm(extracting)
    stop = server.in_thread()
    yield server
    stop()


def asked(model: llm.ScriptedLlm, text: str, variant: str = "published") -> ItemResult:
    settings = {"llm.url": model.url, "llm.model": "tiny"}
    report, [result] = score([item(1, text)], settings, objects="llm", variant=variant)
    assert "|extract:llm:tiny:extract-objects-1@" in report.signature
    return result


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # A run of nouns is one phrase, and a name of two words counts as one word.
        ("A kitchen table stands beside a baby dog.", [("dog", "dog", True)]),
        (
            "Two wooden dining tables are in the room.",
            [("dining table", "dining table", True)],
        ),
        ("Four plain words here.", []),
    ],
)
def test_extracted_objects_are_read_as_the_script_reads_them(
    model: llm.ScriptedLlm, text: str, found: list[tuple[str, str, bool]]
) -> None:
    assert words_of(asked(model, text)) == found


def test_corrected_counts_the_table_of_a_kitchen_table(model: llm.ScriptedLlm) -> None:
    result = asked(model, "A kitchen table stands beside a baby dog.", "corrected")
    assert [name for _, name, _ in words_of(result)] == ["dining table", "dog"]


def test_a_short_answer_has_no_objects_and_causes_no_call(model: llm.ScriptedLlm) -> None:
    before = model.chats
    assert words_of(asked(model, "A black dog.")) == []
    assert model.chats == before
    assert words_of(asked(model, "A black dog.", "corrected")) == [("dog", "dog", True)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("A dog that you REFUSE.", "JUDGE_REFUSED"), ("A dog, BROKEN too.", "REPLY_WRONG_SCHEMA")],
)
def test_a_reply_without_objects_is_unscored(
    model: llm.ScriptedLlm, text: str, reason: str
) -> None:
    assert asked(model, text).reason == reason


def test_a_model_is_needed_and_calls_are_estimated(model: llm.ScriptedLlm) -> None:
    with pytest.raises(InvalidInputError, match=r"llm\.model"):
        score([item(1, "A dog is here now.")], objects="llm")
    with Client.embedded({"llm.url": model.url, "llm.model": "tiny"}) as client:
        [estimate] = client.estimate(
            METRIC,
            responses={"1": "A dog is here now.", "2": "No."},
            references={"1": ["dog"], "2": []},
            options={"objects": "llm"},
        )
    assert estimate.calls == 1


def test_files_are_equal_at_a_server(model: llm.ScriptedLlm, tmp_path: Path) -> None:
    texts = [*EXTRACTED, "A dog REFUSE is here.", "No.", None]
    rows = [{"image_id": n, "question": "What?", "answer": text} for n, text in enumerate(texts)]
    run: dict[str, Any] = {
        "responses": rows,
        "references": {str(n): ["dog"] for n in range(len(texts))},
        "options": {"objects": "llm"},
    }
    remote = ServerProcess("--llm-url", model.url, "--llm-model", "tiny")
    settings = {"llm.url": model.url, "llm.model": "tiny"}
    try:
        with Client.embedded(settings) as here, Client(remote.address) as there:
            for name, client in (("here", here), ("there", there)):
                client.score(METRIC, **run, folder=tmp_path / name)
    finally:
        remote.stop()
    for file in ("report.json", "items.jsonl"):
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes()
