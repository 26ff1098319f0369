"""Audits of drawn answers: lmms-eval's printed numbers, and why ours differ under one name."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk.audit import Audit, AuditOptions, audit

KINDS = ("group", "question", "image")


def expected(goldens: Path, name: str) -> Any:
    return json.loads((goldens / name / "expected.json").read_text())


def adds_up(found: Audit) -> None:
    for score in found.scores:
        assert score.first + sum(score.shares.values()) == score.ours, score.name
        assert not score.shares.get("not explained"), score.name


def beside(log: Path, results: dict[str, float], task: str, folder: Path) -> Path:
    """Return a copy of a log, next to the results that lmms-eval writes with it."""
    copy = folder / f"samples_{task}.jsonl"
    copy.write_bytes(log.read_bytes())
    scores = {f"{name},none": value for name, value in results.items()}
    (folder / "results.json").write_text(json.dumps({"results": {task: scores}, "configs": {}}))
    return copy


@pytest.mark.parametrize("form", ["", "_with_doc"])
def test_the_pooled_figure_of_the_harness_becomes_the_papers_mean(
    goldens: Path, tmp_path: Path, form: str
) -> None:
    folder = goldens / "vlms_are_biased"
    scores = expected(goldens, "vlms_are_biased")["drawn_1"]["scores"]
    log = folder / f"drawn_1{form}_samples_vlms_are_biased.jsonl"
    copy = beside(log, scores["lmms-eval"], "vlms_are_biased", tmp_path)
    references = (folder / "drawn_1.questions.json",)
    found = audit(copy, AuditOptions(references=references, variant="paper"))
    adds_up(found)
    assert found.harness == "lmms-eval"
    for score in found.scores:
        assert float(score.rederived) == pytest.approx(scores["lmms-eval"][score.name], abs=1e-9)
        assert float(score.ours) == pytest.approx(scores["paper"][score.name], abs=1e-9)
        assert [
            cause for cause, share in score.shares.items() if abs(share) > Fraction(1, 10**9)
        ] == ["means over topics"]


@pytest.mark.parametrize("category", ["subject", "predicate", "object"])
def test_each_answer_of_the_harness_becomes_four_to_a_question(
    goldens: Path, category: str
) -> None:
    part = expected(goldens, "crpe")["drawn_1"]["relation"]
    printed = part["lmms-eval"]["by_category"][category]["accuracy"]
    options = AuditOptions(
        references=(goldens / "crpe" / "drawn_1.relation.questions.jsonl",),
        harness="lmms-eval",
        category=category,
        printed=(f"exact_match={printed:.6f}",),
    )
    found = audit(goldens / "crpe" / "drawn_1.relation.answers.jsonl", options)
    adds_up(found)
    [score] = found.scores
    assert float(score.rederived) == pytest.approx(printed, abs=1e-9)
    wanted = part["published"]["by_category"][category]["accuracy"]
    assert 100 * float(score.ours) == pytest.approx(wanted, abs=1e-9)
    assert score.shares["four to a question"] < 0


@pytest.mark.parametrize("variant", ["published", "lmms-eval", "corrected"])
def test_the_number_of_the_harness_is_the_same_whatever_ours_is(
    goldens: Path, variant: str
) -> None:
    references = (goldens / "crpe" / "drawn_1.exist.questions.jsonl",)
    options = AuditOptions(references=references, harness="lmms-eval", variant=variant)
    found = audit(goldens / "crpe" / "drawn_1.exist.answers.jsonl", options)
    adds_up(found)
    # The filter leaves thoughts without an opening mark, which "corrected" takes off.
    wanted = expected(goldens, "crpe")["drawn_1"]["exist"]["lmms-eval"]["accuracy"]
    assert float(found.scores[0].rederived) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("form", ["", "_with_doc"])
def test_the_plain_accuracy_that_the_harness_leaves_out_is_said(
    goldens: Path, tmp_path: Path, form: str
) -> None:
    folder = goldens / "naturalbench"
    scores = expected(goldens, "naturalbench")["drawn_2"]["scores"]
    names = {f"naturalbench_{n}_ACC": k for n, k in zip("GQI", KINDS, strict=True)}
    printed = {name: scores[f"{kind}_accuracy"] for name, kind in names.items()}
    log = folder / f"drawn_2{form}_samples_naturalbench.jsonl"
    copy = beside(log, printed, "naturalbench", tmp_path)
    options = AuditOptions(references=(folder / "drawn_2.questions.json",))
    found = audit(copy, options)
    adds_up(found)
    assert {score.name for score in found.scores} == {f"{k}_accuracy" for k in names.values()}
    assert all(score.ours == score.first for score in found.scores), "the rules are the same"
    assert any("naturalbench_ACC" in note for note in found.notes)
    # The plain accuracy follows from the log all the same.
    whole = audit(copy, AuditOptions(references=options.references, printed=("acc=0.6075",)))
    assert {s.name: float(s.ours) for s in whole.scores}["accuracy"] == scores["accuracy"]


def test_vlmevalkits_pooled_number_is_named_by_its_name(goldens: Path) -> None:
    scores = expected(goldens, "vlms_are_biased")["drawn_2"]["scores"]
    printed = f"overall_acc={scores['lmms-eval']['accuracy']:.6f}"
    options = AuditOptions(harness="vlmevalkit", printed=(printed,), variant="paper")
    found = audit(goldens / "vlms_are_biased" / "drawn_2.results.json", options)
    adds_up(found)
    [score] = found.scores
    assert float(score.ours) == pytest.approx(scores["paper"]["accuracy"], abs=1e-9)
