"""What a calibration says of its labels and of the judge."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.calibration import calibrated, labels_file
from support.messages import expected_message
from support.running import read_rows


def test_labels_chosen_by_their_verdict_are_recognised(folder: Path, tmp_path: Path) -> None:
    lines = [
        {"item": row["id"], "claim": 1, "label": "not_supported"}
        for row in read_rows(folder / "items.jsonl")
        if row["statistics"]["hallucinated"]
    ]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert found["chair_i"].recommended == "raw"
    assert "no random sample" in found["chair_i"].reason
    assert any(
        expected_message("labels.labelled_claims:differ-from-its-verdicts-on-all-claims") in note
        for note in found.notes
    )
    assert any(
        expected_message("labels.labelled_claims:no-other-claim-is-labelled") in note
        for note in found.notes
    )


@pytest.mark.parametrize("agree", [False, True])
def test_annotators_who_disagree_have_a_note(folder: Path, tmp_path: Path, agree: bool) -> None:
    lines = [
        {
            "item": row["id"],
            "claim": 0,
            "annotator": who,
            "label": "supported" if yes else "not_supported",
        }
        for place, row in enumerate(read_rows(folder / "items.jsonl"))
        for at, who in enumerate("abc")
        for yes in [place % 2 == 0 if agree else (place + at) % 2 == 0]
    ]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert found.alpha is not None
    told = [note for note in found.notes if "annotators agree too little" in note]
    if agree:
        assert found.alpha == pytest.approx(1)
        assert told == []
    else:
        assert found.alpha < 0
        assert (
            expected_message(
                "labels.labelled_claims:alpha-is-the-usual-minimum-is-chance", found.alpha
            )
            in told[0]
        )


def test_labels_of_another_run_have_a_note(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    lines = [json.loads(line) for line in labels.read_text(encoding="utf-8").splitlines()]
    text = "".join(f"{json.dumps(line | {'signature': 'chair|other'})}\n" for line in lines)
    labels.write_text(text, encoding="utf-8")
    assert (
        expected_message("labels.label_files:labels-were-given-to-another-run-2")
        in calibrated(folder, labels).notes[-1]
    )


def test_a_judge_that_guesses_is_told_with_its_scale(folder: Path, tmp_path: Path) -> None:
    def half(item: str, _: int, __: bool) -> bool:
        return int(item) % 2 == 0

    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, half))
    for name, unit in (("chair_i", "claims"), ("chair_s", "items")):
        assert re.search(
            expected_message(
                "labels.score_corrections:tells-little-about-sensitivity-and-specificity-sum",
                unit,
            ),
            found[name].reason,
        )


def test_verdicts_that_no_label_contradicts_are_told(folder: Path, tmp_path: Path) -> None:
    def wrong(item: str, _: int, verdict: bool) -> bool:
        return verdict and int(item) % 2 == 0

    reason = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong, share=0.5))[
        "chair_i"
    ].reason
    assert (
        expected_message("labels.score_corrections:labelled-claims-that-the-judge-accepts-is")
        in reason
    )
    assert expected_message("labels.calibration_tables:that-the-judge-rejects") not in reason
    everything = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong))
    assert "None of" not in everything["chair_i"].reason
