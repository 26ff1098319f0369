"""Scorers at a server, over forks and restarts, and with a judge that hangs."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import ServerProcess
from support.sizes import further
from support.threads import PATIENCE

from hallujudge.metrics import Outcome
from hallujudge.sdk import Scorer
from hallujudge.sdk.errors import (
    ArchiveError,
    DeadlineError,
    HallujudgeError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)
from hallujudge.sdk.rewards import Reward

REFERENCES = {"1": ["dog", "couch"], "2": ["cat"]}
RESPONSES = [
    ("1", "A dog and a cat."),
    ("2", "A cat."),
    ("1", "A dog on a couch."),
    ("3", "A bird."),
    ("2", ""),
    ("2", "A view."),
    ("1", "A dog and a cat."),
]
CHAIR_I = [0.5, 0.0, 0.0, None, None, None, 0.5]
REASONS = ["", "", "", "REFERENCE_MISSING", "RESPONSE_EMPTY", "", ""]


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("remote", [False, True])
def test_each_response_has_its_scores_in_order(server: str, remote: bool, evidence: bool) -> None:
    address = server if remote else ""
    with Scorer(
        "chair", references=REFERENCES, scores=["chair_i"], server=address, evidence=evidence
    ) as scored:
        for _ in range(2):
            found = scored(RESPONSES)
            assert [one.id for one in found] == [name for name, _ in RESPONSES]
            assert [one.scores["chair_i"] for one in found] == CHAIR_I
            assert [one.reason for one in found] == REASONS
        if evidence:
            assert found[0].evidence["hallucinated"][0][0] == "cat"
        assert (found[3].outcome, found[3].evidence) == (Outcome.UNSCORED, {})
        assert scored([]) == []


def test_wrong_settings_fail_when_the_scorer_is_made(server: str) -> None:
    for address in ("", server):
        with pytest.raises(NotFoundError):
            Scorer("no-such-metric", server=address)
        with pytest.raises(HallujudgeError, match="variant"):
            Scorer("chair", variant="odd", server=address)
        with pytest.raises(InvalidInputError, match="chair_i"):
            Scorer("chair", scores=["chair"], server=address)
        with pytest.raises(ArchiveError):
            Scorer("chair", references="/no/such/file.json", server=address)
    unjudged = Scorer("tri-he", options={"judge": "llm"}, server=server)
    with pytest.raises(HallujudgeError, match=r"llm\.url"):
        unjudged.header()
    unjudged.close()
    with pytest.raises(InvalidInputError, match="deadline"):
        Scorer("chair", deadline=float("nan"))
    with pytest.raises(InvalidInputError, match="on_failure"):
        Scorer("chair", on_failure="ignore")  # type: ignore[arg-type]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(UnavailableError, match=str(port)):
        Scorer("chair", server=f"127.0.0.1:{port}")


FORKED = """
import multiprocessing, sys
from hallujudge.sdk import Scorer
from hallujudge.sdk.rewards import Reward

def score(scorer, pipe):
    found = scorer([("1", "A dog and a cat."), ("2", "A cat.")])
    pipe.send([one.scores["chair_i"] for one in found])

if __name__ == "__main__":
    address, method = sys.argv[1:]
    with Scorer(
        "chair", references={"1": ["dog"], "2": ["cat"]}, scores=["chair_i"], server=address
    ) as scorer:
        if not address:
            scorer([("2", "A cat.")])
        context = multiprocessing.get_context(method)
        ours, theirs = context.Pipe()
        child = context.Process(target=score, args=(scorer, theirs))
        child.start()
        theirs.close()
        print(ours.recv())
        child.join()
"""


GOES = "test_it_goes_to_other_processes"


@pytest.mark.parametrize(
    ("method", "remote"),
    [("fork", False), ("spawn", True), further(GOES, "fork", True), further(GOES, "spawn", False)],
)
def test_it_goes_to_other_processes(server: str, method: str, remote: bool, tmp_path: Path) -> None:
    # In a process of its own: gRPC, once used, would not survive a fork of this one.
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    done = subprocess.run(
        [sys.executable, script, server if remote else "", method],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("[0.5, 0.0]\n", 0), done.stderr


def judged(url: str, **more: Any) -> Scorer:
    return Scorer(
        "tri-he",
        references={"1": [["dog", "on", "grass"]]},
        options={"judge": "llm"},
        settings={"llm.url": url, "llm.model": "tiny"},
        **more,
    )


async def test_a_judge_that_hangs_is_given_up_at_the_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = [("1", "A dog is on grass.")] * 3
    async with llm.ScriptedLlm(llm.always(llm.Reply(hold=asyncio.Event()))) as model:
        waiting = await asyncio.to_thread(judged, model.url, deadline=0.2, on_failure="none")
        with caplog.at_level(logging.WARNING, "hallujudge.sdk.scorer"):
            for _ in range(3):
                found = await waiting.score(answers)
                assert [one.scores["hallu_q"] for one in found] == [None] * 3
        assert len(caplog.records) == 1, "said once, not at every call"
        assert model.chats > 0
        strict = await asyncio.to_thread(judged, model.url, deadline=0.2)
        with pytest.raises(DeadlineError, match="deadline"):
            await strict.score(answers)
        for one in (waiting, strict):
            await asyncio.to_thread(one.close)


def test_a_server_that_restarts_costs_a_retry() -> None:
    first = ServerProcess()
    reward = Reward("chair", "chair_i", references=REFERENCES, server=first.address)
    expected = [None if one is None else 1 - one for one in CHAIR_I]
    assert reward(RESPONSES) == expected
    first.stop()
    with ThreadPoolExecutor() as pool:
        call = pool.submit(reward, RESPONSES)
        second = ServerProcess("--port", first.address.rpartition(":")[2])
        assert call.result(PATIENCE) == expected
    assert reward(RESPONSES) == expected
    scorer = reward.scorer
    second.stop()
    scorer.deadline, scorer.on_failure = 1.0, "none"
    gone = scorer(RESPONSES)
    assert {one.outcome for one in gone} == {Outcome.UNSCORED}
    assert {*(one.reason for one in gone)} <= {"DEADLINE_EXCEEDED", "SERVER_UNREACHABLE"}
    scorer.close()
