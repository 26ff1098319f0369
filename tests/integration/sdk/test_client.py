"""Clients that are shared, dropped, stopped early and addressed wrongly."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.engine import ScoringSession
from hallujudge.judge_service.engine.spec import InlineGraph, ScoreSpec
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.server import ServerSettings
from hallujudge.metrics import IntervalSettings, Report
from hallujudge.sdk import AsyncClient, Client
from hallujudge.sdk.errors import CancelledError, InvalidInputError, UnavailableError

RESPONSES = {str(n): "A dog and a cat." for n in range(300)}
REFERENCES = {str(n): ["dog"] for n in range(300)}
ROUNDS = 8


def scored(client: Client) -> float | None:
    report = client.score("chair", responses=RESPONSES, references=REFERENCES, replicates=0)
    return report.chair_i


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def loop_threads() -> int:
    return sum(thread.name == "hallujudge-client" for thread in threading.enumerate())


def eventually(true: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.02)
    return true()


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that are switched as often as they can be, so that races show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_one_client_in_many_threads_is_one_thread_more() -> None:
    before = loop_threads()
    values: list[float | None] = []
    with Client.embedded() as client:
        threads = [
            threading.Thread(target=lambda: values.append(scored(client))) for _ in range(ROUNDS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert loop_threads() == before + 1
    assert values == [0.5] * ROUNDS
    assert loop_threads() == before


def test_clients_that_nobody_closes_end_when_they_are_dropped() -> None:
    before, files = loop_threads(), open_files()
    for _ in range(ROUNDS):
        assert Client.embedded().server_info().version
    assert eventually(lambda: loop_threads() == before)
    assert eventually(lambda: open_files() <= files)


def test_closing_ends_what_another_thread_waits_for() -> None:
    client = Client.embedded()
    caught: list[BaseException] = []
    begun = threading.Event()

    def slow() -> None:
        async def forever() -> None:
            begun.set()
            await asyncio.sleep(3600)

        try:
            client._run(forever())
        except CancelledError as err:
            caught.append(err)

    thread = threading.Thread(target=slow)
    thread.start()
    begun.wait(5)
    client.close()
    thread.join(10)
    assert not thread.is_alive()
    assert "closed" in str(caught[0])


@pytest.mark.parametrize("make", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("target", "said"), [("", "empty"), ("  ", "empty"), ("http://localhost:50051", "HOST:PORT")]
)
def test_an_address_that_is_none_is_not_taken_for_embedded(
    make: type[Client] | type[AsyncClient], target: str, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        make(target)


class ServerThread:
    """A server of this process in a thread with a loop of its own."""

    def __init__(self, port: int = 0, engine: Engine | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server: RunningServer = asyncio.run_coroutine_threadsafe(
            start(ServerSettings(port=port), engine), self._loop
        ).result(20)
        self.address, self.port = self._server.address, self._server.port

    def __enter__(self) -> ServerThread:
        return self

    def __exit__(self, *exc_info: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(0), self._loop).result(20)
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


@pytest.mark.usefixtures("hasty_threads")
def test_one_client_of_a_server_in_many_threads() -> None:
    values: list[object] = []
    with ServerThread() as server, Client(server.address) as client:

        def work() -> None:
            try:
                values.append(scored(client))
            except Exception as err:
                values.append(err)

        threads = [threading.Thread(target=work) for _ in range(ROUNDS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert values == [0.5] * ROUNDS


def test_a_server_that_is_back_is_found() -> None:
    with ServerThread() as first:
        client = Client(first.address)
        assert client.server_info().version
    for _ in range(4):
        with pytest.raises(UnavailableError):
            client.server_info()
    with ServerThread(first.port):
        end = time.monotonic() + 5
        while True:
            try:
                assert client.server_info().version
                break
            except UnavailableError:
                assert time.monotonic() < end
        client.close()


def test_a_failed_stream_leaves_no_task_behind() -> None:
    with ServerThread() as server, Client(server.address) as client:

        async def tasks() -> int:
            return len(asyncio.all_tasks())

        def stop(_: object) -> None:
            raise RuntimeError("enough")

        assert client.server_info().version
        for _ in range(3):
            with pytest.raises(RuntimeError, match="enough"):
                client.score(
                    "chair", responses=RESPONSES, references=REFERENCES, replicates=0, on_batch=stop
                )
        assert eventually(lambda: client._run(tasks()) <= 2)


async def test_other_work_goes_on_while_a_report_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ScoringSession.report

    def slow(self: ScoringSession) -> Report:
        time.sleep(0.5)
        return made(self)

    monkeypatch.setattr(ScoringSession, "report", slow)
    server = await start(ServerSettings(port=0))
    try:
        for each in (AsyncClient.embedded(), AsyncClient(server.address)):
            async with each as client:
                longest = await longest_pause(
                    client.score("chair", responses={"1": "A dog."}, references={"1": ["dog"]})
                )
                assert longest < 0.4
    finally:
        await server.stop(0)


async def test_other_work_goes_on_while_a_graph_is_read() -> None:
    text = "{" + ", ".join(f'"form {n}": "root{n % 50}"' for n in range(15_000)) + "}"
    spec = ScoreSpec(metric="chair", graphs={"objects": InlineGraph(name="large", text=text)})
    engine = Engine()
    await engine.open(ScoreSpec(metric="chair"))
    begun = time.monotonic()
    longest = await longest_pause(engine.open(spec))
    assert longest < (time.monotonic() - begun) / 2


async def longest_pause(work: object) -> float:
    """The longest time for which work kept the loop from anything else."""
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]  # a coroutine, of any result
    longest, last = 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    await task
    return longest


def test_a_report_is_copied_asked_and_gone_through() -> None:
    with Client.embedded() as client:
        report = client.score("chair", responses=RESPONSES, references=REFERENCES)
    assert pickle.loads(pickle.dumps(report)) == copy.deepcopy(report) == copy.copy(report)
    assert "chair_i" in report
    assert "accuracy" not in report
    assert list(report) == ["chair_i", "chair_s", "recall", "mean_words"]
    assert not hasattr(report, "accuracy")


def test_confidences_that_differ_have_signatures_that_differ() -> None:
    texts = {IntervalSettings(confidence=c).text for c in (0.95, 0.95000001, 0.9999999)}
    assert len(texts) == 3
    assert "cluster-bootstrap-1000-0.95" in texts
