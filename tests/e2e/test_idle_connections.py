"""Idle connections of strangers do not take the files of a server."""

from __future__ import annotations

import resource
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from support.http_calls import JUDGE
from support.running import ServerProcess, http_address
from support.threads import PATIENCE, eventually

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem

IDLE = 1150
KEPT = 576
"""Three quarters of the connections, which are three quarters of the files."""
MOST_LOGGED = 10_000
SCORE = pb.ScoreRequest(
    spec=spec_to_proto(ScoreSpec(metric="chair")),
    items=[item_to_proto(ChairItem(id="1", response="A dog.", reference_objects=("dog",)))],
)


class LimitedServer(ServerProcess):
    """A server with the usual limit of open files."""

    before = ("/bin/sh", "-c", 'ulimit -n 1024 && exec "$0" "$@"')


class SoftlyLimitedServer(ServerProcess):
    """A server that may raise its limit of open files."""

    before = ("/bin/sh", "-c", 'ulimit -S -n 512 && exec "$0" "$@"')


def test_a_server_opens_as_many_files_as_it_may() -> None:
    server = SoftlyLimitedServer()
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    code, _ = server.stop()
    assert (code, soft) == (0, hard)
    assert hard > 512


@pytest.fixture
def _files_for_clients() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2 * IDLE), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def score_over_grpc(address: str, key: str) -> None:
    with grpc.insecure_channel(address) as channel:
        bearer = ("authorization", f"Bearer {key}")
        stub = pb_grpc.JudgeServiceStub(channel)
        stub.Score(SCORE, metadata=(bearer,), timeout=PATIENCE)


def ask_over_http(address: str, key: str) -> None:
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    asked = urllib.request.Request(f"http://{address}{JUDGE}GetServerInfo", b"{}", headers)
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        assert answer.status == 200


def is_closed(connection: socket.socket) -> bool:
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.usefixtures("_files_for_clients")
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_key_is_served_beside_more_idle_connections_than_files(
    protocol: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    server = LimitedServer("--http-port", "0", "--keys-file", str(keys))
    http = http_address(server)
    host, _, port = (server.address if protocol == "grpc" else http).rpartition(":")
    idle: list[socket.socket] = []
    with ExitStack() as stack:
        for _ in range(IDLE):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex((host, int(port)))
            idle.append(one)
        # While so many come at once, a new connection may be closed with them.
        assert eventually(lambda: sum(map(is_closed, idle)) >= IDLE - KEPT)
        for _ in range(3):
            score_over_grpc(server.address, key)
            ask_over_http(http, key)
    code, log = server.stop()
    assert code == 0
    assert "Traceback" not in log
    assert len(log) < MOST_LOGGED
