"""A server process ends: at the second signal, and in spite of a thread that works on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import grpc
import pytest
from support.running import ServerProcess, errors_of
from support.threads import PATIENCE, eventually

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge.v1 import scoring_pb2

CALLS = 100
STUBBORN = """
import asyncio, os, signal, threading
from hallujudge.judge_service.server.server import Shutdown

def work_on():
    while True:
        pass

async def main():
    shutdown = Shutdown(0.1, margin=0.1)
    shutdown.listen()
    threading.Thread(target=work_on).start()
    os.kill(os.getpid(), signal.SIGTERM)
    await shutdown.stopping.wait()

asyncio.run(main())
"""


def test_a_second_signal_ends_the_drain_and_tells_the_clients() -> None:
    server = ServerProcess("--drain-seconds", "3000")
    over = threading.Event()
    with grpc.insecure_channel(server.address) as channel:
        spec = pb.ScoreStreamRequest(spec=scoring_pb2.ScoreSpec(metric="chair"))
        stub = pb_grpc.JudgeServiceStub(channel)
        silent = stub.ScoreStream(_and_silence(spec, over), timeout=PATIENCE)
        assert next(silent).HasField("accepted")
        server.process.send_signal(signal.SIGTERM)
        # Two signals of one kind that wait to be delivered are one.
        assert eventually(lambda: "draining" in server.errors_so_far())
        code, errors = server.stop()
        with pytest.raises(grpc.RpcError) as caught:
            next(silent)
        over.set()
    assert code == 0, errors
    assert "Traceback" not in errors
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "the server stops" in str(caught.value.details())


def test_calls_that_a_stopping_server_has_not_begun_are_unavailable() -> None:
    server = ServerProcess()
    with grpc.insecure_channel(server.address) as channel:
        stub = pb_grpc.JudgeServiceStub(channel)
        request = pb.ScoreRequest(spec=scoring_pb2.ScoreSpec(metric="chair"))
        stub.Score(request, timeout=PATIENCE)
        # It finds the calls and the signal together.
        server.process.send_signal(signal.SIGSTOP)
        calls = [stub.Score.future(request, timeout=PATIENCE) for _ in range(CALLS)]
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        codes = Counter(call.code() for call in calls)
        code, errors = server.stop()
    assert code == 0, errors
    assert codes.keys() <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}, codes


@pytest.fixture
def terminal() -> Iterator[None]:
    """Processes that start here heed a closing terminal, even where the suite runs under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("terminal")
def test_a_terminal_that_closes_drains_the_server() -> None:
    server = ServerProcess()
    code, errors = server.stop(signal.SIGHUP)
    assert code == 0, errors
    assert "draining" in errors


def test_a_server_that_shall_outlive_its_terminal_does() -> None:
    server = UnderNohup()
    server.process.send_signal(signal.SIGHUP)
    with grpc.insecure_channel(server.address) as channel:
        stub = pb_grpc.JudgeServiceStub(channel)
        stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=PATIENCE)
    assert "draining" not in server.errors_so_far()
    assert server.stop()[0] == 0


class UnderNohup(ServerProcess):
    """A server that ignores that its terminal closes."""

    before = ("nohup",)


def _and_silence(
    first: pb.ScoreStreamRequest, over: threading.Event
) -> Iterator[pb.ScoreStreamRequest]:
    yield first
    over.wait(PATIENCE)


def test_a_thread_that_works_on_does_not_keep_the_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stderr=subprocess.PIPE, text=True)
    errors = errors_of(process)
    assert process.returncode == 1
    assert "work_on" in errors
