"""A judge's report card, of runs whose verdicts and truth are known."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.archive_values import write_lines
from support.messages import expected_message

from hallujudge.sdk import Client
from hallujudge.sdk.calibration import judge_card
from hallujudge.sdk.cli import main
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.schemas import judge_card_schema

LONG = " It is a sunny day in the park, and the weather is nice."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty captions, every other one long, each with a right and a hallucinated mention."""
    folder = tmp_path_factory.mktemp("run")
    captions = {str(n): "A dog and a cat." + LONG * (n % 2) for n in range(40)}
    with Client.embedded() as client:
        report = client.score(
            "chair", responses=captions, references={n: ["dog"] for n in captions}
        )
    report.save(folder)
    return folder


@pytest.fixture(scope="module")
def labels(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In long captions people call the dog hallucinated too; in short ones all agree."""
    rows = [
        {"item": str(n), "claim": claim, "label": "not_supported" if wrong else "supported"}
        for n in range(40)
        for claim, wrong in enumerate((n % 2 == 1, True))
    ]
    return write_lines(tmp_path_factory.mktemp("labels") / "labels.jsonl", rows)


def test_biases_are_those_of_the_labels(folder: Path, labels: Path) -> None:
    card = judge_card(folder, labels=(labels,))
    assert (card.claims, card.labels, card.compared_with) == (80, 80, "labels")
    assert card.accuracy.agreement.value == 0.75
    assert card.accuracy.sensitivity.value == pytest.approx(2 / 3)
    assert card.kappa is not None
    assert card.kappa == pytest.approx(0.5)
    assert card.kappa_low is not None
    assert card.kappa_high is not None
    assert card.kappa_low < card.kappa < card.kappa_high
    assert (card.yes_bias.judge, card.yes_bias.truth, card.yes_bias.difference) == (0.5, 0.25, 0.25)
    assert card.length_bias is not None
    assert card.length_bias.short is not None
    assert card.length_bias.long is not None
    assert card.length_bias.short.difference == 0
    assert card.length_bias.long.difference == 0.5
    assert card.length_bias.correlation == pytest.approx(1 / math.sqrt(3))
    assert (card.margins, card.reliability.bins, card.costs) == ("", (), ())


def test_a_reference_run_is_the_truth(folder: Path) -> None:
    card = judge_card(folder, reference=folder)
    assert card.accuracy.agreement.value == card.kappa == 1
    assert card.yes_bias.difference == 0
    assert card.compared_with == card.run_signature


def test_the_command_keeps_a_card_with_its_hash(
    folder: Path, labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "card.json"
    command = ["judge", "card", str(folder), "--labels", str(labels)]
    assert main([*command, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    kept = json.loads(out.read_text())
    Draft202012Validator(judge_card_schema()).validate(kept)
    assert kept["sha256"] in shown
    assert kept["flips"] == []
    assert "were not measured" in shown
    assert main([*command, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == kept
    assert main(["judge", "card", str(folder)]) == 2
    assert "--labels" in capsys.readouterr().err


def test_one_truth_is_needed(folder: Path, labels: Path) -> None:
    with pytest.raises(
        InvalidInputError,
        match=re.escape(expected_message("labels.report_card:what-a-card-needs")),
    ):
        judge_card(folder)
    with pytest.raises(InvalidInputError, match="not both"):
        judge_card(folder, labels=(labels,), reference=folder)
