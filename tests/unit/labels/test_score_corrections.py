"""Corrected scores of whole runs: they become those of full labels, or stay raw for a reason."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.calibration import calibrated, labels_file
from support.messages import expected_message
from support.running import here, read_rows

from hallujudge.labels.calibration_tables import calibration_page
from hallujudge.metrics.calibration import ScoreEstimate
from hallujudge.sdk import Client
from hallujudge.sdk.calibration import write_calibration
from hallujudge.sdk.report.report_text import calibration_sentences


def test_labels_that_agree_change_nothing(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    found = calibrated(folder, labels)
    assert list(found.scores) == ["chair_i", "chair_s"]
    for score in found.scores.values():
        assert score.raw is not None
        assert score.corrected is not None
        assert score.corrected.value == pytest.approx(score.raw.value)
        assert score.recommended == "ppi++"
    assert found.accuracy.sensitivity.value == found.accuracy.specificity.value == 1
    assert found.kappa == 1
    assert found.sampled_by == "item"


def test_scores_become_those_of_full_labels(folder: Path, tmp_path: Path) -> None:
    """A label is wrong of every other rejected mention: both scores are halved."""

    def wrong(item: str, _: int, verdict: bool) -> bool:
        return verdict and int(item) % 2 == 0

    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong))
    rows = read_rows(folder / "items.jsonl")
    even = [row for row in rows if int(row["id"]) % 2 == 0]
    hallucinated = sum(row["statistics"]["hallucinated"] for row in even)
    mentioned = sum(row["statistics"]["mentioned"] for row in rows)
    captions = sum(row["statistics"]["captions_with_hallucination"] for row in even)
    for name, expected in (("chair_i", hallucinated / mentioned), ("chair_s", captions / 120)):
        score = found[name]
        assert score.corrected is not None
        assert score.corrected.value == pytest.approx(expected)
        assert score.run_low == score.run_high == pytest.approx(expected)


def test_a_sample_of_captions_estimates_all(folder: Path, tmp_path: Path) -> None:
    def wrong(_: str, index: int, __: bool) -> bool:
        return index == 1

    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong, share=0.4))
    score = found["chair_i"]
    assert score.corrected is not None
    assert score.run_low is not None
    assert score.run_high is not None
    # 96 captions have two mentions, 24 have one.
    assert score.run_low <= 96 / 216 <= score.run_high
    assert score.corrected.value == pytest.approx(96 / 216, abs=0.05)
    # That the labels are a random sample is known by a plan alone.
    assert "if the labels are a random sample of the run, which no plan says" in score.reason
    assert (
        expected_message("labels.labelled_claims:no-plan-says-how-the-labels-were")
        in found.notes[0]
    )


def test_labels_of_single_mentions_do_not_correct_captions(folder: Path, tmp_path: Path) -> None:
    lines = [
        {"item": row["id"], "claim": 0, "label": "supported"}
        for row in read_rows(folder / "items.jsonl")
    ]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert (found.sampled_by, found["chair_s"].corrected) == ("claim", None)
    assert found["chair_s"].recommended == "raw"
    assert (
        expected_message("labels.score_corrections:whole-items-were-not-drawn")
        in found["chair_s"].reason
    )


def test_labels_of_whole_captions_correct_captions_alone(folder: Path, tmp_path: Path) -> None:
    rows = read_rows(folder / "items.jsonl")[:40]
    path = tmp_path / "l.jsonl"
    lines = [{"item": row["id"], "label": "supported"} for row in rows]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert (found.sampled_by, found.labels) == ("item", 40)
    assert found["chair_i"].reason == expected_message(
        "labels.score_corrections:no-claim-that-counts-in-it-is"
    )
    corrected = found["chair_s"].corrected
    assert corrected is not None
    assert corrected.value == 0


def test_error_rates_that_do_not_fit_the_run_correct_nothing(folder: Path, tmp_path: Path) -> None:
    """All rejected mentions were labelled, and a tenth of the others."""

    def wrong(item: str, _: int, verdict: bool) -> bool:
        return verdict and int(item) % 3 == 0

    everything = labels_file(tmp_path / "all.jsonl", folder, wrong).read_text(encoding="utf-8")
    rejected = {
        (row["id"], place)
        for row in read_rows(folder / "items.jsonl")
        for place, span in enumerate(row["evidence"]["mentioned_spans"])
        if span in row["evidence"]["hallucinated_spans"]
    }
    lines = [json.loads(line) for line in everything.splitlines()]
    others = [line for line in lines if (line["item"], line["claim"]) not in rejected]
    chosen = [line for line in lines if (line["item"], line["claim"]) in rejected] + others[::10]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in chosen), encoding="utf-8")
    score = calibrated(folder, path)["chair_i"]
    assert (score.recommended, score.rogan_gladen) == ("raw", None)
    assert (
        expected_message("labels.score_corrections:finds-no-share-that-fits-their-error")
        in score.reason
    )


def test_a_few_labels_are_too_few(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda *_: False, share=0.05)
    found = calibrated(folder, labels)
    assert found["chair_i"].recommended == "raw"
    assert (
        expected_message("labels.score_corrections:labels-say-too-little-label-at-least")
        in found["chair_i"].reason
    )
    assert found.method.startswith("raw/n=")


def test_groups_are_corrected_where_labels_suffice(tmp_path: Path) -> None:
    captions = [
        {"id": n, "caption": "A dog and a cat.", "model": "one" if n % 10 else "two"}
        for n in range(60)
    ]
    with Client.embedded() as client:
        report = client.score(
            "chair", responses=captions, references={n: ["dog"] for n in range(60)},
            group_by=["model"],
        )  # fmt: skip
    report.save(tmp_path)
    labels = labels_file(tmp_path / "l.jsonl", tmp_path, lambda _, __, verdict: verdict)
    found = calibrated(tmp_path, labels)
    assert {name: list(values) for name, values in found.groups.items()} == {"model": ["one"]}
    corrected = found.groups["model"]["one"]["chair_i"].corrected
    assert corrected is not None
    assert corrected.value == pytest.approx(0.5)
    write_calibration(tmp_path, found)
    shown = here("report", tmp_path, "--format", "markdown").stdout
    [one] = re.findall(r"^\| one \|.*$", shown, re.MULTILINE)
    assert re.search(r"corrected 0\.5000 \[0\.\d+, 0\.\d+\]", one)
    # Ten labels or so say too little about a group.
    [two] = re.findall(r"^\| two \|.*$", shown, re.MULTILINE)
    assert "corrected" not in two
    table = here("report", tmp_path, "--format", "table").stdout
    assert re.search(r"^group .* corrected", table, re.MULTILINE)
    assert here("report", tmp_path, "--format", "html").returncode == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<small>corrected 0.5000 [" in page


def test_a_raw_score_that_is_expected_to_be_nearer_is_told(folder: Path, tmp_path: Path) -> None:
    """Labels that agree leave no bias to see; labels that reject no mention show a large one."""
    agreeing = labels_file(tmp_path / "a.jsonl", folder, lambda _, __, verdict: verdict, share=0.3)
    found = calibrated(folder, agreeing)
    score = found["chair_i"]
    assert score.recommended == "ppi++"
    assert score.raw_is_nearer
    assert score.raw_error == 0
    assert (
        expected_message("labels.score_corrections:the-raw-score-is-expected-to-be") in score.reason
    )
    assert "it differs by 0.000" in score.reason
    ran = here("calibrate", folder, "--labels", agreeing)
    assert ran.returncode == 0, ran.stderr
    assert expected_message("labels.score_corrections:the-raw-score-is-expected-to-be") in " ".join(
        ran.stdout.split()
    )
    told = " ".join(calibration_sentences(found))
    assert (
        expected_message("sdk.report.report_text:expected-to-be-nearer-than-the-corrected") in told
    )
    (folder / "calibration.json").unlink()

    none = labels_file(tmp_path / "n.jsonl", folder, lambda _, __, ___: False, share=0.3)
    score = calibrated(folder, none)["chair_i"]
    assert not score.raw_is_nearer
    assert score.raw is not None
    assert score.raw_error == pytest.approx(score.raw.value, rel=0.1)
    assert expected_message("labels.score_corrections:expected-to-be-nearer") not in score.reason


def test_a_run_that_is_labelled_as_a_whole_prefers_no_score(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    score = calibrated(folder, labels)["chair_i"]
    assert (score.raw_error, score.corrected_error, score.raw_is_nearer) == (0, 0, False)


@pytest.mark.parametrize(
    ("low", "told"), [(0.1, "25% narrower than"), (0.3, "50% wider than"), (0.2, "as wide as")]
)
def test_widths_are_compared_with_those_of_labels_alone(
    folder: Path, tmp_path: Path, low: float, told: str
) -> None:
    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, lambda _, __, v: v))
    score = replace(
        found["chair_i"],
        corrected=ScoreEstimate(value=0.4, ci_low=0.2, ci_high=0.5),
        labels_alone=ScoreEstimate(value=0.4, ci_low=low, ci_high=0.5),
    )
    sentences = calibration_page(replace(found, scores={"chair_i": score})).sentences
    assert (
        expected_message("labels.calibration_tables:chair-the-interval-is-that-of-the", told)
        in sentences
    )
