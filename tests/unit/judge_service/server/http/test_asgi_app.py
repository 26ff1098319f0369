"""Requests that are refused, and all results of a job as one stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest

from hallujudge.judge.v1 import jobs_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.errors import HallujudgeError, NotFoundError, OverloadedError
from hallujudge.judge_service.observe import CallRecord, Recorder
from hallujudge.judge_service.server.authentication import Authenticator
from hallujudge.judge_service.server.http.asgi_app import HttpApp, all_results
from hallujudge.judge_service.server.http.exchange import CallFailedError, HttpContext
from hallujudge.judge_service.server.services import Services
from hallujudge.judge_service.settings.server_settings import LimitSettings, ServerSettings
from hallujudge.judge_service.wire.errors import status_of

SETTINGS = ServerSettings(limits=LimitSettings(max_running_calls=2, max_waiting_calls=3))


class Calls(Recorder):
    """Keeps the calls that have ended."""

    def __init__(self) -> None:
        self.ended: list[CallRecord] = []

    def call_ended(self, call: CallRecord) -> None:
        super().call_ended(call)
        self.ended.append(call)


async def asked(
    *headers: tuple[bytes, bytes],
) -> tuple[list[MutableMapping[str, Any]], list[CallRecord]]:
    """Ask for the API's description; return the events of the response, and what was recorded."""
    recorder, sent = Calls(), []

    async def send(event: MutableMapping[str, Any]) -> None:
        sent.append(event)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "method": "GET",
        "path": "/openapi.json",
        "headers": [(b"host", b"localhost"), (b"x-request-id", b"run-9"), *headers],
        "client": ("127.0.0.1", 4000),
    }
    services = Services(
        settings=SETTINGS,
        engine=Engine(),
        jobs=None,
        recorder=recorder,
        authenticator=Authenticator(),
    )
    await HttpApp({}, services)(scope, receive, send)
    return sent, recorder.ended


async def test_a_refused_request_is_recorded() -> None:
    lengths = ((b"content-length", b"2"), (b"transfer-encoding", b"chunked"))
    (head, body), [call] = await asked(*lengths)
    assert head["status"] == 400
    assert (b"connection", b"close") in head["headers"]
    assert json.loads(body["body"])["code"] == "invalid_argument"
    assert (call.method, call.status, call.request_id) == ("HTTP", "INVALID_ARGUMENT", "run-9")
    assert call.peer == "ipv4:127.0.0.1"


async def test_a_request_that_nothing_is_wrong_with_is_answered() -> None:
    (head, *_), recorded = await asked()
    assert (head["status"], recorded) == (200, [])


CONTEXT = HttpContext(metadata=(), address="ipv4:127.0.0.1:1")


class Pages:
    """A job with results, of which a page has two, that may refuse calls."""

    def __init__(self, count: int, *, finished: bool = True) -> None:
        self.count = count
        self.finished = finished
        self.refusals: list[HallujudgeError] = []
        self.asked: list[dict[str, Any]] = []

    async def page(
        self, raws: AsyncIterator[bytes], context: HttpContext
    ) -> pb.ListJobResultsResponse:
        [raw] = [raw async for raw in raws]
        request = json.loads(raw)
        at = request.get("position", 0)
        if at and self.refusals:
            raise CallFailedError(status_of(self.refusals.pop()))
        self.asked.append(request)
        end = min(at + 2, self.count)
        return pb.ListJobResultsResponse(
            results=[
                pb.JobResult(result=judge_service_pb2.ItemResult(id=str(number)))
                for number in range(at, end)
            ],
            next_position=end,
            last=self.finished and end == self.count,
        )


async def sent(request: dict[str, Any]) -> AsyncIterator[bytes]:
    yield json.dumps(request).encode()


async def read(pages: Pages) -> tuple[list[str], pb.ListJobResultsResponse]:
    raws: Any = sent({"jobId": "j", "withItems": True})
    messages = [message async for message in all_results(pages.page, raws, CONTEXT)]
    *results, end = messages
    assert isinstance(end, pb.ListJobResultsResponse)
    return [row.result.id for row in results if isinstance(row, pb.JobResult)], end


async def test_every_page_is_read_with_the_same_request() -> None:
    pages = Pages(5)
    ids, end = await read(pages)
    assert (ids, end.next_position, end.last) == (["0", "1", "2", "3", "4"], 5, True)
    assert [request.pop("position", 0) for request in pages.asked] == [0, 2, 4]
    assert pages.asked == [{"jobId": "j", "withItems": True}] * 3


async def test_results_of_an_unfinished_job_end_where_it_is() -> None:
    ids, end = await read(Pages(2, finished=False))
    assert (ids, end.next_position, end.last) == (["0", "1"], 2, False)


async def test_a_limit_of_the_key_is_waited_for() -> None:
    pages = Pages(3)
    pages.refusals = [OverloadedError("too many calls", retry_after=0.001)] * 2
    assert (await read(pages))[0] == ["0", "1", "2"]
    assert pages.refusals == []


async def test_other_errors_end_the_results() -> None:
    pages = Pages(3)
    pages.refusals = [NotFoundError("deleted meanwhile")]
    with pytest.raises(CallFailedError, match="deleted meanwhile"):
        await read(pages)
