"""OpenCHAIR: judgements as both variants read them, and captions without a score."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.metrics import Answer
from hallujudge.metrics.openchair import OpenchairMetric
from hallujudge.sdk import Client, RunReport


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("Yes.", "yes", "yes"),
        ("no;", "no", "no"),
        ("no\nyes", "yes", "no"),
        ("I am not sure", "no", "unsure"),
        ("It is not clear", "no", "unsure"),
        ("Maybe, unsure", "unsure", "unsure"),
        ("No!", None, "no"),
        ('"Yes"', None, "yes"),
        ("Yes/No", None, "yes"),
        ("nothing", None, None),
        ("Not visible", "no", None),
        ("I cannot tell", None, None),
        ("", None, None),
    ],
)
def test_judgements(text: str, published: str | None, corrected: str | None) -> None:
    answer = Answer(response="dog", fields={"judgement": text})
    assert OpenchairMetric().parse(answer).value == published
    assert OpenchairMetric(variant="corrected").parse(answer).value == corrected


def test_pictures_are_ignored_whatever_the_judge_says() -> None:
    answer = Answer(response="photo", fields={"judgement": "no"})
    assert OpenchairMetric().parse(answer).value == "ignore"


def run(*captions: tuple[list[str], list[str] | None], **more: Any) -> RunReport:
    rows = [
        {"generated_objs": things, **({} if texts is None else {"judge_texts": texts})}
        for things, texts in captions
    ]
    with Client.embedded() as client:
        return client.score("openchair", responses=rows, **more)


@pytest.mark.parametrize(("text", "score"), [("yes", 0.0), ("no", 1.0), ("unsure", None)])
def test_a_side_without_a_mention_is_undefined_only_as_released(
    text: str, score: float | None
) -> None:
    captions = (["dog", "cat"], [text, text])
    report = run(captions)
    assert report["openchair"].value is None
    assert any("openchair is undefined" in note for note in report.notes)
    assert run(captions, variant="corrected")["openchair"].value == score


def test_what_is_neither_yes_nor_no_stands_beside_the_score() -> None:
    report = run((["dog", "cat", "photo", "sea", "sky"], ["yes", "no", "no", "unsure", "?"]))
    rates = ("openchair", "unsure_rate", "ignored_rate", "unparsed_rate")
    assert [report[name].value for name in rates] == [0.5, 0.2, 0.2, 0.2]


def test_captions_without_objects_add_nothing_and_those_without_texts_are_unscored() -> None:
    report = run(([], []), (["dog"], None), (["dog", "cat"], ["yes", "no"]))
    assert report.coverage.reasons == {"VERDICT_NULL": 1}
    assert report["openchair"].value == 0.5


def test_judge_texts_that_only_corrected_reads_are_noted() -> None:
    report = run((["dog", "cat", "sea"], ["yes", "no", "No!"]))
    assert report["openchair"].value == 0.5
    assert any("with them openchair is 0.6667, not 0.5000" in note for note in report.notes)
