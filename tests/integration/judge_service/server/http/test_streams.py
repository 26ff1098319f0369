"""Streams over HTTP: a message in each line, both ways at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from support.engines import EndlessEngine, WatchedEngine
from support.http_calls import JUDGE, LINES, chair_request, connected, head_of, post, serving
from support.messages import expected_message
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.wire.convert import item_to_proto

_STREAM = JUDGE + "ScoreStream"
_WORDS = {"graph": {"shipped": "coco"}, "words": ["dog"]}
_CAPTIONS = ("A dog and a cat.", "A dog.", "", "A man with a surfboard.")


def lines_of(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def stream_of(*captions: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the spec, and each item as a batch."""
    whole = chair_request(*captions)
    return {"spec": whole["spec"]}, [{"batch": {"items": [item]}} for item in whole["items"]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def test_a_stream_has_the_results_of_a_call() -> None:
    spec, batches = stream_of(*_CAPTIONS)
    async with serving() as server:
        stream = await post(server, _STREAM, lines_of(spec, *batches), **{"content-type": LINES})
        call = await post(server, JUDGE + "Score", chair_request(*_CAPTIONS))
    accepted, *results, report = (line for line in stream.lines if "progress" not in line)
    assert (stream.status, stream.headers["content-type"]) == (200, LINES)
    assert accepted == {"accepted": {"statisticNames": call.json["statisticNames"]}}
    assert [line["batch"]["results"][0] for line in results] == call.json["results"]
    assert report == {"report": call.json["report"]}


@pytest.mark.parametrize("name", ["chair", "pope", "vidhal-ordering", "hallusion-bench"])
async def test_items_of_other_families_stream(name: str) -> None:
    item = json_format.MessageToDict(item_to_proto(metric_entry(name).trial.item))
    body = lines_of({"spec": {"metric": name}}, {"batch": {"items": [item]}})
    async with serving() as server:
        stream = await post(server, _STREAM, body, **{"content-type": LINES})
    assert "error" not in stream.lines[-1]
    assert [line["batch"]["results"][0]["id"] for line in stream.lines if "batch" in line] == [
        item["id"]
    ]


async def test_results_come_while_items_are_sent() -> None:
    spec, (first, second) = stream_of("A dog.", "A cat.")
    async with serving() as server:
        reader, writer = await connected(server)
        writer.write(head_of(_STREAM, None, LINES) + chunk(lines_of(spec, first)))
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(b'"id": "0"')
            # A line may come in parts, and the last one without its end.
            data = lines_of(second).rstrip()
            writer.write(chunk(data[:9]) + chunk(data[9:]) + b"0\r\n\r\n")
            rest = await reader.readuntil(b"0\r\n\r\n")
        writer.close()
    assert b'"id": "1"' in rest
    assert b'{"report": ' in rest


async def test_an_error_before_the_first_result_is_a_status() -> None:
    async with serving() as server:
        kind = {"content-type": LINES}
        unknown = await post(server, _STREAM, lines_of({"spec": {"metric": "x"}}), **kind)
        empty = await post(server, _STREAM, b"\n\n", **kind)
    assert (unknown.status, unknown.json["code"]) == (404, "not_found")
    assert (empty.status, empty.json["code"]) == (400, "invalid_argument")


async def test_an_error_after_it_is_the_last_line() -> None:
    spec, batches = stream_of("A dog.")
    async with serving() as server:
        body = lines_of(spec, *batches) + b'{"batch": {"items": [{"idd": ""}]}}\n'
        stream = await post(server, _STREAM, body, **{"content-type": LINES})
    assert stream.status == 200
    error = stream.lines[-1]["error"]
    assert error["code"] == "invalid_argument"
    assert error["message"].startswith(
        expected_message("judge_service.server.http.json_messages:batch-items-idd-is-not-field")
    )


async def test_a_line_has_the_size_of_a_message() -> None:
    spec, batches = stream_of(*["A dog. " * 1000] * 20)
    async with serving(max_message_bytes=1 << 16) as server:
        kind = {"content-type": LINES}
        many = await post(server, _STREAM, lines_of(spec, *batches), **kind)
        large = await post(server, _STREAM, b" " * 70_000, **kind)
    assert "report" in many.lines[-1]
    assert (large.status, large.reason) == (413, "MESSAGE_TOO_LARGE")


async def test_a_client_that_vanishes_frees_its_place() -> None:
    engine = EndlessEngine()
    spec, batches = stream_of("A dog.")
    async with serving(engine, max_running_calls=1, max_waiting_calls=0) as server:
        reader, writer = await connected(server)
        writer.write(head_of(_STREAM, None, LINES) + chunk(lines_of(spec, *batches)))
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(b'"accepted"')
        busy = await post(server, JUDGE + "Normalize", _WORDS)
        writer.transport.abort()
        await until(lambda: engine.cancelled)
        async with asyncio.timeout(PATIENCE):
            # The call's place is free a moment after its work has ended.
            while (free := await post(server, JUDGE + "Normalize", _WORDS)).status == 429:
                pass
    assert (busy.status, busy.reason, busy.headers["retry-after"]) == (
        429, "SERVER_OVERLOADED", "1",
    )  # fmt: skip
    assert free.status == 200


async def test_a_client_that_vanishes_ends_a_call() -> None:
    engine = EndlessEngine()
    body = json.dumps(chair_request("A dog.")).encode()
    async with serving(engine) as server:
        _, writer = await connected(server)
        writer.write(head_of(JUDGE + "Score", len(body)) + body)
        await writer.drain()
        await until(lambda: engine.begun)
        writer.transport.abort()
        await until(lambda: engine.cancelled)


async def test_results_that_are_not_read_hold_a_stream_back(tmp_path: Path) -> None:
    engine, log = WatchedEngine(), tmp_path / "calls.jsonl"
    spec, batches = stream_of(*["A dog and a cat on a couch. " * 100] * 1000)
    limits = {"limits.max_unread_bytes": 1 << 16, "limits.idle_seconds": 1, "log.access": str(log)}
    async with serving(engine, **limits) as server:  # type: ignore[arg-type]  # settings
        _, writer = await connected(server)
        writer.write(head_of(_STREAM, None, LINES) + chunk(lines_of(spec, *batches)))
        # The client reads nothing: when nothing has moved for a second, the call ends.
        await until(lambda: bool(log.read_text()))
        writer.transport.abort()
    assert 0 < engine.evaluated.total() < 1000


def test_the_wire_has_these_streams() -> None:
    names = {
        (method.name, method.client_streaming, method.server_streaming)
        for method in pb.DESCRIPTOR.services_by_name["JudgeService"].methods
        if method.client_streaming or method.server_streaming
    }
    assert names == {("ScoreStream", True, True)}
