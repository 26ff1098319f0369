"""Thoughts under keys of their own are part of the response."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.sdk import Client, InputOptions

OBJECTS = {"1": ["cat"], "2": ["cat"]}
THOUGHT = "Is there a dog, or a horse?"
RECORD = {"image_id": "1", "caption": "A cat."}
PLAIN = {"image_id": "2", "caption": "A cat and a dog."}

KEYED: Mapping[str, dict[str, Any]] = {
    "reasoning_content": {"reasoning_content": THOUGHT},
    "reasoning": {"reasoning": THOUGHT},
    "thinking": {"thinking": THOUGHT},
    "thought": {"thought": THOUGHT},
    "reasoning_details": {"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]},
}


def chair(responses: Any, **arguments: Any) -> Any:
    with Client.embedded() as client:
        return client.score("chair", responses=responses, references=OBJECTS, **arguments)


SOURCES = ("values", "lines", "array", "csv")
# Cells hold no lists.
CASES = [(s, key) for s in SOURCES for key in KEYED if (s, key) != ("csv", "reasoning_details")]


@pytest.mark.parametrize(("source", "key"), CASES)
def test_a_key_of_its_own_holds_the_thought(source: str, key: str, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [{**RECORD, **KEYED[key]}, PLAIN]
    responses: Any = records
    if source == "lines":
        responses = tmp_path / "captions.jsonl"
        responses.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    if source == "array":
        responses = tmp_path / "captions.json"
        responses.write_text(json.dumps(records), encoding="utf-8")
    if source == "csv":
        responses = tmp_path / "captions.csv"
        responses.write_text(
            f'image_id,caption,{key}\n1,A cat.,"{THOUGHT}"\n2,A cat and a dog.,\n', encoding="utf-8"
        )
    report = chair(responses)
    assert report.chair_i == pytest.approx(1 / 3)
    assert report.traits["thought"] == 1
    assert report.traits[f"form key {key}"] == 1
    [first, second] = report.items
    assert (first.response, first.item.thought) == ("A cat.", THOUGHT)
    assert (second.response, second.item.thought) == ("A cat and a dog.", "")


@pytest.mark.parametrize("by_id", [True, False])
def test_records_under_their_sets_hold_thoughts(tmp_path: Path, *, by_id: bool) -> None:
    asked = {"question": "Is it?", "answer": "No.", "prediction": "No.", "reasoning": THOUGHT}
    said = {"role": "assistant", "content": "A man walks.", "reasoning": THOUGHT}
    video = {"category": "daily", "qa": [asked], "desc": said, "judgement": "Yes."}
    sets = {
        name: {f"{name}_1": video} if by_id else [{"id": f"{name}_1", **video}]
        for name in ("entire", "interleave")
    }
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps(sets), encoding="utf-8")
    with Client.embedded() as client:
        report = client.score("event-hallusion", responses=file)
    assert report.scores["question_accuracy"].value == 1
    assert report.scores["description_accuracy"].value == 1
    assert report.traits["thought"] == 4
    assert [item.item.fields["split"] for item in report.items] == ["entire", "interleave"]


@pytest.mark.parametrize("key", ["caption", "response"])
def test_a_list_of_one_text_is_that_text(key: str) -> None:
    report = chair([{"image_id": "1", key: ["A cat."]}, {"image_id": "2", key: "A dog."}])
    assert [item.response for item in report.items] == ["A cat.", "A dog."]


def test_a_thought_without_content_was_cut_off() -> None:
    report = chair([{**RECORD, "caption": None, "reasoning_content": THOUGHT}, PLAIN])
    assert report.coverage.reasons == {UnscoredReason.THOUGHT_UNFINISHED: 1}
    assert chair([{**RECORD, "caption": None}, PLAIN]).coverage.reasons == {
        UnscoredReason.RESPONSE_MISSING: 1
    }


def test_an_empty_answer_after_a_thought_is_empty() -> None:
    report = chair([{**RECORD, "caption": "", "reasoning_content": THOUGHT}, PLAIN])
    assert report.coverage.reasons == {UnscoredReason.RESPONSE_EMPTY: 1}
    report = chair([{**RECORD, "caption": f"<think>{THOUGHT}</think>"}, PLAIN])
    assert report.coverage.reasons == {UnscoredReason.RESPONSE_EMPTY: 1}


def test_a_word_under_such_a_key_is_a_value_of_the_record() -> None:
    report = chair([{**RECORD, "reasoning": "spatial"}, PLAIN])
    assert not report.traits
    assert "thoughts:" not in report.signature


def test_the_thought_of_a_message_is_next_to_its_content() -> None:
    message = {"role": "assistant", "content": "A cat.", "reasoning_content": THOUGHT}
    responses = [{"image_id": "1", "choices": [{"message": message}]}]
    mapped = InputOptions(key_map={"response": "choices.0.message.content"}, allow_unknown=True)
    report = chair(responses, inputs=mapped)
    assert report.chair_i == 0
    assert report.traits["form key reasoning_content"] == 1


def test_raw_responses_of_lmms_eval_hold_the_thought_that_filtered_ones_lack(
    tmp_path: Path,
) -> None:
    log = tmp_path / "20260301_000000_samples_pope.jsonl"
    row = {
        "doc_id": 0,
        "doc": {"question_id": "0", "question": "Is there a car?", "answer": "yes"},
        "target": "yes",
        "resps": ["<think>No car at first.</think>\nYes"],
        "filtered_resps": ["Yes"],
        "pope_accuracy": {"question_id": "0", "prediction": "yes", "ground_truth": "yes"},
    }
    log.write_text(json.dumps(row), encoding="utf-8")
    with Client.embedded() as client:
        report = client.score("pope", responses=log)
    assert report.accuracy == 1
    assert report.traits["form key resps"] == 1
