"""VidHal on the command line: choices, orders, and files that do not fit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.qa_running import assert_refused, report_of, values_of
from support.qa_samples import write_lines
from support.running import here

CAPTIONS = {"1": "a man runs", "2": "a man walks", "3": "a man sits"}


VIDEOS = [
    {"video": f"action_{n}", "captions": CAPTIONS, "aspect": "action" if n < 2 else "order"}
    for n in range(4)
]


DISPLAY = {f"action_{n}": {"A": "2", "B": "1", "C": "3"} for n in range(4)}


PREDICTIONS = {f"action_{n}": answer for n, answer in enumerate(["B", "A", "B", "a man runs"])}


def vidhal(
    folder: Path,
    predictions: Any,
    *more: str | Path,
    metric: str = "vidhal-mcqa",
    display: Any = DISPLAY,
) -> subprocess.CompletedProcess[str]:
    (folder / "predictions.json").write_text(
        predictions if isinstance(predictions, str) else json.dumps(predictions)
    )
    (folder / "annotations.json").write_text(json.dumps(VIDEOS))
    (folder / "options.json").write_text(json.dumps(display))
    return here(
        *("score", metric, "--responses", folder / "predictions.json"),
        *("--references", folder / "annotations.json", "--options", folder / "options.json"),
        *("--out", folder / "out", "--overwrite"),
        *more,
    )


def test_choices(tmp_path: Path) -> None:
    assert vidhal(tmp_path, PREDICTIONS).returncode == 0
    report = report_of(tmp_path / "out")
    assert report["scores"]["accuracy"]["value"] == 0.75
    assert report["groups"]["aspect"]["action"]["accuracy"]["value"] == 0.5
    run = vidhal(
        tmp_path, {**PREDICTIONS, "action_0": "(B)", "action_1": "?"}, "--variant", "corrected"
    )
    assert run.returncode == 3, run.stderr
    report = report_of(tmp_path / "out")
    assert report["scores"]["accuracy"]["value"] == 1
    assert report["coverage"]["reasons"] == {"ANSWER_UNPARSED": 1}


def test_answers_may_have_a_line_for_each_video(tmp_path: Path) -> None:
    lines = [json.dumps({video: answer}) for video, answer in PREDICTIONS.items()]
    run = vidhal(tmp_path, "\n".join(lines))
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "out")["accuracy"] == 0.75
    run = vidhal(tmp_path, "\n".join([*lines, json.dumps(PREDICTIONS)]))
    assert_refused(run, "predictions.json line 5: expected one id with its answer")
    run = vidhal(tmp_path, "\n".join([*lines, lines[0]]))
    assert_refused(run, "action_0")


def test_orders_of_every_shape(tmp_path: Path) -> None:
    predictions = {
        "action_0": ["B", "A", "C"],
        "action_1": "A, B",
        "action_2": ["a man runs", "a man walks", "a man sits"],
        "action_3": ["C", "A", "B"],
    }
    run = vidhal(tmp_path, predictions, metric="vidhal-ordering")
    assert run.returncode == 0, run.stderr
    values = values_of(tmp_path / "out")
    assert values == {
        "ndcg": 0.5,
        "invalid_response_rate": 0.25,
        "regurgitation_rate": 0.5,
        "hm_2_1": 0.25,
        "hm_3_1": 0.25,
        "hm_3_2": 0.25,
    }
    rows = [{"video": video, "prediction": order} for video, order in predictions.items()]
    write_lines(tmp_path / "rows.jsonl", rows)
    run = here(
        *("score", "vidhal-ordering", "--responses", tmp_path / "rows.jsonl"),
        *("--options", tmp_path / "options.json", "--references", tmp_path / "annotations.json"),
        *("--out", tmp_path / "lines", "--variant", "corrected"),
    )
    assert run.returncode == 0, run.stderr
    assert values_of(tmp_path / "lines")["hm_2_1"] == pytest.approx(1 / 3)


def test_answers_of_the_other_protocol_are_noted(tmp_path: Path) -> None:
    letters = dict.fromkeys(PREDICTIONS, "B")
    run = vidhal(tmp_path, letters, metric="vidhal-ordering")
    assert "predictions.json looks like VidHal's chosen letters by video" in run.stderr
    assert expected_message("sdk.cli.vidhal:hallujudge-score-vidhal-mcqa-responses") in run.stderr
    assert "looks like" not in vidhal(tmp_path, letters).stderr


VIDHAL_BAD: dict[str, tuple[Any, Any, list[str]]] = {
    "a video too many": ({**PREDICTIONS, "x_9": "A"}, DISPLAY, ["references lack: x_9"]),
    "a video missing": (
        {k: v for k, v in PREDICTIONS.items() if k != "action_2"},
        DISPLAY,
        ["have no answer: action_2"],
    ),
    "a video twice": ('{"action_0": "A", "action_1": "B", "action_0": "C"}', DISPLAY, ["action_0"]),
    "options of another release": (
        PREDICTIONS,
        {k: v for k, v in DISPLAY.items() if k != "action_1"},
        ["no display order: action_1", "same release"],
    ),
    "options for fewer captions": (
        PREDICTIONS,
        {**DISPLAY, "action_1": {"A": "2", "B": "1"}},
        ["letters than captions: action_1", "same release"],
    ),
    "options that are not a permutation": (
        PREDICTIONS,
        {**DISPLAY, "action_1": {"A": "1", "B": "1", "C": "3"}},
        ["not a permutation of the ranks: action_1"],
    ),
    "options that are nothing": (
        PREDICTIONS,
        [],
        ["not one JSON object", "display orders are an object"],
    ),
    "answers that are numbers": (
        dict.fromkeys(PREDICTIONS, 1),
        DISPLAY,
        ["action_0", "is a number"],
    ),
}


@pytest.mark.parametrize("case", list(VIDHAL_BAD))
def test_bad_vidhal_input(tmp_path: Path, case: str) -> None:
    predictions, display, said = VIDHAL_BAD[case]
    assert_refused(vidhal(tmp_path, predictions, display=display), *said)


@pytest.mark.parametrize("metric", ["vidhal-mcqa", "vidhal-ordering"])
def test_no_score_without_the_display_order(tmp_path: Path, metric: str) -> None:
    vidhal(tmp_path, PREDICTIONS)
    run = here(
        *("score", metric, "--responses", tmp_path / "predictions.json"),
        *("--references", tmp_path / "annotations.json", "--out", tmp_path / "none"),
    )
    assert_refused(run, "--options")
    assert not (tmp_path / "none").exists()


def test_display_orders_of_more_videos_are_noted(tmp_path: Path) -> None:
    display = {f"v{n}": {"A": "2", "B": "1"} for n in range(3)}
    for name, content in (
        ("options", display),
        ("answers", {"v0": "B", "v1": "A"}),
        ("videos", [{"video": f"v{n}", "captions": {"1": "x", "2": "y"}} for n in range(2)]),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    run = here(
        *("score", "vidhal-mcqa", "--responses", tmp_path / "answers"),
        *("--references", tmp_path / "videos", "--options", tmp_path / "options"),
        *("--out", tmp_path / "out"),
    )
    assert run.returncode == 0, run.stderr
    assert (
        expected_message("sdk.archives.answer_bundles:no-annotations-for-of-the-videos-with")
        in run.stderr
    )
