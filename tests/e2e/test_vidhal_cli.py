"""VidHal on the command line: choices, orders, and files that do not fit."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.qa_running import assert_refused, report_of, tables_of, values_of
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
    assert (
        expected_message("asking.builders.model_written:hallujudge-score-vidhal-mcqa-responses")
        in run.stderr
    )
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
        ["no options: action_1", "same release"],
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
    "options whose keys are not letters": (
        PREDICTIONS,
        {**DISPLAY, "action_1": {"my_A": "2", "B": "1", "C": "3"}},
        ["not one letter: action_1 ('my_A')"],
    ),
    "options that are nothing": (
        PREDICTIONS,
        [],
        ["not one JSON object", "options are an object"],
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


def scored(folder: Path, predictions: Any, metric: str, display: Any = DISPLAY) -> Path:
    folder.mkdir()
    assert vidhal(folder, predictions, metric=metric, display=display).returncode == 0
    return folder / "out"


def orders_of(letters: str) -> dict[str, str]:
    return {f"action_{n}": ", ".join(order) for n, order in enumerate(letters.split())}


def test_input_order_bias(tmp_path: Path) -> None:
    # The right order is A, B, C in the first run and C, B, A in the second.
    other = {video: {"A": "3", "B": "2", "C": "1"} for video in DISPLAY}
    first = {video: {"A": "1", "B": "2", "C": "3"} for video in DISPLAY}
    runs = [
        scored(tmp_path / "a", orders_of("ABC ABC CBA ABC"), "vidhal-ordering", first),
        scored(tmp_path / "b", orders_of("CBA ABC ABC ABC"), "vidhal-ordering", other),
    ]
    names = ("--name", "model=m,order=1 2 3", "--name", "model=m,order=3 2 1")
    found, _ = tables_of(*runs, *names)
    assert [(row["order"], row["score"]) for row in found["input_order"]] == [
        ("1 2 3", 0.75),
        ("3 2 1", 0.25),
    ]
    (row,) = found["input_order_sensitivity"]
    assert (row["mean"], row["std"], row["spread"]) == (0.5, 0.25, 0.5)
    assert (row["orders"], row["same_answer"]) == (2, 0.5), "the first two captions' ranks agree"
    assert [row["label"] for row in found["display_order"]] == ["A, B, C", "C, B, A"]


def test_reliance_on_a_frame_and_consensus(tmp_path: Path) -> None:
    letters = {"video": "B B A C", "frame": "B A A A"}
    runs = {
        kind: scored(
            tmp_path / kind,
            {f"action_{n}": letter for n, letter in enumerate(text.split())},
            "vidhal-mcqa",
        )
        for kind, text in letters.items()
    }
    names = ("--name", "model=m,input=video", "--name", "model=m,input=frame")
    found, notes = tables_of(*runs.values(), *names)
    (row,) = found["frame_reliance"]
    assert (row["overall"], row["correct"], row["incorrect"], row["n"]) == (0.5, 0.5, 0.5, 4)
    assert "give runs of vidhal-mcqa of several models" in notes
    found, _ = tables_of(*runs.values(), "--name", "one", "--name", "two")
    assert [row["consensus"] for row in found["consensus"]] == [0.5, 0.5]
    assert [row["consensus"] for row in found["consensus_pairs"]] == [0.5]
    assert "frame_reliance" not in found
    other = {video: {"A": "3", "B": "1", "C": "2"} for video in DISPLAY}
    odd = scored(tmp_path / "odd", dict.fromkeys(DISPLAY, "B"), "vidhal-mcqa", other)
    refused = here("analyze", runs["video"], odd, *names)
    assert_refused(refused, "action_0", "the same --options")


def test_answers_about_pairs(tmp_path: Path) -> None:
    run = scored(tmp_path / "a", orders_of("BAC BAC CAB AB"), "vidhal-ordering")
    pairs = [
        *[("action_0", "AB", "B"), ("action_0", "BC", "B"), ("action_0", "AC", "A")],
        *[("action_1", "AB", "B"), ("action_1", "BC", "C")],
        *[("action_3", "AB", "B"), ("action_3", "BC", "B")],
    ]
    rows = [{"video": video, "pair": list(pair), "chosen": chosen} for video, pair, chosen in pairs]
    path = write_lines(tmp_path / "pairs.jsonl", rows)
    found, notes = tables_of(run, "--pairs", path)
    assert "--pairs" not in notes
    (row,) = found["transitive_inconsistency"]
    # Both orders are B, A, C; the fourth is invalid.
    assert (row["p_ti"], row["inconsistent"], row["videos"]) == (0.25, 1, 4)
    assert (row["p_ti_of_asked"], row["asked"]) == (0.5, 2)
    (row,) = found["pair_orders"]
    # The answers say B, A, C and C, B, A; those about the third video leave two orders open.
    assert (row["orders"], row["videos"], row["same_as_run"]) == (2, 3, 1)
    # Ranks 3, 1, 2 by formulas 2 to 6; the best and the worst order are 1 apart.
    gain = (1 + 3 / math.log2(3) + 2 / 2) - (1 + 2 / math.log2(3) + 3 / 2)
    assert row["ndcg"] == pytest.approx((1 + gain) / 2)
    assert [row["hm"] for row in found["misalignment"]] == [
        values_of(run)[name] for name in ("hm_2_1", "hm_3_1", "hm_3_2")
    ]


@pytest.mark.parametrize(
    ("option", "row", "said"),
    [
        ("--pairs", {"video": "x", "pair": ["A", "B"], "chosen": "A"}, "'x'"),
        ("--pairs", {"video": "action_0", "pair": ["A", "D"], "chosen": "A"}, "['A', 'D']"),
        ("--pairs", {"video": "action_0", "pair": ["A", "A"], "chosen": "A"}, "['A', 'A']"),
        ("--pairs", {"video": "action_0", "pair": ["A", "B"], "chosen": "C"}, "'C'"),
        ("--people", {"video": "action_0", "choices": [1, 0]}, "[1, 0]"),
        ("--people", {"video": "x", "choices": [True]}, "'x'"),
        ("--votes", {"video": "v", "criterion": "realism", "answer": "maybe"}, "'maybe'"),
        ("--votes", {"video": "v", "criterion": "beauty", "answer": "yes"}, "'beauty'"),
    ],
)
def test_wrong_files_of_analyses(
    tmp_path: Path, option: str, row: dict[str, Any], said: str
) -> None:
    run = scored(tmp_path / "a", orders_of("BAC BAC CAB AB"), "vidhal-ordering")
    path = write_lines(tmp_path / "given.jsonl", [row])
    assert_refused(here("analyze", run, option, path), "given.jsonl", said)


def test_people_and_judges_of_captions(tmp_path: Path) -> None:
    run = scored(tmp_path / "a", PREDICTIONS, "vidhal-mcqa")
    choices = {"action_0": [True, True, False], "action_1": [True, False], "action_2": [True]}
    people = [{"video": video, "choices": given} for video, given in choices.items()]
    votes = [
        {"video": "action_0", "judge": judge, "criterion": kind, "prompt": "1", "answer": said}
        for kind in ("realism", "ordering", "relevance")
        for judge, said in (("a", "yes"), ("b", "no"), ("c", None))
    ]
    found, notes = tables_of(
        *(run, "--people", write_lines(tmp_path / "people.jsonl", people)),
        *("--votes", write_lines(tmp_path / "votes.jsonl", votes)),
    )
    shares = {row["aspect"]: row["agreement"] for row in found["order_agreement"]}
    assert shares == pytest.approx({"action": 7 / 12, "order": 1, "all": (2 / 3 + 0.5 + 1) / 3})
    assert found["misaligned_videos"] == [{"video": "action_1", "agreement": 0.5, "people": 2}]
    (row,) = found["caption_quality"]
    # One yes, one no and one reply that was not read, which counts as no yes.
    assert (row["realism"], row["total"]) == (pytest.approx(1 / 3), pytest.approx(1))
    assert row["unread"] == 3
    assert "--group-by subaspect" in notes


def test_sub_aspects(tmp_path: Path) -> None:
    predictions = {video: {"response": letter} for video, letter in PREDICTIONS.items()}
    rows = [{"video": video, **row} for video, row in predictions.items()]
    videos = [{**row, "subaspect": "color" if n == 1 else ""} for n, row in enumerate(VIDEOS)]
    (tmp_path / "options.json").write_text(json.dumps(DISPLAY))
    (tmp_path / "videos.json").write_text(json.dumps(videos))
    write_lines(tmp_path / "rows.jsonl", rows)
    ran = here(
        *("score", "vidhal-mcqa", "-r", tmp_path / "rows.jsonl", "-R", tmp_path / "videos.json"),
        *("--options", tmp_path / "options.json", "--group-by", "subaspect"),
        *("--out", tmp_path / "out"),
    )
    assert ran.returncode == 0, ran.stderr
    found, _ = tables_of(tmp_path / "out")
    groups = {row["group"]: (row["score"], row["videos"]) for row in found["sub_aspects"]}
    assert groups == {"action": (0.5, 2), "color": (0, 1), "order": (1, 2)}
