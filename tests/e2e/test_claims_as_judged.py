"""Verdicts are counted as a judge gives them: in this process, at a server, and in a job there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import ServerProcess, cli
from support.threads import PATIENCE
from support.tri_he_samples import SCENE, answer

from hallujudge.judge_service.engine.streams import RunProgress
from hallujudge.sdk import AsyncClient, ScoreRun
from hallujudge.sdk.runs.run_inputs import PreparedRun

CLAIMS = [["man", "riding", f"horse {n}"] for n in range(5)]
GIVEN: dict[str, Any] = {
    "responses": [answer("1", *CLAIMS)],
    "references": [{"image_id": "1", "triplets": SCENE}],
    "options": {"judge": "llm"},
}


class Judge:
    """Gives two verdicts, and the others when somebody has counted these two."""

    def __init__(self) -> None:
        self.counted = asyncio.Event()

    def step(self, number: int, body: llm.Body) -> llm.Reply:
        """Answer a call."""
        held = llm.claims_of(body)[0] in CLAIMS[2:]
        return replace(llm.by_scene_graph(number, body), hold=self.counted if held else None)

    def progressed(self, now: RunProgress) -> None:
        """Receive progress of a run."""
        if now.verdicts == {"llm": 2}:
            self.counted.set()


@pytest.fixture
async def judge(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Judge]:
    judge = Judge()
    async with llm.ScriptedLlm(judge.step) as model:
        monkeypatch.setenv("HALLUJUDGE_LLM_URL", model.url)
        monkeypatch.setenv("HALLUJUDGE_LLM_MODEL", "m")
        yield judge


@pytest.fixture
async def address(judge: Judge) -> AsyncIterator[str]:
    server = await asyncio.to_thread(ServerProcess)
    yield server.address
    await asyncio.to_thread(server.stop)


async def scored(client: AsyncClient, judge: Judge) -> None:
    """Score the run, which ends only if its verdicts are counted before it has a result."""
    run = ScoreRun("tri-he", **GIVEN)
    items = PreparedRun.of(run).items
    report = await client.score_items(run.spec(), items, on_progress=judge.progressed)
    assert [(share.judge, share.decided) for share in report.judging] == [("llm", 5)]


def said(*command: str) -> str:
    """Return what a command prints."""
    return cli(*command).stdout


async def test_in_this_process(judge: Judge) -> None:
    async with AsyncClient.embedded() as client:
        await scored(client, judge)


async def test_at_a_server(judge: Judge, address: str) -> None:
    async with AsyncClient(address) as client:
        await scored(client, judge)


async def test_in_a_job(judge: Judge, address: str) -> None:
    async with AsyncClient(address) as client:
        job = await client.submit("tri-he", **GIVEN)
        shown = ("jobs", "show", job.id, "--server", address)
        async with asyncio.timeout(PATIENCE):
            while "0 of 1 items, verdicts: llm 2" not in await asyncio.to_thread(said, *shown):
                pass
        judge.counted.set()
        done = await client.wait_for_job(job.id)
    assert (done.state, done.scored) == ("done", 1)
