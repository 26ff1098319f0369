"""A server that is killed at work and started again: nothing is lost, and no call is paid twice."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import ServerProcess, read_rows
from support.sizes import sized
from support.threads import PATIENCE, eventually, result_while
from support.toll import Toll, verdicts
from support.tri_he_samples import SCENE

from hallujudge.sdk import Client, RunFolder, Timeouts

AT_ONCE = 4
ANSWERS = sized(20, 60)
CLAIMS = AT_ONCE
"""Of one item: after a kill items are scored alone, and its claims are what is under way then."""
KILLS = sized(1, 3)
BETWEEN = sized(20, 40)
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


class FatalServer:
    """A server that dies whenever it asks its judge about a certain claim, and is started again."""

    def __init__(self, folder: Path) -> None:
        self.paid: Counter[str] = Counter()
        self.deaths = 0
        self.starts = 0
        self._folder = folder
        self._judge = llm.ScriptedLlm(self._step)
        self._stop_judge = self._judge.in_thread()
        self._stopping = threading.Event()
        self._process = self._start("0")
        self.address = self._process.address
        self._again = threading.Thread(target=self._start_again)
        self._again.start()

    def stop(self) -> None:
        self._stopping.set()
        self._process.stop()
        self._again.join(PATIENCE)
        self._stop_judge()

    def progress(self) -> tuple[int, int, int]:
        """Return what changes while a run goes on, however slow the machine is."""
        return self.deaths, self.starts, self.paid.total()

    def _step(self, number: int, body: llm.Body) -> llm.Reply:
        if "fatal" in llm.prompt_of(body):
            self.deaths += 1
            os.kill(self._process.process.pid, signal.SIGKILL)
            return llm.Reply(reset=True)
        self.paid[llm.prompt_of(body)] += 1
        return llm.by_scene_graph(number, body)

    def _start(self, port: str) -> ServerProcess:
        return ServerProcess(
            *("--port", port, "--data-folder", str(self._folder)),
            *("--llm-url", self._judge.url, "--llm-model", "m"),
            HALLUJUDGE_LLM_MAX_CONCURRENCY=str(AT_ONCE),
        )

    def _start_again(self) -> None:
        while self._process.process.wait() is not None and not self._stopping.is_set():
            self._process.stop()
            self._process = self._start(self.address.rpartition(":")[2])
            self.starts += 1


@pytest.fixture
def fatal(tmp_path: Path) -> Iterator[FatalServer]:
    started = FatalServer(tmp_path / "data")
    yield started
    started.stop()


FATAL = 7


def fatal_arguments(count: int = 20) -> dict[str, Any]:
    """Return a run of answers with one claim each; one of them kills the server."""
    given = arguments()
    given["responses"] = given["responses"][:count]
    for number, answer in enumerate(given["responses"]):
        answer["claims"] = [["man", "has", "a fatal hat" if number == FATAL else f"hat {number}"]]
    return given


def test_an_item_that_kills_the_server_is_unscored_and_the_run_goes_on(
    fatal: FatalServer, tmp_path: Path
) -> None:
    out, given = tmp_path / "out", fatal_arguments()
    timeouts = Timeouts(reconnect_timeout=PATIENCE)
    with (
        Client(fatal.address, timeouts=timeouts) as client,
        in_thread(client.score, "tri-he", **given, folder=out) as run,
    ):
        report = result_while(run, fatal.progress)
    rows = read_rows(out / "items.jsonl")
    assert [n for n, row in enumerate(rows) if row["outcome"] == "unscored"] == [FATAL]
    assert rows[FATAL]["reason"] == "PROCESS_DIED"
    assert fatal.address in rows[FATAL]["detail"]
    assert report.coverage.reasons == {"PROCESS_DIED": 1}
    # With 20, 10, 5, 3 and 2 items; then alone, twice where six others survive alone.
    assert fatal.deaths <= 9
    assert len(fatal.paid) == len(rows) - 1
    at_deaths = (AT_ONCE - 1) * 5
    assert fatal.paid.total() - len(fatal.paid) <= at_deaths, "beyond those under way at a death"


# Whom a job blames, without processes: tests/integration/judge_service/jobs/test_job_suspicions.py.
@pytest.mark.large("test_an_item_that_kills_the_server_is_unscored_and_the_run_goes_on")
def test_an_item_that_kills_the_server_is_unscored_and_its_job_ends(
    fatal: FatalServer, tmp_path: Path
) -> None:
    given = fatal_arguments()
    with Client(fatal.address, timeouts=Timeouts(reconnect_timeout=PATIENCE)) as client:
        job = client.submit("tri-he", **given)
        with in_thread(client.wait_for_job, job.id) as ended:
            done = result_while(ended, fatal.progress)
        assert (done.state, done.scored, done.unscored) == ("done", len(given["responses"]) - 1, 1)
        with RunFolder(tmp_path / "out") as folder:
            report = client.fetch_job(job.id, folder)
    rows = read_rows(tmp_path / "out" / "items.jsonl")
    assert rows[FATAL]["reason"] == "PROCESS_DIED"
    assert report.coverage.reasons == {"PROCESS_DIED": 1}
    # At most five times with others, and six times alone where no other item was alone before it.
    assert fatal.deaths <= 11
    assert len(fatal.paid) == len(rows) - 1
    at_deaths = (AT_ONCE - 1) * 5
    assert fatal.paid.total() - len(fatal.paid) <= at_deaths, "beyond those under way at a death"


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
        result_while(run, server.toll.paid.total)
        paid = server.toll.paid
        assert paid.total() == len(paid) == ANSWERS * CLAIMS
        undisturbed = tmp_path / "undisturbed"
        client.score("tri-he", **arguments(), folder=undisturbed)
    assert paid.total() == ANSWERS * CLAIMS
    for name in ("items.jsonl", "report.json"):
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes()


# Jobs outlast deaths in test_jobs.py and test_faults.py of the server too, more quickly.
@pytest.mark.large("test_a_run_at_a_server_that_is_killed")
def test_a_job_of_a_server_that_is_killed(server: KilledServer, tmp_path: Path) -> None:
    out, given = tmp_path / "out", arguments()
    with Client(server.address, timeouts=Timeouts(reconnect_timeout=PATIENCE)) as client:
        job = client.submit("tri-he", **given)
        with in_thread(client.wait_for_job, job.id) as ended:
            for _ in range(KILLS):
                server.kill_at_work()
            server.toll.allowed = ANSWERS * CLAIMS
            done = result_while(ended, server.toll.paid.total)
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
