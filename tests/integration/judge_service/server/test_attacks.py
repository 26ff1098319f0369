"""Attacks on a real server: what it answers, what memory it takes, and whether it is healthy."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from support.http2 import CONTINUATION, END_HEADERS, HEADERS, RST_STREAM, connected, frame, headers
from support.messages import expected_message
from support.rpc import health_stub, refused
from support.running import ServerProcess
from support.threads import PATIENCE, eventually

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2

_SERVICE = "/hallujudge.judge.v1.JudgeService"
_CEILING = 600 << 20
_OPTIONS = (("grpc.enable_retries", 0), ("grpc.max_send_message_length", -1))


class Watched:
    """A server in a process of its own, whose memory is watched."""

    def __init__(self, folder: Path) -> None:
        self.server = ServerProcess(XDG_STATE_HOME=str(folder))
        self.channel = grpc.insecure_channel(self.server.address, options=_OPTIONS)

    def refuses(self, method: str, raw: bytes, **more: Any) -> tuple[grpc.StatusCode, str]:
        """Return the code of a call that the server refuses, and what it says."""
        call: Any = self.channel.unary_unary(f"{_SERVICE}/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            call(raw, timeout=PATIENCE, **more)
        return caught.value.code(), caught.value.details() or ""

    def is_healthy(self) -> bool:
        """Return whether health answers."""
        request = health_pb2.HealthCheckRequest()
        answer = health_stub(self.channel).Check(request, timeout=PATIENCE)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def is_served(self) -> bool:
        """Return whether a call is read, and not cancelled."""
        call: Any = self.channel.unary_unary(f"{_SERVICE}/GetServerInfo")
        with contextlib.suppress(grpc.RpcError):
            call(b"", timeout=PATIENCE)
            return True
        return False

    def peak(self) -> int:
        """Return the most memory that the process has had, in bytes."""
        text = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0]) << 10


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Watched]:
    """Start a server, and look at its end and its log."""
    server = Watched(folder)
    yield server
    server.channel.close()
    code, log = server.server.stop()
    assert code == 0
    assert "Traceback" not in log
    assert max(map(len, log.splitlines()), default=0) < 3_000


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with running(tmp_path_factory.mktemp("state")) as server:
        yield server


@pytest.fixture(autouse=True)
def _bounded(watched: Watched) -> Iterator[None]:
    yield
    assert watched.is_healthy()
    assert watched.peak() < _CEILING


def test_eight_million_empty_items_in_a_few_kilobytes(watched: Watched) -> None:
    raw = b"\x12\x00" * 8_000_000
    assert len(gzip.compress(raw)) < 20_000
    said = watched.refuses("Score", raw, compression=grpc.Compression.Gzip)
    assert said == (
        grpc.StatusCode.INVALID_ARGUMENT,
        expected_message(
            "judge_service.server.request_reader:the-message-has-more-than-fields-send"
        ),
    )


def test_a_compressed_bomb(watched: Watched) -> None:
    code, text = watched.refuses("Score", bytes(200 << 20), compression=grpc.Compression.Gzip)
    assert (code, text) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        expected_message("judge_service.wire.errors:decompressed-message-larger-than-max"),
    )


def test_a_message_of_a_hundred_megabytes(watched: Watched) -> None:
    code, text = watched.refuses("Score", bytes(100 << 20))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in text


def test_many_items_with_many_parts(watched: Watched) -> None:
    triplets = b"\x0a\x00" * 500_000
    task = b"\x22" + _length(triplets) + triplets
    item = b"\x32" + _length(task) + task
    raw = (b"\x12" + _length(item) + item) * 3
    assert watched.refuses("Score", raw)[0] is grpc.StatusCode.INVALID_ARGUMENT


def test_groups_in_groups(watched: Watched) -> None:
    for depth in (200, 5_000_000):
        code, _ = watched.refuses("Score", b"\x0b" * depth + b"\x0c" * depth)
        assert code is grpc.StatusCode.INVALID_ARGUMENT


def test_bytes_that_are_not_text(watched: Watched) -> None:
    code, text = watched.refuses("Extract", b"\x0a\x04\x0a\x02\xff\xfe")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text.startswith(
        expected_message("judge_service.server.request_reader:the-bytes-are-not-message-of-this")
    )


def test_a_name_of_twelve_megabytes(watched: Watched) -> None:
    name = "x" * (12 << 20)
    spec = scoring_pb2.ScoreSpec(metric="tri-he", options={"matcher_model": name})
    code, text = watched.refuses("Score", pb.ScoreRequest(spec=spec).SerializeToString())
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text == expected_message(
        "judge_service.server.request_checks:spec-options-matcher-model-has-characters-send"
    )


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../x", "~root", "x" * 5_000, "no/model", "http://127.0.0.1:1/m"]
)
@pytest.mark.parametrize("option", ["matcher_model", "small_model", "device"])
def test_names_of_models_tell_nothing(watched: Watched, option: str, name: str) -> None:
    spec = scoring_pb2.ScoreSpec(metric="tri-he", options={option: name})
    call: Any = watched.channel.unary_unary(f"{_SERVICE}/Score")
    with pytest.raises(grpc.RpcError) as caught:
        call(pb.ScoreRequest(spec=spec).SerializeToString(), timeout=PATIENCE)
    assert refused(caught.value) == (grpc.StatusCode.NOT_FOUND, "MODEL_NOT_OFFERED")
    assert name not in (caught.value.details() or "")


@pytest.mark.parametrize("name", ["/etc/passwd", "../coco", "coco.json", "x" * 5_000])
def test_names_of_graphs_tell_nothing(watched: Watched, name: str) -> None:
    graph = scoring_pb2.GraphSource(shipped=name)
    code, _ = watched.refuses("Normalize", pb.NormalizeRequest(graph=graph).SerializeToString())
    assert code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)


def test_a_flood_of_headers(watched: Watched) -> None:
    for pairs in (1_000, 1):
        metadata = tuple((f"x-{n}", "v" * (100_000 // pairs)) for n in range(pairs))
        code, _ = watched.refuses("GetServerInfo", b"", metadata=metadata)
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_calls_that_are_reset_at_once(tmp_path: Path) -> None:
    block = headers(f"{_SERVICE}/Score")
    # Until gRPC has gone through them it cancels other calls, so no other test has this server.
    with running(tmp_path) as flooded:
        with connected(flooded.server.address) as connection, contextlib.suppress(OSError):
            for stream in range(1, 20_000, 2):
                call, reset = frame(HEADERS, END_HEADERS, stream, block), bytes(4)
                connection.sendall(call + frame(RST_STREAM, 0, stream, reset))
        assert eventually(flooded.is_served)
        assert flooded.peak() < _CEILING


def test_headers_that_never_end(watched: Watched) -> None:
    connection = connected(watched.server.address)
    with connection, contextlib.suppress(OSError):
        connection.sendall(frame(HEADERS, 0, 1, headers(f"{_SERVICE}/Score")))
        for _ in range(2_000):
            connection.sendall(frame(CONTINUATION, 0, 1, b"\x00\x01a\x7f\x81\x7e" + b"v" * 16_000))


def test_headers_that_are_not_utf_8_leave_no_lines_in_the_log(watched: Watched) -> None:
    connection = connected(watched.server.address)
    bad = b"\x00\x01a\x05v\x81\xffvv"
    with connection, contextlib.suppress(OSError):
        block = headers(f"{_SERVICE}/Score") + bad * 100
        connection.sendall(frame(HEADERS, END_HEADERS, 1, block))
        connection.recv(1)
    assert watched.is_healthy()


def _length(data: bytes) -> bytes:
    number, out = len(data), bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
