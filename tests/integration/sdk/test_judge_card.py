"""The report card of a language model that judged claims."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support import scripted_llm as llm
from support.archive_values import write_lines
from support.metric_runs import SCENE
from support.running import read_rows
from support.tri_he_samples import judge_step

from hallujudge.sdk import Client
from hallujudge.sdk.calibration import judge_card
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
