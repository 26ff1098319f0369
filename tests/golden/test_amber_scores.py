"""AMBER: the totals and printed scores of the released script, nouns given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from oracles import amber_published as oracle

from hallujudge.metrics import Report
from hallujudge.sdk import Client, InputOptions, read_items

KINDS = {"as": "state", "an": "number", "aa": "action", "ha": "existence", "asso": "relation"}
QUESTION_TOTALS = {
    "correct_score": "right",
    "correct_num": "asked",
    "no_score": "right_no",
    "no_num": "no",
    "ans_no_score": "right_no",
    "ans_no_num": "said_no",
}
DESCRIPTION_TOTALS = {
    "chair_num": "words",
    "chair_score": "hallucinated",
    "safe_cover_num": "objects",
    "safe_cover_score": "covered",
    "hallu_cover_num": "targets",
    "hallu_cover_score": "targets_said",
    "non_hallu_num": "descriptions",
}
DIMENSIONS = ("", "existence_", "attribute_", "state_", "number_", "action_", "relation_")


def scored(goldens: Path, variant: str, server: str = "") -> Report:
    folder = goldens / "amber"
    with Client(server) if server else Client.embedded() as client:
        return client.score(
            "amber",
            responses=folder / "drawn_1.answers.json",
            references=folder / "annotations.json",
            variant=variant,
            inputs=InputOptions(
                own={
                    "nouns": folder / "drawn_1.nouns.jsonl",
                    "questions": folder / "query_all.json",
                    "associations": folder / "relation.json",
                    "safe_words": folder / "safe_words.txt",
                }
            ),
        )


@pytest.fixture(scope="module")
def published(goldens: Path) -> Report:
    return scored(goldens, "published")


@pytest.fixture(scope="module")
def expected(goldens: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((goldens / "amber" / "expected.json").read_text())
    return content["drawn_1"]  # type: ignore[no-any-return]  # an object


def test_question_totals(published: Report, expected: dict[str, Any]) -> None:
    for name, total in expected["discriminative"].items():
        prefix, _, counted = name.rpartition("qa_")
        column = f"{KINDS[prefix.rstrip('_')] if prefix else 'all'}_{QUESTION_TOTALS[counted]}"
        added = 0.001 if name.endswith("num") else 0
        assert published.totals[column] + added == total, name


def test_description_totals(published: Report, expected: dict[str, Any]) -> None:
    totals, wanted = published.totals, dict(expected["generative"])
    fine = totals["descriptions"] - totals["hallucinating"]
    assert fine == wanted.pop("non_hallu_score")
    for name, total in wanted.items():
        added = 0.001 if name.endswith("num") else 0
        assert totals[DESCRIPTION_TOTALS[name]] + added == total, name


def percent(report: Report, name: str) -> float:
    value = report.scores[name].value
    assert value is not None
    return round(value * 100, 1)


def test_printed_scores_of_questions(published: Report, expected: dict[str, Any]) -> None:
    lines = [line.split("\t") for line in expected["discriminative_printed"]]
    numbers = [float(line[-1]) for line in lines if len(line) > 1]
    ours = [
        percent(published, f"{dimension}{name}")
        for dimension in DIMENSIONS
        for name in ("accuracy", "precision", "recall", "f1")
    ]
    assert ours == numbers


def test_printed_scores_of_descriptions(published: Report, expected: dict[str, Any]) -> None:
    lines = [line.split("\t") for line in expected["generative_printed"]]
    numbers = [float(line[-1]) for line in lines if len(line) > 1]
    assert [percent(published, name) for name in ("chair", "cover", "hal", "cog")] == numbers


def test_the_oracle_gives_the_same_totals(goldens: Path, expected: dict[str, Any]) -> None:
    folder = goldens / "amber"
    names = ("annotations", "relation", "drawn_1.answers")
    read = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
    annotations = {entry["id"]: entry for entry in read["annotations"]}
    answers = {entry["id"]: entry["response"] for entry in read["drawn_1.answers"]}
    totals = oracle.question_totals(annotations, answers)
    assert totals == pytest.approx(expected["discriminative"], abs=1e-6)
    lines = (folder / "drawn_1.nouns.jsonl").read_text().splitlines()
    nouns = {row["id"]: row["nouns"] for row in map(json.loads, lines)}
    safe = (folder / "safe_words.txt").read_text().split("\n")
    totals = oracle.description_totals(annotations, nouns, read["relation"], safe)
    assert totals == pytest.approx(expected["generative"], abs=1e-6)


def value_of(report: Report, name: str) -> float:
    value = report.scores[name].value
    assert value is not None
    return value


def test_corrected_fixes_the_answers_and_the_objects(goldens: Path, published: Report) -> None:
    corrected = scored(goldens, "corrected")
    for name in ("accuracy", "f1", "cover"):
        assert value_of(corrected, name) > value_of(published, name)
    amber = (1 - value_of(corrected, "chair") + value_of(corrected, "f1")) / 2
    assert value_of(corrected, "amber_score") == pytest.approx(amber)
    assert corrected.coverage.reasons == {"ANSWER_UNPARSED": 139}, "I am not sure"


def test_a_server_gives_the_same_scores(goldens: Path, published: Report, server: str) -> None:
    remote = scored(goldens, "published", server)
    assert remote.totals == published.totals
    for name in published.scores:
        assert value_of(remote, name) == pytest.approx(value_of(published, name), abs=1e-9), name


def test_every_score_has_an_interval_around_it(published: Report) -> None:
    for name, score in published.scores.items():
        assert score.ci_low is not None, name
        assert score.ci_high is not None, name
        assert score.ci_low < value_of(published, name) < score.ci_high, name
    low = published.scores["existence_precision"].ci_low
    assert low is not None
    assert 0.99 < low < 0.9999, "all its answers are right, and the lower end is still below 1"


def test_items_of_one_image_are_one_cluster(goldens: Path) -> None:
    folder = goldens / "amber"
    questions = InputOptions(own={"questions": folder / "query_all.json"})
    given = (folder / "drawn_1.answers.json", folder / "annotations.json")
    items = list(read_items("amber", *given, options=questions))
    assert len(items) == 14216
    assert len({item.group_id for item in items}) == 1004
