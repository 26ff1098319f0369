"""OpenCHAIR with a language model as judge, over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.choice_judge import blocks_of, judged_here_and_there, step
from support.qa_running import report_of
from support.running import read_rows

THINGS = {"dog": "yes", "airplane": "no", "wall": "unsure", "REFUSE": None}


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")


def test_objects_are_judged_and_a_server_writes_the_same_bytes(tmp_path: Path) -> None:
    records = [
        {"image_id": number, "gt_caption": "A dog sleeps.", "generated_objs": things}
        for number, things in enumerate([["dog", "airplane", "photo"], [*THINGS], ["REFUSE"], []])
    ]
    (tmp_path / "captions.json").write_text(json.dumps(records))
    given = ("--responses", tmp_path / "captions.json", "--judgements", "llm")
    judge = step({thing: said for thing, said in THINGS.items() if said}, "OBJECT")
    asked, _ = judged_here_and_there("openchair", given, judge, tmp_path)
    assert not any(blocks_of(each)["OBJECT"] == "photo" for each in asked), "it is ignored"
    assert blocks_of(asked[0])["CAPTION"] == "A dog sleeps."
    report = report_of(tmp_path / "here")
    assert report["scores"]["openchair"]["value"] == 0.5
    assert {
        name: report["totals"][name] for name in ("judged", "unsure", "ignored", "unparsed")
    } == {**{"judged": 4, "unsure": 1, "ignored": 1, "unparsed": 1}}
    assert report["coverage"]["reasons"] == {"JUDGE_REFUSED": 1}
    assert "judgements:llm|judge:tiny (vllm 0.32.0),openchair-1@" in report["signature"]
    [judging] = read_rows(tmp_path / "here" / "items.jsonl")[0]["evidence"]["judging"]
    assert (judging["answered"], judging["declined"]) == (2, {})
