"""AVHBench: what counts as yes and no, which tasks count, and every figure by task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support.running import here

from hallujudge.metrics import Report
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.avhbench import BENCHMARK, CAPTIONING, HEARD, SEEN
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.sdk import Client
from hallujudge.sdk.archives import read_items


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("**Yes**", "yes"),
        ("The answer is NO.", "no"),
        # The first word decides, whatever was meant.
        ("No... yes, there it is.", "no"),
        ("No doubt: yes.", "no"),
        # Neither synonyms nor letters inside words are read.
        ("Yeah", None),
        ("True", None),
        ("It is not.", None),
        ("None", None),
        ("I know nothing of it. Not now", None),
        ("", None),
    ],
)
def test_the_first_whole_word_yes_or_no_is_the_answer(text: str, value: str | None) -> None:
    answer = structs.replace(BENCHMARK.trial.answers[0], response=text)
    assert {variant.parse(answer).value for variant in BENCHMARK.variants} == {value}


def record(number: int, label: str, said: str | None, task: str = HEARD) -> dict[str, Any]:
    asked = {"video_id": f"{number:05d}", "task": task, "text": "Does the dog bark?"}
    return {**asked, "label": label, "prediction": said}


def scored(records: list[dict[str, Any]], variant: str = "paper", **more: Any) -> Report:
    with Client.embedded() as client:
        return client.score("avhbench", responses=records, variant=variant, **more)


def test_an_unread_answer_is_wrong_and_a_miss_but_no_yes() -> None:
    said = [("Yes", "Yes."), ("Yes", "Yeah"), ("No", "Yes."), ("No", "None")]
    scores = scored([record(n, *pair) for n, pair in enumerate(said)]).scores
    found = {name: scores[name].value for name in ("accuracy", "precision", "recall", "f1")}
    assert found == {"accuracy": 0.25, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert scores["yes_ratio"].value == scores["unparsed_rate"].value == 0.5


def test_a_ratio_without_its_answers_is_none() -> None:
    scores = scored([record(1, "No", "No."), record(2, "No", "No.")]).scores
    assert scores["accuracy"].value == 1.0
    assert [scores[name].value for name in ("precision", "recall", "f1")] == [None] * 3


def test_absent_answers_are_wrong_as_in_the_paper_and_unscored_as_corrected() -> None:
    records = [record(1, "Yes", "Yes."), record(2, "Yes", None), record(3, "Yes", "")]
    assert scored(records).scores["recall"].value == pytest.approx(1 / 3)
    corrected = scored(records, "corrected")
    assert (corrected.scores["recall"].value, corrected.coverage.unscored) == (1.0, 2)


def test_captions_count_in_no_score_and_that_is_said() -> None:
    records = [record(1, "Yes", "No."), record(1, "A dog barks.", "Yes, a dog.", CAPTIONING)]
    report = scored(records)
    assert report.scores["accuracy"].n == 1
    assert report.groups["task"].keys() == {HEARD}
    assert any("AV Captioning has no closed score" in note for note in report.notes)
    assert any("those over all tasks are ours" in note for note in report.notes)


def test_names_of_the_training_files_are_read_as_the_others_and_that_is_said() -> None:
    old = ["AV Hallucination (Video)", "AV Hallucination (Audio)", SEEN]
    report = scored([record(n, "Yes", "Yes.", task) for n, task in enumerate(old)])
    counted = {task: group["accuracy"].n for task, group in report.groups["task"].items()}
    assert counted == {SEEN: 2, HEARD: 1}
    assert any(note.startswith("2 answers name their task") for note in report.notes)


def test_answers_are_joined_with_questions_and_a_task_that_was_not_run_is_not_missed() -> None:
    asked = [record(1, "Yes", ""), record(2, "No", ""), record(3, "A caption.", "", CAPTIONING)]
    questions = [{k: v for k, v in row.items() if k != "prediction"} for row in asked]
    answers = [
        {**{k: v for k, v in row.items() if k != "label"}, "prediction": "No."} for row in asked[:2]
    ]
    report = scored(answers, references=questions)
    assert (report.scores["accuracy"].value, report.scores["accuracy"].n) == (0.5, 2)


def test_one_video_has_questions_of_each_task() -> None:
    records = [record(1, "Yes", "Yes.", task) for task in (SEEN, HEARD)]
    items = list(read_items("avhbench", records, None))
    assert len({item.id for item in items}) == 2
    assert {item.group_id for item in items} == {"00001"}


def test_a_published_row_has_the_figures_of_its_table() -> None:
    rows = {row.name: row.scores for row in published_rows(metric_of(BENCHMARK))}
    assert rows["chatbridge-heard"].items() >= {"recall": 0.328, "yes_ratio": 0.148}.items()


def test_eleven_of_eighteen_published_rows_fit_the_formulas() -> None:
    rows = [row.scores for row in published_rows(metric_of(BENCHMARK))]
    fitting = 0
    for row in rows:
        # With half of the labels yes, precision and recall give the other three figures.
        right_yes = row["recall"] / 2
        yes = right_yes / row["precision"]
        f1 = 2 * row["precision"] * row["recall"] / (row["precision"] + row["recall"])
        derived = {"f1": f1, "yes_ratio": yes, "accuracy": right_yes + 0.5 - (yes - right_yes)}
        fitting += all(round(100 * abs(row[n] - v), 1) <= 0.2 for n, v in derived.items())
    assert (fitting, len(rows)) == (11, 18)


# File -> its role, metric and number of records.
RECOGNISED = {
    "avhbench/drawn_2.json": ("responses", "avhbench", 345),
}


SCORES = ("accuracy", "precision", "recall", "f1", "yes_ratio")


@pytest.mark.parametrize("draw", ["drawn_1", "drawn_2"])
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_by_task_are_those_of_our_formula(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    run = here(
        "score", "avhbench", "-r", goldens / f"avhbench/{draw}.json", "-o", tmp_path, *server
    )
    assert run.returncode == 0, run.stderr
    report: Any = json.loads((tmp_path / "report.json").read_text())
    known = json.loads((goldens / "avhbench/expected.json").read_text())[draw]
    wanted, groups = known["scores"]["by_task"], report["groups"]["task"]
    assert groups.keys() == wanted.keys()
    for task, scores in wanted.items():
        found = {name: groups[task][name]["value"] for name in (*SCORES, "unparsed_rate")}
        rate = scores["unread"] / scores["questions"]
        assert found == pytest.approx(
            {**{name: scores[name] for name in SCORES}, "unparsed_rate": rate}, abs=1e-9
        ), task
        assert groups[task]["accuracy"]["n"] == scores["questions"]
    left_out = known["records"] - sum(scores["questions"] for scores in wanted.values())
    assert (tmp_path / "items.jsonl").read_text().count('"scores":{}') == left_out
    said = " ".join(run.stdout.split())
    assert "AV Captioning has no closed score" in said
    assert ("AV Hallucination (Video) is read as" in said) is (draw == "drawn_2")
