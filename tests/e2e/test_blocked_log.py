"""Standard error and standard output are not read: calls are answered, and the server ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from support.certificates import Certificates, make_certificates
from support.running import BIN, ServerProcess
from support.sizes import further
from support.threads import PATIENCE

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.threads import LOOK_SECONDS
from hallujudge.sdk import Client, Connection

ANSWERED = "test_calls_are_answered_and_the_server_ends_while_nobody_reads_its_output"
SIGNALS = "test_two_signals_end_it_too"
STARTS = "test_a_server_starts_while_its_standard_output_takes_no_line"
_DRAIN_SECONDS = 2
# The server kills itself 15 seconds after the drain.
_END_SECONDS = _DRAIN_SECONDS + 15 + 15


@dataclass
class Blocked:
    """A server whose output goes into a pipe that is full."""

    process: subprocess.Popen[bytes]
    address: str
    keys: Path
    key: str

    def answered(self, calls: int) -> int:
        """Return how many calls were answered; each one is after a change of the key file."""
        answers = 0
        with grpc.insecure_channel(self.address) as channel:
            stub = pb_grpc.JudgeServiceStub(channel)
            for number in range(calls):
                # The server logs that it can't read the file, and serves with the keys it has.
                self.keys.write_text("not a key file" + "!" * number, encoding="utf-8")
                try:
                    stub.GetServerInfo(
                        pb.GetServerInfoRequest(),
                        metadata=(("authorization", f"Bearer {self.key}"),),
                        timeout=LOOK_SECONDS + 5,
                    )
                except grpc.RpcError:
                    continue
                answers += 1
                time.sleep(LOOK_SECONDS)  # the server looks at the file again
        return answers

    def end(self) -> int:
        """Send SIGTERM, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_END_SECONDS)


ERRORS, LINES = "standard error", "access log on standard output"


@pytest.fixture
def blocked(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Blocked]:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    command: list[str | Path] = [BIN / "hallujudge", "serve", "--port", "0", "--workers", "1"]
    command += ["--keys-file", keys, "--drain-seconds", str(_DRAIN_SECONDS)]
    output, errors = os.pipe(), os.pipe()
    if request.param != ERRORS:
        command += ["--access-log", "-"]
    process = subprocess.Popen(
        command,
        stdout=output[1],
        stderr=errors[1],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    try:
        with open(output[0], "rb", closefd=False) as lines:
            address = lines.readline().decode().removeprefix("hallujudge serves at ").strip()
        _fill(errors[1])
        _fill(output[1])
        yield Blocked(process, address, keys, key)
    finally:
        process.kill()
        process.wait()
        for end in (*output, *errors):
            os.close(end)


def _fill(pipe: int) -> None:
    # A description of its own: the option must not reach the server.
    own = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        for size in (4096, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(own, b"\n" * size)
    finally:
        os.close(own)


@pytest.mark.parametrize("blocked", [ERRORS, further(ANSWERED, LINES)], indirect=True)
def test_calls_are_answered_and_the_server_ends_while_nobody_reads_its_output(
    blocked: Blocked,
) -> None:
    assert blocked.answered(3) == 3
    assert blocked.end() == 0


@pytest.mark.parametrize("blocked", [LINES, further(SIGNALS, ERRORS)], indirect=True)
def test_two_signals_end_it_too(blocked: Blocked) -> None:
    assert blocked.answered(1) == 1
    blocked.process.send_signal(signal.SIGINT)
    assert blocked.end() == 0


def _full_pipe() -> tuple[int, int]:
    ends = os.pipe()
    _fill(ends[1])
    return ends


def _pipe_without_reader() -> tuple[int, int]:
    ends = os.pipe()
    os.close(ends[0])
    return os.open(os.devnull, os.O_RDONLY), ends[1]


def _full_disk() -> tuple[int, int]:
    return os.open(os.devnull, os.O_RDONLY), os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize(
    "ends_of", [_full_pipe, further(STARTS, _pipe_without_reader), further(STARTS, _full_disk)]
)
def test_a_server_starts_while_its_standard_output_takes_no_line(
    ends_of: Callable[[], tuple[int, int]],
) -> None:
    ends = ends_of()
    try:
        assert _served_and_ended('exec "$0" "$@"', stdout=ends[1]) == 0
    finally:
        for end in ends:
            os.close(end)


def test_no_connection_takes_the_place_of_a_closed_standard_file() -> None:
    standard: list[str] = []

    def look(pid: int) -> None:
        files = Path(f"/proc/{pid}/fd")
        standard.extend(str((files / str(number)).readlink()) for number in range(3))

    assert _served_and_ended('exec "$0" "$@" <&- >&- 2>&-', look) == 0
    assert standard == [os.devnull] * 3


def _served_and_ended(
    script: str, look: Callable[[int], None] = lambda _pid: None, stdout: int | None = None
) -> int:
    """Start a server, which does not say its address, by a script; return its exit code."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    command: list[str | Path] = ["/bin/sh", "-c", script, BIN / "hallujudge", "serve"]
    command += ["--port", str(port)]
    command += ["--workers", "1", "--jobs-database", "off", "--drain-seconds", str(_DRAIN_SECONDS)]
    process = subprocess.Popen(command, stdout=stdout)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            info = pb_grpc.JudgeServiceStub(channel).GetServerInfo
            info(pb.GetServerInfoRequest(), wait_for_ready=True, timeout=PATIENCE)
        look(process.pid)
        process.send_signal(signal.SIGTERM)
        return process.wait(_END_SECONDS)
    finally:
        process.kill()
        process.wait()


def failing_handshakes(address: str, count: int) -> None:
    """Send to a TLS port what is no TLS; gRPC's core has a line for each."""
    host, _, port = address.rpartition(":")
    for _ in range(count):
        with socket.create_connection((host, int(port))) as one:
            one.settimeout(2)
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            with contextlib.suppress(OSError):
                one.recv(100)


def serving_with_tls(certificates: Certificates) -> tuple[str, ...]:
    cert, key = certificates.server
    return ("--tls-cert", cert, "--tls-key", key, "--drain-seconds", str(_DRAIN_SECONDS))


def has_a_score(address: str, certificates: Certificates) -> bool:
    with Client(address, connection=Connection(tls_ca=certificates.ca)) as client:
        run = client.score("chair", responses={"1": "A dog."}, references={"1": ["dog"]})
    return run.chair_i == 0.0


class LoggedByGrpc(ServerProcess):
    """A server whose standard error is a pipe of the test, and where gRPC's core writes to it."""

    before = ("/bin/sh", "-c", 'exec "$0" "$@" 2>"$STANDARD_ERROR"')

    def __init__(self, pipe: int, *arguments: str) -> None:
        path = f"/proc/{os.getpid()}/fd/{pipe}"
        super().__init__(*arguments, STANDARD_ERROR=path, GRPC_VERBOSITY="INFO")


def test_lines_that_grpc_writes_itself_hold_up_nothing(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    ends = os.pipe()
    try:
        server = LoggedByGrpc(ends[1], *serving_with_tls(certificates))
        _fill(ends[1])
        failing_handshakes(server.address, 8)
        assert has_a_score(server.address, certificates)
        code, _ = server.stop()
    finally:
        for end in ends:
            os.close(end)
    assert code == 0


def test_a_stranger_adds_no_line_to_the_log_by_connecting(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    server = ServerProcess(*serving_with_tls(certificates))
    failing_handshakes(server.address, 8)
    assert has_a_score(server.address, certificates)
    code, log = server.stop()
    assert (code, log.count("Handshake")) == (0, 0), log
