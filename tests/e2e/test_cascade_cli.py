"""A cascade from labels to a report: learnt from one run, used in the next."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support import scripted_llm as llm
from support.choice_judge import scripted
from support.messages import expected_message
from support.qa_samples import write_lines
from support.running import here, read_rows
from support.tri_he_samples import SCENE, answer, report_of, score

from hallujudge.sdk.schemas import cascade_schema, report_schema

IMAGES = 60


def weak(_number: int, body: llm.Body) -> llm.Reply:
    """Reply "supported" to every claim: surely to true ones, hardly to others."""
    share = 0.9 if llm.claims_of(body)[0] in SCENE else 0.6
    return llm.stating({"supported": share, "object1": 1 - share})


def answers() -> list[dict[str, object]]:
    """Return claims of which two thirds are true."""
    return [answer(str(n), *SCENE, [f"dog {n}", "near", "horse"]) for n in range(IMAGES)]


def labels(folder: Path) -> Path:
    rows = [
        {"item": row["id"], "claim": at, "label": label}
        for row in read_rows(folder / "items.jsonl")
        for at, label in enumerate(("supported", "supported", "not_supported"))
    ]
    return write_lines(folder / "of-people.jsonl", rows)


@pytest.fixture
def strong(monkeypatch: pytest.MonkeyPatch) -> Iterator[llm.ScriptedLlm]:
    with scripted(llm.by_scene_graph, model="big") as server:
        monkeypatch.setenv("HALLUJUDGE_FALLBACK_URL", server.url)
        monkeypatch.setenv("HALLUJUDGE_FALLBACK_MODEL", "big")
        yield server


def test_a_learnt_margin_decides_who_judges(strong: llm.ScriptedLlm, tmp_path: Path) -> None:
    learnt, used = tmp_path / "learnt", tmp_path / "used"
    learnt.mkdir()
    used.mkdir()
    with scripted(weak) as server:
        settings = ("--llm-url", server.url, "--llm-model", "tiny")
        assert score(learnt, answers(), "--judge", "llm", *settings).returncode == 0
        run = learnt / "out"
        told = here("calibrate", run, "--labels", labels(run), "--agreement", "0.9")
        assert told.returncode == 0
        assert "cascade.json" in told.stderr
        cascade = run / "cascade.json"
        content = json.loads(cascade.read_text())
        Draft202012Validator(cascade_schema()).validate(content)
        assert content["escalate_below"] == pytest.approx(math.log(9))
        assert (content["agreement"], content["labels"]) == (1.0, 2 * IMAGES)

        prices = ("--fallback-price-prompt", "1", "--fallback-price-completion", "1")
        flags = ("--judge", "router", "--cascade", cascade, *prices)
        done = score(used, answers(), *flags, *settings)
        assert done.returncode == 0
        assert strong.chats == IMAGES, "only claims that the weak judge is unsure of"
        report = report_of(used / "out")
        Draft202012Validator(report_schema()).validate(report)
        assert report["scores"]["hallu_q"]["value"] == pytest.approx(1 / 3)
        assert "cascade=" in report["signature"]
        assert [share["decided"] for share in report["judging"]] == [2 * IMAGES, IMAGES]
        who = "llm decided 120 of 180 (66.7%) verdicts; 60 of 180 (33.3%) had too small a margin"
        assert who in " ".join(done.stdout.split())
        assert expected_message(
            "metrics.framework.report:saved-estimated-calls-of-fallback-made"
        ) in " ".join(done.stdout.split())
        assert expected_message("metrics.infact.operators:at-least-with-confidence-of") in " ".join(
            done.stdout.split()
        )
        [row, *_] = read_rows(used / "out" / "items.jsonl")
        decided = [claim["judge"] for claim in row["evidence"]["claims"]]
        assert decided == ["llm", "llm", "fallback"]

        other = score(used, answers(), *flags, *settings[:2], "--llm-model", "small")
        assert other.returncode == 2
        assert (
            expected_message(
                "judge_service.judges.judge_rules:the-cascade-was-learnt-from-verdicts-of"
            )
            in other.stderr
        )
        assert (
            expected_message("judge_service.judges.judge_rules:or-name-the-other-judge-first-in")
            in other.stderr
        )


def test_a_reference_judge_teaches_a_margin(tmp_path: Path) -> None:
    runs = {}
    for name, reply in (("weak", weak), ("strong", llm.by_scene_graph)):
        (run := tmp_path / name).mkdir()
        with scripted(reply, model=name) as server:
            told = ("--judge", "llm", "--llm-url", server.url, "--llm-model", name)
            assert score(run, answers(), *told).returncode == 0
        runs[name] = run / "out"
    taught = ("calibrate", runs["weak"], "--reference", runs["strong"])
    done = here(*taught, "--agreement", "0.9")
    assert done.returncode == 0, done.stderr
    assert (
        expected_message("labels.calibration_tables:judge-against-reference-judge") in done.stdout
    )
    assert "corrected" not in done.stdout
    content = json.loads((runs["weak"] / "cascade.json").read_text())
    Draft202012Validator(cascade_schema()).validate(content)
    assert content["escalate_below"] == pytest.approx(math.log(9))
    assert content["reference"].startswith("strong (vllm")
    assert not (runs["weak"] / "calibration.json").exists(), "people labelled nothing"
    for wrong in ((), ("--agreement", "0.9", "--labels", runs["weak"] / "items.jsonl")):
        refused = here(*taught, *wrong)
        assert refused.returncode == 2
        assert (
            expected_message("labels.label_commands:reference-goes-with-agreement")
            in refused.stderr
        )


def test_one_judge_alone_abstains(tmp_path: Path) -> None:
    with scripted(weak) as server:
        settings = ("--llm-url", server.url, "--llm-model", "tiny")
        given = ("--judge", "llm", "--escalate-below", "1")
        assert score(tmp_path, answers()[:4], *given, *settings).returncode == 0
    report = report_of(tmp_path / "out")
    assert report["totals"]["unscored_claims"] == 4
    assert report["judging"][0]["declined"] == {"MARGIN_TOO_SMALL": 4}
    assert "set by hand" in report["notes"][1]
    assert "4 claims of scored answers have no verdict" in report["notes"][2]
    assert expected_message("metrics.framework.report:of-are-without-verdict") in report["notes"][3]
