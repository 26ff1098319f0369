"""Probabilities in place of verdicts: planted log-probabilities, compared with a plain sum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.choice_judge import scripted
from support.messages import expected_message
from support.qa_samples import write_lines
from support.running import ServerProcess, here, read_rows
from support.tri_he_samples import SCENE, answer, report_of, score

from hallujudge.sdk import Client

SAID = {
    "sure": {"supported": 0.9, "relation": 0.06, "object1": 0.04},
    "doubted": {"supported": 0.55, "object2": 0.4, "Yes": 0.05},
    "wrong": {"relation": 0.7, "supported": 0.2, "object1": 0.1},
}
"""Subject of a claim -> what the model might have said, the likeliest first."""
WRONG = {"sure": 0.1, "doubted": 0.4 / 0.95, "wrong": 0.8, "silent": 1.0}
"""Subject -> 1 - P(supported) by hand; without log-probabilities the verdict."""
IMAGES = (
    (("sure", "wrong"), ("doubted", "silent", "sure")),
    (("doubted",), ("lost", "sure")),
    (("wrong", "wrong", "silent"),),
)
"""Images, their questions, and the subjects of the claims."""


def planted(_number: int, body: llm.Body) -> llm.Reply:
    subject = llm.claims_of(body)[0][0].split()[0]
    if subject == "lost":
        return llm.completion("Well, it depends.")
    return llm.completion("object1") if subject == "silent" else llm.stating(SAID[subject])


def answers() -> list[dict[str, Any]]:
    return [
        answer(
            str(image),
            *([f"{subject} {image} {n}", "near", "horse"] for n, subject in enumerate(question)),
            question=f"{number}?",
        )
        for image, questions in enumerate(IMAGES)
        for number, question in enumerate(questions)
    ]


def share(question: tuple[str, ...]) -> float:
    known = [WRONG[subject] for subject in question if subject != "lost"]
    return sum(known) / len(known)


def flags(server: llm.ScriptedLlm) -> tuple[str, ...]:
    return ("--judge", "llm", "--llm-url", server.url, "--llm-model", "tiny")


def test_claims_count_by_their_probability(tmp_path: Path) -> None:
    more = ("--variant", "corrected", "--verdict-cache", tmp_path / "verdicts")
    with scripted(planted) as server:
        ran = score(tmp_path, answers(), *flags(server), *more, "--soft")
        assert ran.returncode == 0, ran.stderr
        asked = server.chats
        kept = [(tmp_path / "out" / name).read_bytes() for name in ("items.jsonl", "report.json")]
        report = report_of(tmp_path / "out")
        rates = [[share(question) for question in image] for image in IMAGES]
        every = [rate for image in rates for rate in image]
        hallu_q = sum(every) / len(every)
        hallu_i = sum(sum(image) / len(image) for image in rates) / len(rates)
        assert report["scores"]["hallu_q"]["value"] == pytest.approx(hallu_q, abs=1e-6)
        assert report["scores"]["hallu_i"]["value"] == pytest.approx(hallu_i, abs=1e-6)
        assert "|soft:yes|" in report["signature"]
        note = "2 of 10 claims have no probability and count by their verdict"
        assert any(note in each for each in report["notes"])
        assert note in " ".join(ran.stdout.split())
        assert here("report", tmp_path / "out").returncode == 0, "made from stored sums"

        # A server that has the verdicts; it writes the same bytes.
        remote = ServerProcess(*flags(server)[2:], *map(str, more[2:]))
        try:
            ran = score(
                tmp_path, answers(), *flags(server)[:2], *more[:2], "--soft",
                "--server", remote.address,
            )  # fmt: skip
        finally:
            remote.stop()
        assert ran.returncode == 0, ran.stderr
        again = [(tmp_path / "out" / name).read_bytes() for name in ("items.jsonl", "report.json")]
        assert again == kept
        assert server.chats == asked + 1, "only the claim without a verdict is asked again"


def test_trends_count_probabilities(tmp_path: Path) -> None:
    texts = [{"image_id": "a", "response": "A sure man rides a horse."}]
    reply = llm.stating({"supported": 0.75, "relation": 0.25})
    with scripted(llm.always(reply)) as server:
        ran = score(tmp_path, texts, *flags(server), "--soft", kind="--responses")
    assert ran.returncode == 0, ran.stderr
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    assert {claim["score"] for claim in row["evidence"]["claims"]} == {0.75}
    assert row["scores"]["hallu_q"] == 0.25
    told = here("analyze", tmp_path / "out")
    assert told.returncode == 0, told.stderr
    trend = (tmp_path / "out" / "analysis.json").read_text()
    assert '"hallu_q": 0.25' in trend


def test_labels_correct_probabilities_as_they_correct_verdicts(tmp_path: Path) -> None:
    images = [answer(str(n), ["sure", "near", "x"], ["wrong", "near", "x"]) for n in range(30)]
    corrected = {}
    for kind, option in (("soft", ["--soft"]), ("hard", [])):
        (run := tmp_path / kind).mkdir()
        with scripted(planted) as server:
            assert score(run, images, *flags(server), *option).returncode == 0
        lines = [
            {"item": row["id"], "claim": claim, "label": ("supported", "not_supported")[wrong]}
            for number, row in enumerate(read_rows(run / "out" / "items.jsonl"))
            for claim, wrong in enumerate((number % 5 == 0, number % 3 > 0))
        ]
        labels = write_lines(run / "labels.jsonl", lines[:40])
        told = here("calibrate", run / "out", "--labels", labels, "--format", "json")
        assert told.returncode == 0, told.stderr
        corrected[kind] = json.loads(told.stdout)
    soft, hard = (found["scores"]["hallu_q"] for found in corrected.values())
    assert soft["raw"]["value"] == pytest.approx((0.1 + 0.8) / 2, abs=1e-6)
    assert hard["raw"]["value"] == 0.5
    assert soft["corrected"] == pytest.approx(hard["corrected"])
    assert soft["corrected"]["value"] == pytest.approx((4 / 20 + 13 / 20) / 2)
    assert (soft["rogan_gladen"], hard["rogan_gladen"] is None) == (None, False)
    [note] = [note for note in corrected["soft"]["notes"] if "probabilities" in note]
    assert (
        expected_message("labels.labelled_claims:the-correction-takes-the-verdicts-behind-them")
        in note
    )
    assert here("label", "plan", tmp_path / "soft" / "out", "-n", "10").returncode == 0


def test_a_judge_without_probabilities_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = score(tmp_path, answers(), "--soft")
    assert ran.returncode == 2
    assert (
        expected_message(
            "judge_service.engine.judge_factory:soft-needs-probabilities-and-the-judge-matcher"
        )
        in ran.stderr
    )
    monkeypatch.setenv("HALLUJUDGE_LLM_OMIT", "top_logprobs")
    more = ("--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "m")
    ran = score(tmp_path, answers(), "--judge", "llm", *more, "--soft")
    assert ran.returncode == 2
    assert (
        expected_message("judge_service.engine.judge_factory:and-the-judge-llm-gives-none")
        in ran.stderr
    )
    assert not (tmp_path / "out" / "report.json").exists()


def test_from_python() -> None:
    reply = llm.stating({"supported": 0.6, "relation": 0.4})
    with (
        scripted(llm.always(reply)) as server,
        Client.embedded({"llm.url": server.url, "llm.model": "tiny"}) as client,
    ):
        report = client.score(
            "tri-he",
            responses=[answer("1", ["a", "b", "c"])],
            references={"1": SCENE},
            options={"judge": "llm", "extractor": "given", "soft": "yes"},
        )
    assert report.hallu_q == pytest.approx(0.4)
