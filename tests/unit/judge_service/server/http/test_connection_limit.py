"""Requests are refused, and recorded, while too many connections are open."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any

from hallujudge.judge_service.observe.recorder import CallRecord, Recorder
from hallujudge.judge_service.server.authentication import Authenticator
from hallujudge.judge_service.server.http.asgi_app import HttpApp
from hallujudge.judge_service.settings.server_settings import ServerSettings

SETTINGS = ServerSettings(max_running_calls=2, max_waiting_calls=3)
# Four for each call that may run or wait, and a thousand more.
LIMIT = 1_020


class Calls(Recorder):
    """Keeps the calls that have ended."""

    def __init__(self) -> None:
        self.ended: list[CallRecord] = []

    def call_ended(self, call: CallRecord) -> None:
        super().call_ended(call)
        self.ended.append(call)


async def asked(connections: int) -> tuple[list[MutableMapping[str, Any]], list[CallRecord]]:
    """Ask for the API's description; return the events of the response, and what was recorded."""
    recorder, sent = Calls(), []

    async def send(event: MutableMapping[str, Any]) -> None:
        sent.append(event)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "method": "GET",
        "path": "/openapi.json",
        "headers": [(b"host", b"localhost"), (b"x-request-id", b"run-9")],
        "client": ("127.0.0.1", 4000),
        "state": {"connections": range(connections)},
    }
    await HttpApp({}, SETTINGS, Authenticator(), recorder)(scope, receive, send)
    return sent, recorder.ended


async def test_a_request_beyond_the_limit_is_refused_and_recorded() -> None:
    (head, body), [call] = await asked(LIMIT)
    assert head["status"] == 503
    assert {(b"connection", b"close"), (b"retry-after", b"1")} <= set(head["headers"])
    told = json.loads(body["body"])
    assert told["code"] == "unavailable"
    assert told["message"].startswith("1020 connections are open")
    assert (call.method, call.status, call.request_id) == ("HTTP", "UNAVAILABLE", "run-9")
    assert call.peer == "ipv4:127.0.0.1"


async def test_a_request_below_the_limit_is_answered() -> None:
    (head, *_), recorded = await asked(LIMIT - 1)
    assert (head["status"], recorded) == (200, [])
