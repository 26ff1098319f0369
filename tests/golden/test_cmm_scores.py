"""CMM: what is read in answers, and every number of the released script for drawn ones."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support.running import here

from hallujudge.metrics import Report
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.cmm import BENCHMARK
from hallujudge.sdk import Client
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.errors import ArchiveError


def parsed(text: str, label: str, variant: str) -> tuple[str | None, bool]:
    answer = structs.replace(BENCHMARK.trial.answers[0], response=text, label=label)
    found = BENCHMARK.variant(variant).parse(answer)
    return found.value, found.right


@pytest.mark.parametrize(
    ("text", "label", "published", "corrected"),
    [
        ("yes", "yes", True, True),
        ("  **Yes**", "yes", True, True),
        ('"No".', "no", True, True),
        # The letters no are found inside words.
        ("Not only did I see a dog: yes.", "yes", False, True),
        ("I know there is one: yes.", "yes", False, True),
        ("Snow covers it all: yes.", "yes", False, True),
        ("Nothing covers the dog: yes.", "no", True, False),
        # Nothing after the fifth character is read.
        ("The answer is yes.", "yes", False, True),
        ("Answer: No", "no", False, True),
        ("No, yes: there it is.", "yes", False, False),
        ("No, yes: there it is.", "no", True, True),
        ("noyes", "yes", True, False),
        # Other words are wrong, but those that begin with no are right where the label is no.
        ("Yeah", "yes", False, False),
        ("It is absent.", "no", False, False),
        ("None.", "no", True, False),
        ("Not at all.", "no", True, False),
        ("I cannot help with that.", "no", False, False),
        ("", "no", False, False),
    ],
)
def test_answers_are_read_as_the_script_does_and_as_they_are_meant(
    text: str, label: str, *, published: bool, corrected: bool
) -> None:
    assert parsed(text, label, "published")[1] is published
    assert parsed(text, label, "corrected")[1] is corrected


def record(number: int, label: str, said: str | None, **more: Any) -> dict[str, Any]:
    return {
        "sub_category": "visual-audio-language",
        "granularity": "event-level",
        "video_path": f"clips/{number}.mp4",
        "audio_path": f"clips/{number}.wav",
        "question": f"Is there a {label} thing?",
        "answer": label,
        "pred": said,
        **more,
    }


def scored(records: list[dict[str, Any]], variant: str = "published") -> Report:
    with Client.embedded() as client:
        return client.score("cmm", responses=records, variant=variant)


def test_a_ratio_without_a_question_is_0_as_in_the_script_and_none_as_corrected() -> None:
    records = [record(1, "yes", "Yes."), record(2, "yes", "No.")]
    for variant, wanted in (("published", 0.0), ("corrected", None)):
        scores = scored(records, variant).scores
        assert scores["perception_accuracy"].value == 0.5
        assert scores["hallucination_resistance"].value == wanted


def test_absent_and_empty_answers_and_refusals_are_wrong_and_are_noted() -> None:
    said = ("No.", "", None, "I can't assist with that.")
    records = [record(number, "no", text) for number, text in enumerate(said)]
    report = scored(records)
    assert report.scores["accuracy"].value == 0.25
    assert report.scores["unparsed_rate"].value == 0.75
    assert any("2 answers are missing, empty" in note for note in report.notes)
    corrected = scored(records, "corrected")
    assert corrected.coverage.unscored == 2
    assert corrected.scores["accuracy"].value == 0.5


def test_a_full_stop_after_a_label_is_ignored_in_every_score() -> None:
    # The script would take it as part of the label for the accuracy, and not for PA.
    scores = scored([record(1, "yes.", "Yes, it is."), record(2, "no", "No.")]).scores
    assert scores["accuracy"].value == scores["perception_accuracy"].value == 1.0


def test_a_question_without_a_known_granularity_is_in_no_crossed_group() -> None:
    levels = ("event-level", None, "scene-level")
    records = [record(n, "no", "No.", granularity=level) for n, level in enumerate(levels)]
    groups = scored(records).groups
    assert {name: group["accuracy"].n for name, group in groups["sub_category"].items()} == {
        "visual-audio-language": 3
    }
    crossed = groups["granularity_sub_category"]
    assert {name: group["accuracy"].n for name, group in crossed.items()} == {
        "": 2,
        "event-level/visual-audio-language": 1,
    }


def test_records_are_known_by_their_paths_and_question() -> None:
    pair = [record(1, "yes", "Yes."), record(1, "no", "No.")]
    heard = record(1, "no", "No.", video_path=None)
    items = list(read_items("cmm", [*pair, heard], None))
    assert [item.id for item in items] == [
        "clips/1.mp4: clips/1.wav: Is there a yes thing?",
        "clips/1.mp4: clips/1.wav: Is there a no thing?",
        "clips/1.wav: Is there a no thing?",
    ]
    assert [item.group_id for item in items] == ["clips/1.mp4", "clips/1.mp4", "clips/1.wav"]
    with pytest.raises(ArchiveError, match="answered more than once"):
        read_items("cmm", [*pair, pair[0]], None)
    nowhere = {key: held for key, held in heard.items() if key != "audio_path"}
    with pytest.raises(ArchiveError, match=r"neither an id nor a path.*found .*question"):
        read_items("cmm", [nowhere], None)


def test_answers_are_joined_with_the_released_questions() -> None:
    asked = [record(n, label, "") for n, label in enumerate(("yes", "no"))]
    questions = [{k: v for k, v in row.items() if k != "pred"} for row in asked]
    keys = ("video_path", "audio_path", "question")
    answers = [{**{key: row[key] for key in keys}, "pred": "No."} for row in reversed(asked)]
    with Client.embedded() as client:
        report = client.score("cmm", responses=answers, references=questions)
    assert report.scores["hallucination_resistance"].value == 1.0
    assert report.scores["perception_accuracy"].value == 0.0


def test_questions_without_a_record_are_unscored_and_null_answers_wrong() -> None:
    asked = [record(n, "no", text) for n, text in enumerate(("No.", None, ""))]
    with Client.embedded() as client:
        report = client.score(
            "cmm",
            responses=asked[:2],
            references=asked,
            inputs=InputOptions(allow_missing=True),
        )
    assert (report.accuracy, report.coverage.reasons) == (0.5, {"RESPONSE_MISSING": 1})


def test_a_question_that_could_not_be_put_to_the_model_is_no_wrong_answer() -> None:
    failed = {"unanswered": {"reason": "SOUND_MISSING", "detail": "'1.mp4' has no sound track"}}
    report = scored([record(0, "no", "No."), record(1, "no", None, **failed)])
    assert (report.accuracy, report.coverage.reasons) == (1.0, {"RESPONSE_MISSING": 1})


def test_an_answer_that_can_not_be_read_is_no_wrong_one() -> None:
    rows = [record(0, "no", "No."), {**record(1, "no", ""), "pred": {"words": 1}}]
    with Client.embedded() as client:
        report = client.score("cmm", responses=rows, inputs=InputOptions(skip_bad=True))
    assert (report.accuracy, report.coverage.reasons) == (1.0, {"RESPONSE_MISSING": 1})


def test_an_empty_cell_of_a_table_is_no_path(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(record(1, "no", "No.")))
        writer.writeheader()
        writer.writerows(record(n, "no", "No.", video_path=None) for n in range(2))
    items = list(read_items("cmm", table, None))
    assert [item.group_id for item in items] == ["clips/0.wav", "clips/1.wav"]


# File -> its role, metric and number of records.
RECOGNISED = {
    "cmm/drawn_1.output.json": ("responses", "cmm", 336),
}


DRAWS = ("drawn_1", "drawn_2")
SCORES = ("accuracy", "perception_accuracy", "hallucination_resistance")
EXACT = 1e-9


def report_of(file: Path, out: Path, *more: str) -> Any:
    run = here("score", "cmm", "-r", file, "-o", out, *more)
    assert run.returncode == 0, run.stderr
    return json.loads((out / "report.json").read_text())


def values(scores: Any) -> dict[str, Any]:
    return {name: scores[name]["value"] for name in SCORES}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report = report_of(goldens / f"cmm/{draw}.output.json", tmp_path, *server)
    known = json.loads((goldens / "cmm/expected.json").read_text())[draw]
    wanted = known["scores"]
    assert report["scores"]["accuracy"]["n"] == known["questions"]
    assert values(report["scores"]) == pytest.approx({n: wanted[n] for n in SCORES}, abs=EXACT)
    kinds = report["groups"]["sub_category"]
    assert kinds.keys() == wanted["by_sub_category"].keys()
    crossed = {
        f"{level}/{kind}": scores
        for level, held in wanted["by_granularity"].items()
        for kind, scores in held.items()
    }
    both = report["groups"]["granularity_sub_category"]
    # Questions without a granularity are in no group of the script's third table.
    assert both.keys() - {""} == crossed.keys()
    assert both[""]["accuracy"]["n"] == known["surprises"]["questions_of_no_granularity"]
    for name, scores in {**wanted["by_sub_category"], **crossed}.items():
        found = kinds.get(name) or both[name]
        assert values(found) == pytest.approx({n: scores[n] for n in SCORES}, abs=EXACT), name
        assert found["accuracy"]["n"] == scores["questions"]


@pytest.mark.parametrize("draw", DRAWS)
def test_corrected_gives_the_figures_of_a_plain_loop(
    goldens: Path, tmp_path: Path, draw: str
) -> None:
    file = goldens / f"cmm/{draw}.output.json"
    found = report_of(file, tmp_path, "--variant", "corrected", "--count-empty")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    right = {"yes": [0, 0], "no": [0, 0]}
    for row in rows:
        words = [word for word in re.findall(r"\w+", row["pred"].lower()) if word in right]
        right[row["answer"]][0] += words[:1] == [row["answer"]]
        right[row["answer"]][1] += 1
    (pa, asked), (hr, others) = right["yes"], right["no"]
    wanted = ((pa + hr) / len(rows), pa / asked, hr / others)
    assert tuple(values(found["scores"]).values()) == pytest.approx(wanted, abs=EXACT)


def test_an_unscored_answer_moves_the_resistance_to_its_limits() -> None:
    # The trial item's label is yes.
    worst, best = metric_of(BENCHMARK)().ends()
    assert (worst["asked_no"], best["asked_no"]) == (1, 1)
    assert (worst["right_no"], best["right_no"]) == (0, 1)
