"""Clients of a server: shared by threads, reconnected, stopped early."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from support.running import ServerProcess
from support.threads import PATIENCE, Gate, busy_switching, eventually, run_in_threads

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.spec import RunHeader
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.metrics import IntervalSettings, Report, Tally
from hallujudge.sdk import AsyncClient, Client
from hallujudge.sdk.errors import UnavailableError

RESPONSES = {str(n): "A dog and a cat." for n in range(300)}
REFERENCES = {str(n): ["dog"] for n in range(300)}


class ServerThread:
    """A server of this process in a thread with a loop of its own."""

    def __init__(self, port: int = 0, engine: Engine | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server: RunningServer = asyncio.run_coroutine_threadsafe(
            start(ServerSettings(port=port), engine), self._loop
        ).result(PATIENCE)
        self.address, self.port = self._server.address, self._server.port

    def __enter__(self) -> ServerThread:
        return self

    def __exit__(self, *exc_info: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(0), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def test_an_asynchronous_client_outlives_its_loop() -> None:
    with ServerThread() as server:
        client = AsyncClient(server.address)

        async def once(*, last: bool) -> float | None:
            report = await client.score("chair", responses=RESPONSES, references=REFERENCES)
            if last:
                await client.close()
            return report.chair_i

        assert [asyncio.run(once(last=last)) for last in (False, True)] == [0.5, 0.5]


def test_one_client_of_a_server_in_many_threads() -> None:
    def score() -> float | None:
        report = client.score("chair", responses=RESPONSES, references=REFERENCES)
        return report.chair_i

    with busy_switching(), ServerThread() as server, Client(server.address) as client:
        assert run_in_threads(score, 8) == [0.5] * 8


def test_a_server_that_is_back_is_found() -> None:
    with ServerThread() as first:
        client = Client(first.address)
        assert client.server_info().version
    for _ in range(4):
        with pytest.raises(UnavailableError):
            client.server_info()

    def answers() -> bool:
        try:
            return bool(client.server_info().version)
        except UnavailableError:
            return False

    with ServerThread(first.port):
        assert eventually(answers)
        client.close()


# A process of its own: gRPC shares one queue among the event loops of a process, and loops that
# other tests closed may keep what is counted here.
FAILED_STREAMS = """
import asyncio, sys
from hallujudge.sdk import Client

captions = {str(number): "A dog and a cat." for number in range(300)}
objects = {key: ["dog"] for key in captions}
with Client(sys.argv[1]) as client:
    def score(on_batch):
        client.score("chair", responses=captions, references=objects, on_batch=on_batch)

    def tasks():
        seen = []
        score(lambda _: seen.append(len(asyncio.all_tasks())))
        return min(seen)

    def stop(_):
        raise RuntimeError("enough")

    before = tasks()
    for _ in range(3):
        try:
            score(stop)
        except RuntimeError as err:
            print(err)
    # Cancelled tasks may still be ending for a few runs.
    print("clean" if any(tasks() <= before for _ in range(50)) else "tasks are left")
"""


def test_a_failed_stream_leaves_no_task_behind() -> None:
    server = ServerProcess()
    try:
        done = subprocess.run(
            [sys.executable, "-c", FAILED_STREAMS, server.address],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        server.stop()
    assert done.stdout == "enough\n" * 3 + "clean\n", done.stderr


@pytest.mark.parametrize("kind", ["embedded", "server"])
async def test_other_work_goes_on_while_a_report_is_made(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make, gate = RunHeader.report, Gate()

    def gated(self: RunHeader, tally: Tally, interval: IntervalSettings) -> Report:
        gate.wait()
        return make(self, tally, interval)

    monkeypatch.setattr(RunHeader, "report", gated)
    server = await start(ServerSettings(port=0))
    async with (
        AsyncClient.embedded() if kind == "embedded" else AsyncClient(server.address) as client
    ):
        # Reports by group are made in a thread, however few items there are.
        row = {"image_id": 1, "caption": "A dog.", "source": "a"}
        scoring = asyncio.ensure_future(
            client.score("chair", responses=[row], references={"1": ["dog"]}, group_by=["source"])
        )
        await gate.reached()
        # The loop answers others while the report waits at the gate.
        assert (await client.server_info()).version
        assert not scoring.done()
        gate.open()
        assert (await scoring).chair_i == 0
    await server.stop(0)
    assert gate.loop_thread not in gate.threads


SIGNAL_IN_ANOTHER_THREAD = """
import itertools, signal, threading
from hallujudge.sdk import Client

def captions():
    for number in itertools.count():
        yield {"image_id": number, "caption": "A dog."}
        if number == 100:
            # The system may deliver a signal to any thread of a process.
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
with Client.embedded() as client:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.metrics import ChairItem
    items = (
        ChairItem(id=str(row["image_id"]), response="A dog.", reference_objects=("dog",))
        for row in captions()
    )
    try:
        client.score_items(ScoreSpec(metric="chair"), items)
    except KeyboardInterrupt:
        print("stopped")
"""


def test_a_signal_that_another_thread_receives_stops_the_run() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_IN_ANOTHER_THREAD],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
