"""Runs that a budget, an outage or Ctrl-C cut short, completed by ``--resume``."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.messages import expected_message
from support.qa_samples import write_lines
from support.running import BIN, errors_of, read_rows, unmeasured
from support.threads import eventually
from support.tri_he_samples import SCENE, TRUE, answer, report_of, score


class Judge:
    """A model that may be away for some claims, and counts its calls."""

    def __init__(self) -> None:
        self.away: tuple[str, ...] = ()
        self.answers = 1 << 30
        self.server = llm.ScriptedLlm(self.step)

    def step(self, number: int, body: llm.Body) -> llm.Reply:
        if any(name in llm.prompt_of(body) for name in self.away):
            return llm.Reply(500, b"{}")
        if number >= self.answers:
            return llm.Reply(delay=60)
        return llm.by_scene_graph(number, body)

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--judge", "llm", "--llm-url", self.server.url, "--llm-model", "m")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")
    monkeypatch.setenv("HALLUJUDGE_OUTAGE_SECONDS", "0")
    made = Judge()
    stop = made.server.in_thread()
    yield made
    stop()


def outcomes(out: Path) -> list[tuple[str, list[str]]]:
    rows = read_rows(out / "items.jsonl")
    return [(row["outcome"], [c["verdict"] for c in row["evidence"]["claims"]]) for row in rows]


def answers(count: int) -> list[dict[str, Any]]:
    return [
        answer("1", TRUE, [f"dog {n}", "near", "horse"], question=f"{n}?") for n in range(count)
    ]


def test_what_a_budget_did_not_pay_is_scored_by_resuming(tmp_path: Path, judge: Judge) -> None:
    rows, out = answers(5), tmp_path / "out"
    cut = score(tmp_path, rows, *judge.flags, "--max-calls", "2")
    assert cut.returncode == 0, cut.stderr
    assert "--resume and a higher --max-calls or --max-cost; 2 replies that were paid for" in (
        " ".join(cut.stderr.split())
    )
    assert outcomes(out) != [("scored", ["supported", "not_supported"])] * 5
    resumed = score(tmp_path, rows, *judge.flags, "--max-calls", "100", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert f"written to {out}" in resumed.stdout
    assert outcomes(out) == [("scored", ["supported", "not_supported"])] * 5
    assert judge.server.chats == 6, "each question is paid for once"
    undisturbed = ("--out", tmp_path / "whole")
    assert score(tmp_path, rows, *judge.flags, *undisturbed).returncode == 0
    assert report_of(out)["scores"] == report_of(tmp_path / "whole")["scores"]
    again = score(tmp_path, rows, *judge.flags, "--resume")
    assert (
        expected_message("sdk.runs.folder:the-run-was-complete-nothing-is-scored") in again.stderr
    )


def test_a_judge_that_was_away_costs_its_own_batches(tmp_path: Path, judge: Judge) -> None:
    rows, out = answers(150), tmp_path / "out"
    judge.away = ("dog 70",)
    cut = score(tmp_path, rows, *judge.flags)
    assert [verdicts[1] for _, verdicts in outcomes(out)].count("unscored") == 1
    assert "JUDGE_SERVER_ERROR left without a score or verdict" in " ".join(cut.stderr.split())
    asked, judge.away = judge.server.chats, ()
    # Without the replies that were kept, the calls show what is scored again.
    (out / "verdicts.sqlite").unlink()
    resumed = score(tmp_path, rows, *judge.flags, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert outcomes(out) == [("scored", ["supported", "not_supported"])] * 150
    assert judge.server.chats - asked == 129, "128 claims of one batch, and a shared one"


def kept_replies(out: Path) -> int:
    """Return how many replies a run has written down."""
    there = f"file:{out / 'verdicts.sqlite'}?mode=ro"
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(there, uri=True)) as file:
        return int(file.execute("SELECT count(*) FROM answers").fetchone()[0])
    return 0


def test_ctrl_c_says_which_replies_are_kept(tmp_path: Path, judge: Judge) -> None:
    judge.answers = 3
    process = subprocess.Popen(
        [
            *(BIN / "hallujudge", "score", "tri-he"),
            *("--claims", write_lines(tmp_path / "answers.jsonl", answers(30))),
            "--references",
            write_lines(tmp_path / "graphs.jsonl", [{"image_id": "1", "triplets": SCENE}]),
            *("--out", tmp_path / "out"),
            *judge.flags,
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=unmeasured() | {"COLUMNS": "200"},
    )
    assert eventually(lambda: judge.server.chats > 4 and kept_replies(tmp_path / "out") > 0)
    process.send_signal(signal.SIGINT)
    errors = " ".join(errors_of(process).split())
    assert process.returncode == 1, errors
    assert "0 of 30 items are kept" in errors
    # How many of the three arrived before the signal depends on the machine.
    assert re.search(r"(1 reply that was|[23] replies that were) paid for (is|are) kept in", errors)
    assert "only calls that were under way may be paid for again" in errors
