"""The report card of a language model that judged claims."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support import scripted_llm as llm
from support.archive_values import write_lines
from support.metric_runs import SCENE
from support.running import read_rows
from support.tri_he_samples import judge_step

from hallujudge.judge_service.llm.templates import load_template
from hallujudge.sdk import Client
from hallujudge.sdk.calibration import judge_card
from hallujudge.sdk.cli.entry import main
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.schemas import judge_card_schema


def test_a_language_models_margins_state_probabilities(tmp_path: Path) -> None:
    server = llm.ScriptedLlm(judge_step)
    stop = server.in_thread()
    claims = [["man", "riding", "horse"], ["cat", "near", "horse"]]
    try:
        with Client.embedded({"llm_url": server.url, "llm_model": "tiny"}) as client:
            report = client.score(
                "tri-he",
                responses=[{"image_id": 1, "claims": claims}],
                references=[{"image_id": 1, "triplets": SCENE}],
                options={"judge": "llm"},
            )
    finally:
        stop()
    report.save(tmp_path)
    path = tmp_path / "items.jsonl"
    rows = read_rows(path)
    verdicts = [claim["verdict"] for claim in rows[0]["evidence"]["claims"]]
    for claim in rows[0]["evidence"]["claims"]:
        claim["margin"] = math.log(3)
    write_lines(path, rows)
    right = {"item": rows[0]["id"], "claim": 0, "label": verdicts[0]}
    wrong = {"item": rows[0]["id"], "claim": 1, "label": "supported"}
    assert verdicts[1] == "not_supported"
    card = judge_card(tmp_path, labels=(write_lines(tmp_path / "l.jsonl", [right, wrong]),))
    assert card.margins == "log-probability"
    assert card.reliability.ece == pytest.approx(0.25)
    assert card.reliability.brier == pytest.approx((0.25**2 + 0.75**2) / 2)
    [cost] = card.costs
    assert (cost.claims, cost.cost) == (2, None)
    assert cost.completion_tokens > 0
    Draft202012Validator(judge_card_schema()).validate(json.loads(card.to_text()))


CLAIMS = [[f"thing {n}", "near", "horse"] for n in range(20)]
FLIPS = {
    "repetition": 2,
    "rewording 1": 0,
    "rewording 2": 4,
    "rewording 3": 6,
    "5 claims a call": 4,
    "20 claims a call": 1,
    "reversed order": 2,
}


def fickle() -> llm.Step:
    """Reply that no claim is supported, with planted exceptions.

    The run asks once and a card twice. The second time, two claims are supported; reworded prompts
    support some more; of several claims in a call, the last of five and the first of twenty are.
    """
    asked: Counter[str] = Counter()

    def step(_number: int, body: llm.Body) -> llm.Reply:
        claims, system = llm.claims_of(body), body["messages"][0]["content"]
        if len(claims) > 1:
            lenient = {5: 5, 20: 1}[len(claims)]
            said = {c[0]: "supported" if int(c[0]) == lenient else "object1" for c in claims}
            return llm.completion(json.dumps(said, separators=(",", ":")))
        [claim] = claims
        place = CLAIMS.index(claim)
        asked[f"{system}{claim}"] += 1
        below = {name: FLIPS[f"rewording {name}"] for name in (1, 2, 3)}
        wording = next((n for n in below if system == prompt_of(f"judge_claim_reworded_{n}")), 0)
        limit = below[wording] if wording else 2 * (asked[f"{system}{claim}"] == 3)
        return llm.completion("supported" if place < limit else "object1")

    return step


def prompt_of(name: str) -> str:
    return load_template(name).parts[0][1]


def test_flips_are_those_that_were_planted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = llm.ScriptedLlm(fickle())
    stop = server.in_thread()
    given = ["--llm-url", server.url, "--llm-model", "tiny"]
    try:
        with Client.embedded({"llm_url": server.url, "llm_model": "tiny"}) as client:
            report = client.score(
                "tri-he",
                responses=[{"image_id": 1, "claims": CLAIMS}],
                references=[{"image_id": 1, "triplets": SCENE}],
                options={"judge": "llm"},
            )
        report.save(tmp_path)
        out = tmp_path / "card.json"
        command = ["judge", "card", "--on", str(tmp_path), "--reference", str(tmp_path)]
        assert main([*command, "--flips", "20", "--out", str(out), *given]) == 0
        assert main([*command, "--flips", "20", *given[:3], "small"]) == 2
    finally:
        stop()
    shown = capsys.readouterr()
    assert "its judge is tiny (vllm 0.32.0), not small (vllm 0.32.0)" in shown.err
    kept = json.loads(out.read_text())
    Draft202012Validator(judge_card_schema()).validate(kept)
    assert {flip["change"]: flip["flips"] for flip in kept["flips"]} == FLIPS
    assert {flip["claims"] for flip in kept["flips"]} == {20}
    repeated = kept["flips"][0]
    assert repeated["share"] == 0.1
    assert 0 < repeated["ci_low"] < 0.1 < repeated["ci_high"] < 0.35
    assert "rewording 2" in shown.out
    assert kept["judge"].startswith("tiny (vllm 0.32.0),")


def test_flips_need_a_run_of_a_language_model(tmp_path: Path) -> None:
    with Client.embedded() as client:
        report = client.score("chair", responses={"1": "A cat."}, references={"1": ["dog"]})
    report.save(tmp_path)
    with pytest.raises(InvalidInputError, match="that a language model judged"):
        judge_card(tmp_path, reference=tmp_path, flips=5)
