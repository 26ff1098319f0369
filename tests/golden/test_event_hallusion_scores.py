"""EventHallusion: what the released script prints for two models, from their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from oracles import event_hallusion_published as oracle

from hallujudge.metrics import Report, Score
from hallujudge.sdk import Client
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError

MODELS = ("gemini", "video_llava")


def path(goldens: Path, model: str) -> Path:
    return goldens / "event_hallusion" / f"{model}.predictions.json"


def scored(given: object, **more: Any) -> Report:
    with Client.embedded() as client:
        return client.score("event-hallusion", responses=given, **more)  # type: ignore[arg-type]  # a path or an archive


def printed(name: str, words: tuple[str, str], scores: Mapping[str, Score], kind: str) -> str:
    """Return a line as the released script prints it."""
    of, correct = words
    score = scores[f"{kind}_accuracy"]
    assert score.value is not None
    right = round(score.value * score.n)
    return f"{name}{of}: {score.n}, {correct} correct: {right}, {correct} acc: {score.value}"


def lines(report: Report) -> list[str]:
    out = []
    for split in ("entire", "interleave", "misleading"):
        scores = report.groups["split"][split]
        out.append(printed(f"{split} ", ("ques", "qs"), scores, "question"))
        out.append(printed(f"{split} ", ("videos", "desc"), scores, "description"))
    out.append(printed("overall: ", ("ques", "qs"), report.scores, "question"))
    out.append(printed("overall: ", ("desc", "desc"), report.scores, "description"))
    rates = [report.scores[f"{kind}_unparsed_rate"].value for kind in ("question", "description")]
    return [*out, f"Not matching rate: ques: {rates[0]}, desc: {rates[1]}"]


@pytest.mark.parametrize("model", MODELS)
def test_published_prints_the_scripts_lines(goldens: Path, model: str) -> None:
    expected = json.loads((goldens / "event_hallusion" / "expected_printed.json").read_text())
    assert lines(scored(path(goldens, model))) == expected[model]


@pytest.mark.parametrize("model", MODELS)
def test_the_oracle_gives_the_same_counts(goldens: Path, model: str) -> None:
    wanted = oracle.counts(json.loads(path(goldens, model).read_text()))
    report = scored(path(goldens, model))
    for split, row in wanted.items():
        scores = report.scores if split == "overall" else report.groups["split"][split]
        assert scores["question_accuracy"].value == row["right"] / row["asked"]
        assert scores["description_accuracy"].value == row["approved"] / row["judged"]


def test_corrected_leaves_out_what_cannot_be_parsed(goldens: Path) -> None:
    report = scored(path(goldens, "gemini"), variant="corrected")
    published = scored(path(goldens, "gemini"))
    unparsed = report.scores["question_unparsed_rate"]
    assert unparsed.value is not None
    assert unparsed.n == 409 == published.scores["question_accuracy"].n
    assert report.scores["question_accuracy"].n == 409 - round(unparsed.value * 409)
    assert report.scores["description_accuracy"].n == 395, "two descriptions have no judgement"
    assert report.coverage.unscored == 2, "of two videos nothing was answered"


def test_a_set_of_python_values_whose_key_is_no_text_is_named() -> None:
    with pytest.raises(ArchiveError, match="3 is not a split with a list of records"):
        list(read_items("event-hallusion", {3: [{"id": "1"}]}, None))
