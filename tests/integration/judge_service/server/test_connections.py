"""Too many connections: idle ones are closed, and callers with a key are served."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.certificates import make_certificates
from support.clocks import Clock
from support.http_calls import JUDGE, head_of
from support.http_calls import connected as http_connected
from support.threads import PATIENCE, eventually

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.server.connections import ConnectionGuard, ConnectionLimits
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem

SPEC = spec_to_proto(ScoreSpec(metric="chair"))
SCORE = pb.ScoreRequest(
    spec=SPEC,
    items=[item_to_proto(ChairItem(id="1", response="A dog.", reference_objects=("dog",)))],
)
# Each channel has a connection of its own.
ALONE = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]


@asynccontextmanager
async def serving(**settings: object) -> AsyncIterator[RunningServer]:
    server = await start(
        from_names(ServerSettings, {"port": 0, "http.port": 0, **names_of(settings)})
    )
    try:
        yield server
    finally:
        await server.stop(0)


async def silent(address: str, count: int, stack: AsyncExitStack) -> list[asyncio.StreamReader]:
    """Return connections that say nothing, the oldest first."""
    host, _, port = address.rpartition(":")
    readers = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection(host, int(port))
        stack.callback(writer.close)
        readers.append(reader)
    return readers


async def closed(reader: asyncio.StreamReader) -> None:
    """Wait until the server has closed a connection."""
    async with asyncio.timeout(PATIENCE):
        try:
            while await reader.read(4096):
                pass
        except ConnectionResetError:
            pass


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_a_key_is_served_beside_idle_connections_of_its_own_address(
    protocol: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    bearer = (
        "authorization",
        f"Bearer {create_key(keys, 'ana', scopes=[Scope.SCORE, Scope.EXTRACT])}",
    )
    async with (
        serving(keys_file=str(keys), max_connections_by_address=6) as server,
        AsyncExitStack() as stack,
        grpc.aio.insecure_channel(server.address, options=ALONE) as idle,
        grpc.aio.insecure_channel(server.address, options=ALONE) as busy,
    ):
        # Two connections on which the key calls: one call has ended, and one runs.
        await pb_grpc.JudgeServiceStub(idle).Score(SCORE, metadata=[bearer], timeout=PATIENCE)
        stream = pb_grpc.JudgeServiceStub(busy).ScoreStream(metadata=[bearer], timeout=PATIENCE)
        await stream.write(pb.ScoreStreamRequest(spec=SPEC))
        accepted = await stream.read()
        assert isinstance(accepted, pb.ScoreStreamResponse)
        assert accepted.HasField("accepted")
        address = server.address if protocol == "grpc" else server.http_address
        others = await silent(address, 12, stack)
        for reader in others[:8]:
            await closed(reader)
        assert not any(reader.at_eof() for reader in others[8:])
        assert idle.get_state() == grpc.ChannelConnectivity.READY
        # A new connection of the key has the time for its first call.
        async with grpc.aio.insecure_channel(server.address, options=ALONE) as new:
            await pb_grpc.JudgeServiceStub(new).Score(SCORE, metadata=[bearer], timeout=PATIENCE)
        reader, writer = await http_connected(server)
        body = b"{}"
        name, value = bearer
        writer.write(head_of(JUDGE + "GetServerInfo", len(body), **{name: value}) + body)
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()
        await stream.done_writing()
        report = await stream.read()
        assert isinstance(report, pb.ScoreStreamResponse)
        assert report.HasField("report")


async def test_the_limit_in_all_leaves_room_for_a_new_connection() -> None:
    async with (
        serving(max_connections=4, max_connections_by_address=4) as server,
        AsyncExitStack() as stack,
    ):
        for _ in range(4):
            await silent(server.address, 4, stack)
            async with grpc.aio.insecure_channel(server.address, options=ALONE) as channel:
                stub = pb_grpc.JudgeServiceStub(channel)
                done = stub.Score(SCORE, wait_for_ready=True, timeout=PATIENCE)
                assert len((await done).results) == 1


@pytest.mark.parametrize("tls", [False, True])
async def test_a_client_that_never_begins_to_speak_is_disconnected(
    tls: bool, tmp_path: Path
) -> None:
    settings: dict[str, object] = {"limits.first_message_seconds": 0.3}
    if tls:
        cert, key = make_certificates(tmp_path).server
        settings |= {"tls_cert": cert, "tls_key": key}
    async with serving(**settings) as server, AsyncExitStack() as stack:
        [reader] = await silent(server.address, 1, stack)
        await closed(reader)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as found:
        yield found


def pairs(
    listening: socket.socket, count: int, stack: ExitStack
) -> tuple[list[socket.socket], list[socket.socket]]:
    """Return the clients' and the server's ends of new connections."""
    clients, servers = [], []
    for _ in range(count):
        clients.append(stack.enter_context(socket.create_connection(listening.getsockname())))
        servers.append(stack.enter_context(listening.accept()[0]))
    return clients, servers


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_closed_connections_are_logged_once_a_minute_with_their_number(
    listening: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    guard = ConnectionGuard(ConnectionLimits(files=1024, total=4, by_address=3), clock)
    with ExitStack() as stack:
        guard.begin({listening.getsockname()[1]})
        stack.callback(guard.end)
        clients, servers = pairs(listening, 5, stack)
        assert [one.recv(1) for one in clients[:2]] == [b"", b""]
        assert eventually(lambda: len(warnings_of(caplog)) > 0)
        for one in servers[:2]:
            one.close()
        younger, _ = pairs(listening, 3, stack)
        assert [one.recv(1) for one in clients[2:]] == [b"", b"", b""]
        pairs(listening, 3, stack)
        # Closed by a later look than the three above, whose warning would have been written.
        assert [one.recv(1) for one in younger] == [b"", b"", b""]
        assert len(warnings_of(caplog)) == 1
        clock.now = 60.0
        assert eventually(lambda: len(warnings_of(caplog)) > 1)
    words = [text.partition(":")[0].split() for text in warnings_of(caplog)]
    assert [(first, *rest) for first, _, *rest in words] == [("closed", "idle", "connections")] * 2
    assert sum(int(count) for _, count, *_ in words) == 8


def test_a_client_that_spoke_stays_where_younger_ones_are_silent(listening: socket.socket) -> None:
    guard = ConnectionGuard(ConnectionLimits(files=1024, total=2, by_address=2))
    with ExitStack() as stack:
        clients, servers = pairs(listening, 4, stack)
        clients[0].sendall(b"x")
        assert servers[0].recv(1) == b"x"
        guard.begin({listening.getsockname()[1]})
        stack.callback(guard.end)
        assert [one.recv(1) for one in clients[1:3]] == [b"", b""]
        servers[0].sendall(b"y")
        assert clients[0].recv(1) == b"y"


def test_connections_to_other_ports_are_left_alone(listening: socket.socket) -> None:
    guard = ConnectionGuard(ConnectionLimits(files=1024, total=1, by_address=1))
    with ExitStack() as stack:
        clients, servers = pairs(listening, 3, stack)
        guard.begin({1})
        stack.callback(guard.end)
        assert guard.look() == 0
        for client, server in zip(clients, servers, strict=True):
            server.sendall(b"x")
            assert client.recv(1) == b"x"


def test_a_connection_that_was_reset_does_not_disturb(listening: socket.socket) -> None:
    guard = ConnectionGuard(ConnectionLimits(files=1024, total=1, by_address=1))
    with ExitStack() as stack:
        clients, _ = pairs(listening, 3, stack)
        clients[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        clients[0].close()
        guard.begin({listening.getsockname()[1]})
        stack.callback(guard.end)
        assert clients[1].recv(1) == b""


class Listening:
    """A socket that a process without files accepts from."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)

    def accept(self) -> Any:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome, ("127.0.0.1", 4000)


