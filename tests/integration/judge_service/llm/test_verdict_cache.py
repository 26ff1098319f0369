"""The verdict cache under real processes: two on one file, a full disk, an interrupted run."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from support import judge_process
from support import scripted_llm as llm
from support.messages import expected_message
from support.running import unmeasured
from support.threads import PATIENCE, until

CLAIMS = 60


async def started(
    *arguments: object, env: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(judge_process.__file__)),
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )


def slow(number: int, body: llm.Body) -> llm.Reply:
    return replace(llm.by_scene_graph(number, body), delay=0.02)


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM answers").fetchone()[0])


async def test_two_processes_on_one_file_pay_once(tmp_path: Path) -> None:
    async with llm.ScriptedLlm(slow) as server:
        pair = [await started(server.url, tmp_path / "c", CLAIMS) for _ in range(2)]
        outputs = [await one.communicate() for one in pair]
    assert [json.loads(out) for out, _ in outputs] == [{"not_supported": CLAIMS}] * 2
    assert server.chats == CLAIMS
    assert rows(tmp_path / "c") == CLAIMS


async def test_a_full_disk_costs_no_verdict(tmp_path: Path) -> None:
    async with llm.ScriptedLlm() as server:
        # What coverage measures would not fit, and the rest of it is no database.
        process = await started(server.url, tmp_path / "c", CLAIMS, 60_000, env=unmeasured())
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert json.loads(out) == {"not_supported": CLAIMS}
    assert (
        err.decode().count(expected_message("judge_service.llm.verdict_cache:cannot-be-used-now"))
        == 1
    )
    assert (
        expected_message("judge_service.llm.verdict_cache:records-were-not-written") in err.decode()
    )
    assert server.chats == CLAIMS


async def test_an_interrupted_run_keeps_every_answered_call(tmp_path: Path) -> None:
    answered = CLAIMS // 2

    def step(number: int, body: llm.Body) -> llm.Reply:
        reply = llm.by_scene_graph(number, body)
        return reply if number <= answered else replace(reply, delay=PATIENCE)

    async with llm.ScriptedLlm(step) as server:
        process = await started(server.url, tmp_path / "c", CLAIMS)
        # The four calls at the same time that follow the answered ones get no answer.
        await until(lambda: server.chats == answered + 4)
        process.send_signal(signal.SIGINT)
        await process.communicate()
        assert rows(tmp_path / "c") == answered
        server.steps = (llm.by_scene_graph,)
        again = await started(server.url, tmp_path / "c", CLAIMS)
        out, _ = await again.communicate()
    assert json.loads(out) == {"not_supported": CLAIMS}
    assert server.chats == answered + 4 + CLAIMS - answered
