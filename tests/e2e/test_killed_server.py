"""A server that is killed at work and started again: nothing is lost, and no call is paid twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import ServerProcess
from support.threads import PATIENCE, eventually
from support.toll import Toll, verdicts
from support.tri_he_samples import SCENE

from hallujudge.sdk import Client, RunFolder, Timeouts

AT_ONCE = 4
ANSWERS = 60
CLAIMS = 3
KILLS = 3
BETWEEN = 40
"""Calls that are answered between two kills."""


def arguments() -> dict[str, Any]:
    """A run of answers with a few claims each, every claim with a prompt of its own."""
    answers = [
        {
            "image_id": "1",
            "question": f"{number}?",
            "claims": [["man", "has", f"hat {number} {claim}"] for claim in range(CLAIMS)],
        }
        for number in range(ANSWERS)
    ]
    graphs = [{"image_id": "1", "triplets": SCENE}]
    return {"responses": answers, "references": graphs, "options": {"judge": "llm"}}


class KilledServer:
    """A server that is started again on the same port, and its judge."""

    def __init__(self, folder: Path) -> None:
        self.toll = Toll()
        self._folder = folder
        self._judge = llm.ScriptedLlm(self.toll.step)
        self._stop_judge = self._judge.in_thread()
        self._process = self._start("0")
        self.address = self._process.address

    def kill_at_work(self) -> None:
        """Let some calls be answered, kill the server with calls under way, and start it again."""
        before = self.toll.paid.total()
        self.toll.allowed = BETWEEN
        assert eventually(lambda: len(self.toll.held) == AT_ONCE)
        # A reply is safe when it is in the cache.
        assert eventually(lambda: verdicts(self._folder) == self.toll.paid.total())
        assert self.toll.paid.total() == before + BETWEEN
        code, _ = self._process.stop(signal.SIGKILL)
        assert code == -signal.SIGKILL
        self.toll.drop()
        self._process = self._start(self.address.rpartition(":")[2])

    def stop(self) -> None:
        self.toll.drop()
        code, errors = self._process.stop()
        self._stop_judge()
        assert code == 0, errors
        assert "Traceback" not in errors

    def _start(self, port: str) -> ServerProcess:
        return ServerProcess(
            *("--port", port, "--data-folder", str(self._folder)),
            *("--llm-url", self._judge.url, "--llm-model", "m"),
            HALLUJUDGE_LLM_MAX_CONCURRENCY=str(AT_ONCE),
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KilledServer]:
    started = KilledServer(tmp_path / "data")
    yield started
    started.stop()


@contextmanager
def in_thread(work: Any, *given: Any, **named: Any) -> Iterator[Future[Any]]:
    threads = ThreadPoolExecutor(1)
    try:
        yield threads.submit(work, *given, **named)
    finally:
        # After a failure the work may never end by itself.
        threads.shutdown(wait=False)


def test_a_run_at_a_server_that_is_killed(server: KilledServer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        Client(server.address, timeouts=Timeouts(reconnect_timeout=PATIENCE)) as client,
        in_thread(client.score, "tri-he", **arguments(), folder=out) as run,
    ):
        for _ in range(KILLS):
            server.kill_at_work()
        server.toll.allowed = ANSWERS * CLAIMS
        run.result(PATIENCE)
        paid = server.toll.paid
        assert paid.total() == len(paid) == ANSWERS * CLAIMS
        undisturbed = tmp_path / "undisturbed"
        client.score("tri-he", **arguments(), folder=undisturbed)
    assert paid.total() == ANSWERS * CLAIMS
    for name in ("items.jsonl", "report.json"):
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes()


def test_a_job_of_a_server_that_is_killed(server: KilledServer, tmp_path: Path) -> None:
    out, given = tmp_path / "out", arguments()
    with Client(server.address, timeouts=Timeouts(reconnect_timeout=PATIENCE)) as client:
        job = client.submit("tri-he", **given)
        with in_thread(client.wait_for_job, job.id) as ended:
            for _ in range(KILLS):
                server.kill_at_work()
            server.toll.allowed = ANSWERS * CLAIMS
            done = ended.result(PATIENCE)
        assert (done.state, done.scored, done.unscored) == ("done", ANSWERS, 0)
        paid = server.toll.paid
        assert paid.total() == len(paid) == ANSWERS * CLAIMS
        assert client.submit("tri-he", **given).id == job.id
        with RunFolder(out) as folder:
            client.fetch_job(job.id, folder)
        undisturbed = tmp_path / "undisturbed"
        client.score("tri-he", **given, folder=undisturbed)
    assert paid.total() == ANSWERS * CLAIMS
    for name in ("items.jsonl", "report.json", "manifest.json"):
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes()
