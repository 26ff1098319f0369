"""Calibrations as files and commands: what is written, read again and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.calibration import calibrated, labels_file
from support.comparison_runs import chair_run, pope_run
from support.messages import expected_message
from support.running import here, read_rows

from hallujudge.sdk.calibration import calibrate, read_calibration, write_calibration
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, UnsupportedError
from hallujudge.sdk.schemas import calibration_schema


def test_the_signature_names_labels_and_method(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    found = calibrated(folder, labels)
    assert (
        found.signature
        == f"{found.run_signature}|labels:{found.labels_sha256[:8]}|calibrated:ppi++/n=216"
    )
    again = calibrated(folder, labels)
    assert again == found


def test_a_calibration_is_read_again(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda *_: True, share=0.5)
    found = calibrated(folder, labels)
    path = write_calibration(tmp_path, found)
    kept = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(calibration_schema()).validate(kept)
    assert read_calibration(tmp_path, found.run_signature) == found
    assert read_calibration(tmp_path / "other", "s") is None
    with pytest.raises(ArchiveError, match="calibrates another run"):
        read_calibration(tmp_path, "other")
    odd: tuple[dict[str, object], ...] = (
        {"kappa": float("nan")},
        {"labels": "many"},
        {"labels": -5},
        {"scores": 5},
        {"accuracy": {}},
    )
    for change in odd:
        path.write_text(json.dumps(kept | change), encoding="utf-8")
        with pytest.raises(ArchiveError, match="not a calibration"):
            read_calibration(tmp_path, found.run_signature)


def test_other_runs_and_labels_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "l.jsonl"
    other.write_text('{"item": "x", "label": "supported"}\n', encoding="utf-8")
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.human_labels:none-of-labels-is-of-claim-or"),
    ):
        calibrated(folder, other)
    first = next(row["id"] for row in read_rows(folder / "items.jsonl") if row["evidence"])
    other.write_text(json.dumps({"item": first, "claim": 99, "label": "supported"}) + "\n")
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.human_labels:item-has-no-claim-from-to", first),
    ):
        calibrated(folder, other)
    words = {"item": first, "claim": 0, "label": "supported", "text": "words of another run"}
    other.write_text(json.dumps(words) + "\n")
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.human_labels:but-the-labels-text-is-words-of"),
    ):
        calibrated(folder, other)
    other.write_text(json.dumps({"item": first, "start": 900, "end": 905, "label": "supported"}))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.human_labels:the-words-of-the-first-one-are"),
    ):
        calibrated(folder, other)
    other.write_text(json.dumps({"item": first, "claim": 0, "label": "unsure"}) + "\n")
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.human_labels:every-label-of-this-run-is-unsure"),
    ):
        calibrated(folder, other)
    with pytest.raises(InvalidInputError, match=r"no labels.jsonl; label claims"):
        calibrate(folder)
    pope_run(tmp_path / "pope", 0.5)
    with pytest.raises(
        UnsupportedError,
        match=expected_message("labels.verdicts:scores-of-pope-do-not-depend-on"),
    ):
        calibrated(tmp_path / "pope", other)


def test_a_changed_line_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    for name in ("report.json", "items.jsonl", "manifest.json"):
        text = (folder / name).read_text(encoding="utf-8")
        copy.joinpath(name).write_text(
            text.replace('"hallucinated":1', '"hallucinated":2'), "utf-8"
        )
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda *_: True)
    with pytest.raises(
        ArchiveError,
        match=expected_message("labels.verdicts:hallucinated-is-but-the-verdicts-give"),
    ):
        calibrated(copy, labels)


def test_commands_write_labels_plan_and_calibration(tmp_path: Path) -> None:
    chair_run(tmp_path / "run", 0.4)
    given = labels_file(tmp_path / "l.jsonl", tmp_path / "run", lambda _, __, verdict: verdict)
    imported = here("label", "import", tmp_path / "run", given)
    assert (
        expected_message("labels.label_commands:labels-of-claims-items-labelled-in-full")
        in imported.stdout
    ), imported.stderr
    done = here("calibrate", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert expected_message("labels.calibration_tables:scores-raw-and-corrected") in done.stdout
    assert "|calibrated:ppi++/n=108" in done.stdout.replace("\n", "")
    shown = here("report", tmp_path / "run", "--format", "table,markdown,html").stdout
    assert shown.count("Corrected by prediction") == 2
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert (
        expected_message(
            "sdk.report.report_text:corrected-by-prediction-powered-inference-from-human"
        )
        in page
    )
    printed = here("calibrate", tmp_path / "run", "--format", "json")
    kept = (tmp_path / "run" / "calibration.json").read_text(encoding="utf-8")
    assert printed.stdout == kept
    sheet = tmp_path / "sheet.csv"
    planned = here("label", "plan", tmp_path / "run", "--by", "item", "-n", "20", "--sheet", sheet)
    assert expected_message("labels.label_commands:items-to-label-seed-4") in planned.stdout
    assert len(sheet.read_text(encoding="utf-8").splitlines()) == 21
    refused = here("label", "plan", tmp_path / "run", "--by", "page")
    assert (refused.returncode, refused.stderr) == (
        2, expected_message("labels.label_commands:error-by-page-choose-claim-or-item"),
    )  # fmt: skip
