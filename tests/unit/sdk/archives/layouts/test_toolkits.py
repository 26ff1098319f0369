"""Layouts of EvalScope and of VLMEvalKit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.archive_samples import write_table

from hallujudge.sdk import Client, score_all
from hallujudge.sdk.archives import inspect_archives

PICTURE = {"type": "image", "image": "data:image/png;base64,iVBORw==", "detail": "auto"}
FIGURE = {
    "category": "VD",
    "subcategory": "chart",
    "visual_input": "1",
    "set_id": "0",
    "figure_id": "0",
    "question_id": "0",
    "gt_answer": "1",
    "gt_answer_details": "It is.",
}


def messages(text: str) -> list[dict[str, Any]]:
    asked = {"type": "text", "text": "Is there a dog?\nPlease answer YES or NO."}
    answer = {"id": "a", "content": text, "role": "assistant", "model": "mock"}
    return [{"id": "q", "content": [asked, PICTURE], "role": "user"}, answer]


def prediction(index: int, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    choice = {"message": messages(text)[-1], "stop_reason": "stop"}
    return {
        "index": index,
        "model": "mock",
        "model_output": {"id": None, "model": "mock", "choices": [choice], "error": None},
        "messages": messages(text),
        "metadata": known,
    }


def review(index: int, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    score = {"value": {"acc": 1}, "status": "success", "prediction": text}
    label = "YES" if known.get("gt_answer") == "1" else known.get("answer")
    return {
        "index": index,
        "target": [label],
        "messages": messages(text),
        "sample_score": {"score": score, "sample_id": index, "sample_metadata": known},
    }


REPORT = {
    "schema_version": 2,
    "name": "mock@pope",
    "dataset_name": "pope",
    "model_name": "mock",
    "metrics": [{"name": "accuracy", "num": 6, "score": 0.5, "categories": []}],
    "num": 6,
}
WRITERS = {"predictions": prediction, "reviews": review}
SUBSETS = ("adversarial", "popular", "random")


def write(root: Path, kind: str, task: str, samples: list[tuple[str, dict[str, Any]]]) -> Path:
    path = root / "20261128_101112" / kind / "mock" / f"{task}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [WRITERS[kind](index, text, known) for index, (text, known) in enumerate(samples)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def pope(subset: str) -> list[tuple[str, dict[str, Any]]]:
    """Ids of questions begin anew in each subset."""
    labels = {"YES": "Yes, there is.", "NO": "Yes."}
    return [
        (text, {"id": str(n), "answer": label, "category": subset, "question_id": str(n)})
        for n, (label, text) in enumerate(labels.items())
    ]


@pytest.mark.parametrize("kind", WRITERS)
def test_answers_of_pope_have_their_labels(tmp_path: Path, kind: str) -> None:
    for subset in SUBSETS:
        write(tmp_path, kind, f"pope_{subset}", pope(subset))
    with Client.embedded() as client:
        report = client.score("pope", responses=tmp_path)
    assert (report.coverage.scored, report.scores["accuracy"].value) == (6, 0.5)
    assert sorted(report.groups["category"]) == list(SUBSETS)


@pytest.mark.parametrize("kind", WRITERS)
def test_answers_of_hallusion_bench_have_their_places(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, "hallusion_bench_default", [("Yes, it is.", FIGURE)])
    with Client.embedded() as client:
        report = client.score("hallusion-bench", responses=path)
    scores = {name: report.scores[name].value for name in ("pair_accuracy", "figure_accuracy")}
    assert scores == {"pair_accuracy": 1.0, "figure_accuracy": 1.0}
    [found] = inspect_archives([path])
    assert (found.model, found.task) == ("mock", "hallusion_bench_default")


def test_a_failed_sample_is_unscored(tmp_path: Path) -> None:
    path = write(tmp_path, "predictions", "pope_random", pope("random"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["model_output"] |= {"choices": [], "error": "timed out"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Client.embedded() as client:
        report = client.score("pope", responses=path)
    assert dict(report.coverage.reasons) == {"RESPONSE_FAILED": 1}


def test_an_overview_scores_each_prediction_once(tmp_path: Path) -> None:
    """Reviews repeat predictions, in a folder of their own."""
    for kind in WRITERS:
        for subset in SUBSETS:
            write(tmp_path / "logs", kind, f"pope_{subset}", pope(subset))
        write(tmp_path / "logs", kind, "hallusion_bench_default", [("Yes.", FIGURE)])
    report = tmp_path / "logs" / "20261128_101112" / "reports" / "mock" / "pope.json"
    report.parent.mkdir(parents=True)
    report.write_text(json.dumps(REPORT))
    with Client.embedded() as client:
        overview = score_all(tmp_path / "logs", tmp_path / "out", client=client)
    assert overview.left_out == ()
    wanted = ["hallusion-bench", *(f"pope pope_{subset}" for subset in SUBSETS)]
    assert [run.name for run in overview.runs] == wanted
    assert {run.model for run in overview.runs} == {"mock"}


@pytest.mark.parametrize("suffix", ["xlsx", "tsv"])
def test_a_blank_cell_of_vlmevalkit_counts_as_an_empty_answer(tmp_path: Path, suffix: str) -> None:
    """VLMEvalKit's table takes it for an answer that says neither yes nor no."""
    rows = [
        {"index": n, "question": "Is there a dog?", "answer": "Yes", "prediction": text}
        for n, text in enumerate(["Yes", "Yes", None])
    ]
    path = tmp_path / f"model_POPE.{suffix}"
    write_table(path, rows)
    with Client.embedded() as client:
        report = client.score("pope", responses=path, variant="vlmevalkit")
        counted = client.score(
            "pope", responses=path, variant="vlmevalkit", options={"count_empty": "true"}
        )
    assert dict(report.coverage.reasons) == {"RESPONSE_EMPTY": 1}
    assert counted.scores["accuracy"].value == 2 / 3


@pytest.mark.parametrize("more", [{}, {"extracted": "Yes", "score": 1}])
@pytest.mark.parametrize("kind", ["yes_no", "multiple_choice"])
def test_a_type_beside_a_category_of_amber_makes_no_naturalbench_of_it(
    tmp_path: Path, kind: str, more: dict[str, object]
) -> None:
    row = {"index": 1, "question": "Is it red?", "answer": "yes", "prediction": "Yes"}
    row |= {"category": "discriminative-attribute-state", "type": kind, **more}
    path = tmp_path / "model_AMBER.tsv"
    write_table(path, [row, {**row, "index": 2}])
    [summary] = inspect_archives([path])
    assert summary.metrics == ("amber",)
