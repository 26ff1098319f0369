"""Helpers for calls over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.threads import PATIENCE

from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.server import ServerSettings

__all__ = ["JUDGE", "Answer", "chair_request", "post", "request", "serving"]

JUDGE = "/hallujudge.judge.v1.JudgeService/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a value."""
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """The reason of an error."""
        return str(self.json["details"][0]["debug"]["reason"])


@asynccontextmanager
async def serving(**settings: object) -> AsyncIterator[RunningServer]:
    """Run a server that listens for HTTP."""
    server = await start(ServerSettings(port=0, http_port=0, **settings))  # type: ignore[arg-type]  # by the tests
    try:
        yield server
    finally:
        await server.stop(0)


async def post(server: RunningServer, path: str, body: object, **headers: str) -> Answer:
    """Send a message as JSON; bytes are sent as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await request(server, "POST", path, data, {"content-type": "application/json"} | headers)


async def request(
    server: RunningServer, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> Answer:
    """Send a request in a thread, and return its response."""

    def send() -> Answer:
        connection = http.client.HTTPConnection(server.http_address, timeout=PATIENCE)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            known = {name.lower(): text for name, text in answer.getheaders()}
            return Answer(status=answer.status, headers=known, body=answer.read())
        finally:
            connection.close()

    return await asyncio.to_thread(send)


def chair_request(*captions: str) -> dict[str, Any]:
    """Return a request that scores captions of a picture of a dog."""
    return {
        "spec": {"metric": "chair"},
        "items": [
            {
                "id": str(number),
                "chair": {"response": caption, "referenceObjects": {"values": ["dog"]}},
            }
            for number, caption in enumerate(captions)
        ],
    }
