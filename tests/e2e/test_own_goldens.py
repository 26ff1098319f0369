"""Texts of our own with the numbers of the released procedures: what a fresh clone can check.

`expected.json` was printed by the oracles (tests/oracles), CHAIR's with the released synonyms. They
are the released scripts step by step, which the large golden data show where it is at hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from oracles import answers_published
from oracles import tri_he_published as tri_he
from support.running import here

from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Tally
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict, triplet_of
from hallujudge.metrics.tri_he import TriHeMetric
from hallujudge.sdk import Client, RunReport

OWN = Path(__file__).parents[1] / "data" / "own_goldens"
EXPECTED: dict[str, dict[str, Any]] = json.loads((OWN / "expected.json").read_text("utf-8"))


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (OWN / name).read_text("utf-8").splitlines()]


def values(report: RunReport, names: tuple[str, ...]) -> dict[str, float | None]:
    return {name: report[name].value for name in names}


def test_twenty_captions(tmp_path: Path) -> None:
    names = ("chair_i", "chair_s", "recall")
    files = ("-r", OWN / "captions.jsonl", "-R", OWN / "objects.jsonl")
    done = here("score", "chair", *files, "--variant", "published", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    lines = (tmp_path / "items.jsonl").read_text("utf-8").splitlines()
    wrong = [
        [word for word, _ in item["evidence"]["hallucinated"]] for item in map(json.loads, lines)
    ]
    expected = EXPECTED["chair"]
    found = {name: report["scores"][name]["value"] for name in names}
    assert found == pytest.approx({name: expected[name] for name in names})
    counts = ("mentioned", "hallucinated", "captions_with_hallucination")
    assert {name: report["totals"][name] for name in counts} == {
        name: expected[name] for name in counts
    }
    assert wrong == expected["wrong_words"]


def test_thirty_answers() -> None:
    asked = records("answers.jsonl")
    said = answers_published.pope([one["answer"] for one in asked], [one["label"] for one in asked])
    assert said == EXPECTED["pope"]
    with Client.embedded() as client:
        report = client.score("pope", responses=OWN / "answers.jsonl", variant="published")
    names = ("accuracy", "precision", "recall", "f1", "yes_ratio")
    assert values(report, names) == pytest.approx({name: said[name] for name in names})
    counts = ("tp", "fp", "tn", "fn")
    assert [report.totals[name] for name in counts] == [said[name] for name in counts]


def test_ten_claims() -> None:
    images: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for record in records("claims.jsonl"):
        images.setdefault(record["image_id"], {}).setdefault(record["question"], []).append(record)
    metric = TriHeMetric(variant="published", judge="given")
    tally = Tally(metric)
    for image, answers in images.items():
        for question, claims in answers.items():
            scored = metric.score_answer(
                [
                    ClaimVerdict(
                        triplet=triplet_of(claim["claim"]),
                        verdict=(
                            Verdict.SUPPORTED
                            if claim["verdict"] == "yes"
                            else Verdict.NOT_SUPPORTED
                        ),
                    )
                    for claim in claims
                ]
            )
            tally.add(
                ItemResult(
                    id=f"{image} {question}",
                    group_id=image,
                    outcome=Outcome.SCORED,
                    statistics=scored.statistics,
                    scores=scored.scores,
                )
            )
    report = tally.finish(IntervalSettings(), version="0")
    verdicts = {
        image: [[claim["verdict"] for claim in claims] for claims in answers.values()]
        for image, answers in images.items()
    }
    said = {
        "hallu_q": tri_he.hallu_q([answer for each in verdicts.values() for answer in each]),
        "hallu_i": tri_he.hallu_i(verdicts),
    }
    assert said == EXPECTED["tri-he"]
    assert {name: report[name].value for name in said} == pytest.approx(said)
