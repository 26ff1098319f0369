"""HallusionBench on the command line: answers, labels, joins and bad input."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.hallusion_bench_samples import record
from support.messages import expected_message
from support.pages import Page
from support.qa_running import assert_refused, report_of, values_of
from support.qa_samples import write_lines
from support.running import here

SET = [
    record("VS_chart_0_0_0", 2, model_prediction="I cannot tell."),
    record("VS_chart_0_1_0", 0, model_prediction="No."),
    record("VD_map_0_0_0", 1),
    record("VD_map_0_1_0", 0, gt_answer="0"),
]


def score(folder: Path, rows: Sequence[Mapping[str, Any]], *more: str | Path) -> Any:
    path = write_lines(folder / "answers.jsonl", rows)
    given = (
        "score",
        "hallusion-bench",
        "--responses",
        path,
        "--out",
        folder / "out",
        "--overwrite",
    )
    return here(*given, *more)


def test_answers_are_parsed_and_compared_with_figure_0(tmp_path: Path) -> None:
    rows = [{**row, "correctness": None, "same": None} for row in SET]
    assert score(tmp_path, rows).returncode == 0
    values = values_of(tmp_path / "out")
    # Without a figure "I cannot tell" is right; the second yes about the map copies the first.
    assert values["question_accuracy"] == 0.5
    assert (values["mixed"], values["visual_illusion"]) == (0.5, 0.5)
    groups = report_of(tmp_path / "out")["groups"]
    assert set(groups) == {"category", "subcategory"}
    assert set(groups["subcategory"]) == {"chart", "map"}


def test_sets_are_the_clusters(tmp_path: Path) -> None:
    assert score(tmp_path, SET).returncode == 0
    lines = (tmp_path / "out" / "items.jsonl").read_text().splitlines()
    clusters = {json.loads(line)["group_id"] for line in lines}
    assert clusters == {"VS_chart_0", "VD_map_0"}


def test_causes_are_not_defined_without_same(tmp_path: Path) -> None:
    rows = [{**row, "same": None} for row in SET]
    assert score(tmp_path, rows, "--correctness", "given").returncode == 0
    values = values_of(tmp_path / "out")
    assert values["mixed"] is None
    assert values["pair_mixed"] is None
    assert values["question_mixed"] == 1


@pytest.mark.parametrize("label", [1, 1.0, True, "1", "yes", "Yes.", " YES "])
def test_labels_are_read_in_any_form(tmp_path: Path, label: object) -> None:
    rows = [{**row, "gt_answer": label, "correctness": None} for row in SET]
    assert score(tmp_path, rows).returncode == 0
    assert values_of(tmp_path / "out")["question_accuracy"] == 0.75


def test_an_unscored_answer_leaves_its_pair_open(tmp_path: Path) -> None:
    rows = [{**row, "correctness": None} if row is SET[1] else row for row in SET]
    assert score(tmp_path, rows, "--correctness", "given").returncode == 3
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {"VERDICT_NULL": 1}
    assert report["scores"]["pair_accuracy"] == {
        **report["scores"]["pair_accuracy"],
        "value": 0,
        "n": 1,
    }
    assert report["coverage"]["bounds"]["pair_accuracy"] == {"best": 0.5, "worst": 0}


def test_questions_come_from_the_references(tmp_path: Path) -> None:
    questions = tmp_path / "HallusionBench.json"
    questions.write_text(json.dumps(SET))
    answers = [
        {key: value for key, value in row.items() if key not in ("gt_answer", "correctness")}
        for row in SET
    ]
    assert score(tmp_path, answers, "--references", questions).returncode == 0
    assert values_of(tmp_path / "out")["question_accuracy"] == 0.5
    assert_refused(score(tmp_path, answers), "gt_answer", "VD_map_0_0_0", "--references")
    refused = score(tmp_path, answers[1:], "--references", questions)
    assert_refused(refused, "no answer", "VS_chart_0_0_0")
    assert expected_message("sdk.archives.readers:give-it-as-responses") not in refused.stderr


def test_samples_of_lmms_eval_are_read(tmp_path: Path) -> None:
    rows = [{"doc_id": n, "filtered_resps": [], "aAcc": row} for n, row in enumerate(SET)]
    assert score(tmp_path, rows).returncode == 0
    assert values_of(tmp_path / "out")["question_accuracy"] == 0.5


def test_tables_of_vlmevalkit_join_the_questions(tmp_path: Path) -> None:
    questions = tmp_path / "HallusionBench.json"
    questions.write_text(json.dumps(SET))
    rows = [
        {
            "index": f"{row['category']}_{row['subcategory']}_x_0_{row['figure_id']}_0",
            "category": row["category"],
            "l2-category": row["subcategory"],
            "question": row["question"],
            "answer": "Yes" if row["gt_answer"] == "1" else "No",
            "prediction": row["model_prediction"],
        }
        for row in SET
        if row["visual_input"] != "0"
    ]
    given = ("--references", questions, "--allow-missing", "--variant", "image-only")
    assert score(tmp_path, rows, *given).returncode == 0
    report = report_of(tmp_path / "out")
    assert report["scores"]["question_accuracy"]["value"] == pytest.approx(1 / 3)
    assert report["coverage"]["items"] == 3
    joined = report["scores"]
    # The table alone says all but which figures were edited.
    assert score(tmp_path, rows, "--variant", "image-only").returncode == 0
    alone = report_of(tmp_path / "out")["scores"]
    unknown = {"easy_pair_accuracy", "hard_pair_accuracy"}
    differing = {name for name in joined if alone[name]["value"] != joined[name]["value"]}
    assert differing == unknown
    assert {alone[name]["value"] for name in unknown} == {None}


def test_answers_without_a_label_may_be_left_unscored(tmp_path: Path) -> None:
    bare = {**SET[3], "gt_answer": None, "correctness": None}
    assert score(tmp_path, [*SET[:3], bare], "--allow-unknown").returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"REFERENCE_MISSING": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"category": "VX"}, ("one of VD, VS", 'VX_map_0_1_0 ("VX")')),
        ({"visual_input": "3"}, ("visual_input", 'VD_map_0_1_0 ("3")')),
        ({"gt_answer": "maybe"}, ("neither yes nor no", 'VD_map_0_1_0 ("maybe")')),
        ({"correctness": "5"}, ("correctness", 'VD_map_0_1_0 ("5")')),
        ({"figure_id": "0"}, ("more than once", "VD_map_0_0_0")),
        ({"set_id": None}, ("set_id", "line 4")),
    ],
)
def test_bad_input_is_named(tmp_path: Path, change: dict[str, Any], said: tuple[str, ...]) -> None:
    assert_refused(score(tmp_path, [*SET[:3], {**SET[3], **change}]), *said)


def test_a_missing_correctness_key_is_named(tmp_path: Path) -> None:
    assert_refused(score(tmp_path, SET, "--map", "correctness=verdict"), "verdict")


def test_the_page_counts_wrong_answers(tmp_path: Path) -> None:
    assert score(tmp_path, SET, "--format", "html").returncode == 0
    columns = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).columns
    wrong = dict(zip(columns["ids"], columns["sides"][0]["wrong"], strict=True))
    assert (wrong["VS_chart_0_1_0"], wrong["VS_chart_0_0_0"]) == (1, 0)
