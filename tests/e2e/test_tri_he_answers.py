"""Tri-HE on the command line: how answers and their claims are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.messages import expected_message
from support.qa_samples import write_lines
from support.running import here, read_rows
from support.tri_he_samples import FALSE, SCENE, TRUE, answer, report_of, score

from hallujudge.metrics.framework.claims import Modality
from hallujudge.sdk import Client


def own_file(path: Path, **instance: object) -> Path:
    """Tri-HE's own layout, of one image with one question."""
    entry = {"question": "What?", "answer": "A dog.", **instance}
    path.write_text(json.dumps({"7": {"instance": [entry], "triplets": SCENE, "object": []}}))
    return path


def test_answers_of_the_papers_file_are_read_as_answers(tmp_path: Path) -> None:
    archive = own_file(
        tmp_path / "own.json", llava="A man is riding a horse.", llava_triplets=[FALSE]
    )
    for kind, claims in (("--responses", [TRUE]), ("--claims", [FALSE])):
        out = tmp_path / kind
        ran = here("score", "tri-he", kind, archive, "--model-key", "llava", "--out", out)
        assert ran.returncode == 0, ran.stderr
        (line,) = read_rows(out / "items.jsonl")
        assert [claim["triplet"] for claim in line["evidence"]["claims"]] == claims
        extractor = "rules-3" if kind == "--responses" else "given"
        assert f"|extract:{extractor}|" in report_of(out)["signature"]


def test_a_model_key_of_another_layout_is_refused(tmp_path: Path) -> None:
    texts = [{"image_id": "1", "response": "A man.", "llava": "A dog."}]
    ran = score(tmp_path, texts, "--model-key", "llava", kind="--responses")
    assert ran.returncode == 2
    assert "--text-key" in ran.stderr


def test_claims_that_come_with_answers_are_noted(tmp_path: Path) -> None:
    texts = [
        {"image_id": "1", "response": "A man is riding a horse."},
        {"image_id": "2", "response": "A dog.", "claims": [FALSE]},
    ]
    ran = score(tmp_path, texts, kind="--responses")
    assert expected_message("sdk.archives.tri_he:of-answers-contain-claims") in ran.stderr
    assert "contain claims" not in score(tmp_path, [answer("1", TRUE)]).stderr


def test_answers_without_their_graph_may_be_left_unscored(tmp_path: Path) -> None:
    texts = write_lines(
        tmp_path / "a.jsonl",
        [
            {"image_id": 1, "response": "A man is riding a horse.", "triplets": SCENE},
            {"image_id": 2, "response": "A man is riding a horse."},
            {"image_id": 3, "response": "A man is riding a horse.", "triplets": None},
        ],
    )
    given = ("score", "tri-he", "--responses", texts, "--out", tmp_path / "out")
    assert here(*given).returncode == 2
    assert here(*given, "--allow-unknown").returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"REFERENCE_MISSING": 2}


def test_claims_that_are_null_are_missing_claims(tmp_path: Path) -> None:
    assert score(tmp_path, [answer("1", TRUE), answer("2") | {"claims": None}]).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"CLAIMS_MISSING": 1}


def test_a_long_answer_is_scored_with_its_places(tmp_path: Path) -> None:
    texts = [{"image_id": "1", "response": "A man is riding a brown horse near a tree. " * 4_600}]
    assert len(texts[0]["response"]) > 190_000
    assert score(tmp_path, texts, kind="--responses").returncode == 0
    (line,) = read_rows(tmp_path / "out" / "items.jsonl")
    claims = line["evidence"]["claims"]
    assert len(claims) > 10_000
    for claim in (claims[0], claims[-1]):
        before = texts[0]["response"][: claim["span"][1]]
        assert claim["within_words"] == len(before.split())


TENTATIVE = "A man rides a horse. The horse might be brown. If it rains, the grass is wet."


def test_evidence_says_how_a_response_puts_its_claims(tmp_path: Path) -> None:
    texts = [{"image_id": "1", "response": TENTATIVE}]
    assert score(tmp_path, texts, kind="--responses").returncode == 0
    (line,) = read_rows(tmp_path / "out" / "items.jsonl")
    put = {tuple(each["triplet"]): each["modality"] for each in line["evidence"]["claims"]}
    assert put["man", "rides", "horse"] == "stated"
    assert put["horse", "is", "brown"] == "hedged"
    assert put["grass", "is", "wet"] == "conditional"
    assert "tentative" not in report_of(tmp_path / "out")["signature"]


def test_tentative_claims_can_be_left_out(tmp_path: Path) -> None:
    texts = [
        {"image_id": "1", "response": TENTATIVE},
        {"image_id": "2", "response": "The horse might be brown."},
    ]
    ran = score(tmp_path, texts, "--tentative-claims", "omit", kind="--responses")
    assert ran.returncode == 3
    first, second = read_rows(tmp_path / "out" / "items.jsonl")
    assert [each["triplet"] for each in first["evidence"]["claims"]] == [["man", "rides", "horse"]]
    assert second["reason"] == "NO_CLAIMS"
    assert "hedged or conditional" in second["detail"]
    assert "|extract:rules-3|tentative:omit|" in report_of(tmp_path / "out")["signature"]


def test_an_extractor_that_marks_nothing_can_leave_nothing_out(tmp_path: Path) -> None:
    texts = [{"image_id": "1", "response": TENTATIVE}]
    options = ("--tentative-claims", "omit", "--extractor", "sentences")
    ran = score(tmp_path, texts, *options, kind="--responses")
    assert ran.returncode == 2
    assert (
        expected_message(
            "judge_service.engine.extraction:extractor-sentences-does-not-mark-tentative-claims"
        )
        in ran.stderr
    )


@pytest.mark.parametrize("tentative", ["keep", "omit"])
def test_extracted_claims_tell_how_they_are_put(tentative: str) -> None:
    with Client.embedded() as client:
        (claims,) = client.extract("tri-he", [TENTATIVE], options={"tentative_claims": tentative})
    found = {claim.modality for claim in claims}
    every = {Modality.STATED, Modality.HEDGED, Modality.CONDITIONAL}
    assert found == (every if tentative == "keep" else {Modality.STATED})