def guard_of(files: int) -> ConnectionGuard:
    return ConnectionGuard(ConnectionLimits(files=files, total=files, by_address=files))


def test_without_files_a_connection_is_closed_and_nothing_is_logged() -> None:
    one, other = socket.socketpair()
    listening = Listening(OSError(errno.EMFILE, "Too many open files"), one)
    with other, pytest.raises(BlockingIOError):
        guard_of(1 << 20).accept(listening.accept)
    assert (one.fileno(), listening.outcomes) == (-1, [])


def test_a_connection_that_takes_one_of_the_last_files_is_closed() -> None:
    one, other = socket.socketpair()
    with other:
        assert guard_of(one.fileno() + 33).accept(Listening(one).accept)[0] is one
        with pytest.raises(BlockingIOError):
            guard_of(one.fileno() + 32).accept(Listening(one).accept)
    assert one.fileno() == -1


def test_refused_connections_are_logged_where_no_other_is_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    guard = guard_of(2)
    with pytest.raises(BlockingIOError):
        guard.accept(Listening(OSError(errno.EMFILE, "Too many open files"), OSError()).accept)
    assert guard.look() == 0
    assert [text.partition(":")[0] for text in warnings_of(caplog)] == ["closed 1 idle connections"]


def test_other_errors_of_accepting_stay_what_they_are() -> None:
    gone = ConnectionAbortedError(errno.ECONNABORTED, "gone")
    with pytest.raises(ConnectionAbortedError):
        guard_of(99).accept(Listening(gone).accept)
