"""A seeded fuzz of HTTP: whatever is sent, no answer may be a defect."""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from support.fuzz import SCORING, WORDS, mutated, payloads_of, request_of
from support.http_calls import LINES

from hallujudge.judge_service.server.interceptors import METHODS

__all__ = ["HttpFuzz", "HttpTally"]

_DEFECTS = (b'"code": "internal"', b'"code": "unknown"')
_SECONDS = 60.0
_KINDS = ("application/json", LINES, "application/proto", "text/plain", "application/grpc", "")
_PATHS = ("/", "/openapi.json", "/hallujudge.judge.v1.JudgeService/None", "//", "/..%2f..", "*")
_ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    0.5,
    10**30,
    "",
    "nan",
    [],
    {},
    [[]],
    {"": {}},
    "\ud800",
    *WORDS,
)


@dataclass(slots=True)
class HttpTally:
    """What was sent, and how it ended."""

    statuses: Counter[int] = field(default_factory=Counter)
    """Requests by status; 0: the server closed the connection."""
    defects: list[str] = field(default_factory=list)
    """Requests that ended with a defect, with what repeats them."""

    @property
    def requests(self) -> int:
        """The number of requests."""
        return self.statuses.total()


class HttpFuzz:
    """Sends hostile requests. Request number ``n`` of a seed is always the same.

    Args:
        seed: The seed.
        key: A valid API key; most requests carry it.
    """

    def __init__(self, seed: int, key: str) -> None:
        self._seed = seed
        self._key = key

    def run(self, address: str, *, requests: int, width: int = 4) -> HttpTally:
        """Send requests and return how they ended.

        Args:
            address: The server.
            requests: How many are sent.
            width: How many at the same time.
        """
        tally, numbers = HttpTally(), itertools.count()

        def work() -> None:
            while (number := next(numbers)) < requests:
                self._one(address, number, tally)

        with ThreadPoolExecutor(width) as pool:
            for done in [pool.submit(work) for _ in range(width)]:
                done.result()
        return tally

    def _one(self, address: str, number: int, tally: HttpTally) -> None:
        random = Random(f"{self._seed}/{number}")
        if random.random() < 0.1:
            status, body = _raw(random, address), b""
        else:
            status, body = self._sent(random, address)
        tally.statuses[status] += 1
        if status == 500 or any(word in body for word in _DEFECTS):
            tally.defects.append(f"seed {self._seed}, request {number}: {status} {body[:300]!r}")

    def _sent(self, random: Random, address: str) -> tuple[int, bytes]:
        path = random.choice([*METHODS, *SCORING * 3, *_PATHS])
        kind, body = _body(random, path)
        headers = {"content-type": kind, "authorization": f"Bearer {self._key}"}
        for name, make in _HEADERS.items():
            if random.random() < 0.1:
                headers[name] = make(random)
        if random.random() < 0.2:
            headers["content-encoding"] = "gzip"
            body = gzip.compress(body) if random.random() < 0.7 else body
        method = random.choice(("POST",) * 20 + ("GET", "HEAD", "PUT", "OPTIONS"))
        connection = http.client.HTTPConnection(address, timeout=_SECONDS)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, _read(answer, path)
        except (http.client.HTTPException, ConnectionError):
            return 0, b""
        finally:
            connection.close()


_HEADERS: dict[str, Callable[[Random], str]] = {
    "authorization": lambda random: random.choice(("", "Bearer", "Basic x", "Bearer hj_a_b")),
    "x-request-id": lambda random: random.choice(("1", "x" * 500, "a b")),
    "connect-timeout-ms": lambda random: random.choice(("0", "1", "x", "9" * 50)),
    "accept": lambda random: random.choice((LINES, "*/*", "")),
    "content-encoding": lambda random: random.choice(("br", "gzip, gzip", "")),
    "content-type": lambda random: random.choice(_KINDS),
    "transfer-encoding": lambda random: random.choice(("chunked", "gzip")),
}


def _read(answer: http.client.HTTPResponse, path: str) -> bytes:
    if path.endswith("WatchJob"):  # it may never end by itself
        return answer.readline()
    return answer.read()


def _body(random: Random, path: str) -> tuple[str, bytes]:
    """Return a content type and a body, mostly such as the method takes."""
    shape = request_of(path if path in METHODS else SCORING[0])
    payloads = payloads_of(random, shape, [])
    if random.random() < 0.2:
        return "application/proto", b"".join(payloads)
    texts = [_text(random, shape, payload) for payload in payloads]
    many = path.endswith("ScoreStream")
    body = (b"\n" if many else b"").join(texts)
    return (LINES if many else "application/json"), body


def _text(random: Random, shape: Any, payload: bytes) -> bytes:
    """Return a message as JSON, half of the time with odd values or broken."""
    try:
        value = json_format.MessageToDict(shape.FromString(payload))
    except (DecodeError, ValueError):
        return random.choice((payload, b"[" * 5_000, b'{"items":' * 500, b"{}," * 9, b"1e999"))
    kind = random.random()
    if kind < 0.3:
        _spoil(random, value)
    text = json.dumps(value).encode()
    return mutated(random, text) if kind > 0.8 else text


def _spoil(random: Random, value: Any) -> None:
    """Put an odd value in place of another, somewhere."""
    while isinstance(value, dict | list) and value:
        at: Any = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if random.random() < 0.4 or not isinstance(value[at], dict | list):
            value[at] = random.choice(_ODD)
            return
        value = value[at]


def _raw(random: Random, address: str) -> int:
    """Send bytes that are mostly not HTTP; return the status, or 0."""
    head = f"POST {random.choice(SCORING)} HTTP/1.1\r\nhost: localhost\r\n".encode()
    tails = (
        b"content-length: -1\r\n\r\n",
        b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"transfer-encoding: chunked\r\ncontent-type: application/json\r\n\r\nzz\r\n",
        b"content-type: application/json\r\ncontent-length: 99\r\n\r\n{",
        b"x: " + b"y" * 200_000 + b"\r\n\r\n",
        b"\r\n" * random.randrange(3),
        random.randbytes(random.randrange(300)),
    )
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_SECONDS) as connection:
            connection.sendall(mutated(random, head) + random.choice(tails))
            connection.shutdown(socket.SHUT_WR)
            first = connection.makefile("rb").readline().split()
            return int(first[1]) if len(first) > 1 else 0
    except OSError:
        return 0
