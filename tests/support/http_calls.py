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

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.judge_service.settings.server_settings import ServerSettings

__all__ = [
    "JOBS",
    "JUDGE",
    "LINES",
    "Answer",
    "chair_request",
    "connected",
    "head_of",
    "post",
    "request",
    "serving",
]

JUDGE = "/hallujudge.judge.v1.JudgeService/"
JOBS = "/hallujudge.judge.v1.ScoringJobService/"
LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def lines(self) -> list[Any]:
        """The lines of the body as values."""
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def json(self) -> Any:
        """The body as a value."""
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """The reason of an error."""
        return str(self.json["details"][0]["debug"]["reason"])


@asynccontextmanager
async def serving(
    engine: Engine | None = None, jobs: JobService | None = None, **settings: object
) -> AsyncIterator[RunningServer]:
    """Run a server that listens for HTTP."""
    chosen = from_names(ServerSettings, {"port": 0, "http.port": 0, **names_of(settings)})
    server = await start(chosen, engine, jobs)
    try:
        yield server
    finally:
        await server.stop(0)


async def connected(server: RunningServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a server."""
    host, _, port = server.http_address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


def head_of(path: str, length: int | None, kind: str = "application/json", **more: str) -> bytes:
    """Return the head of a request; its body has a length, or comes in chunks."""
    body = ("transfer-encoding", "chunked") if length is None else ("content-length", str(length))
    headers = {"host": "localhost", "content-type": kind} | dict([body]) | more
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


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
