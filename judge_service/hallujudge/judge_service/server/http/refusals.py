"""Requests that are not calls: another path, method, content type, or host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import grpc
from google.rpc import status_pb2

from ..door import is_loopback
from .exchange import JSON, LINES, PROTO, Exchange, Headers
from .routes import Route

__all__ = [
    "GZIP",
    "Refusal",
    "coding_of",
    "crowded",
    "foreign_host",
    "kind_of",
    "refusal_of",
    "two_lengths",
]

DOCUMENT = "/openapi.json"
GZIP = "gzip"
_CODINGS = ("", "identity", GZIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is not a call."""

    http: int
    """The HTTP status."""
    status: status_pb2.Status
    """The error."""
    headers: Headers = ()
    """Headers that tell what would be one."""


def kind_of(exchange: Exchange) -> str:
    """Return the content type of a request, without parameters."""
    return exchange.header("content-type").partition(";")[0].strip().lower()


def coding_of(exchange: Exchange) -> str:
    """Return how the body of a request is packed; empty: it is not."""
    return exchange.header("content-encoding").strip().lower()


def refusal_of(
    exchange: Exchange, method: str, path: str, routes: Mapping[str, Route]
) -> Refusal | None:
    """Return why a request is not a call; None: it is one."""
    route = routes.get(path)
    if route is None and path != DOCUMENT:
        return _refusal(404, f"there is no such method; {DOCUMENT} lists them")
    wanted = ("GET", "HEAD") if route is None else ("POST",)
    if method not in wanted:
        return _refusal(405, f"send a {wanted[0]} request", ("allow", ", ".join(wanted)))
    if route is None:
        return None
    kinds = _kinds(route)
    if (kind := kind_of(exchange)) not in kinds:
        problem = f"the content type is {kind!r:.80}; send {' or '.join(kinds)}"
        return _refusal(415, problem, ("accept-post", ", ".join(kinds)))
    if (coding := coding_of(exchange)) not in _CODINGS:
        problem = f"the content encoding is {coding!r:.80}; send {GZIP}, or the body as it is"
        return _refusal(415, problem, ("accept-encoding", GZIP))
    return None


def crowded(connections: int, limit: int) -> Refusal | None:
    """Refuse a request while too many connections are open; this one is closed then.

    Args:
        connections: How many are open.
        limit: How many may be open.
    """
    if connections < limit:
        return None
    problem = f"{connections} connections are open; use fewer, and try again in a second"
    headers = (("connection", "close"), ("retry-after", "1"))
    return _refusal(503, problem, *headers, code=grpc.StatusCode.UNAVAILABLE)


def two_lengths(exchange: Exchange) -> Refusal | None:
    """Refuse a request whose head gives two lengths of its body, and close its connection.

    A proxy that goes by the other one would take a part of the body for another caller's request.
    """
    if not (exchange.header("content-length") and exchange.header("transfer-encoding")):
        return None
    problem = "the head has Content-Length and Transfer-Encoding; send one of them"
    return _refusal(400, problem, ("connection", "close"), code=grpc.StatusCode.INVALID_ARGUMENT)


def foreign_host(host: str) -> Refusal | None:
    """Refuse a request whose host is not a name of this machine.

    A web page can make its own name stand for this machine, and call a server that wants no key.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if is_loopback(name):
        return None
    problem = f"the host is {host!r:.80}; call localhost, or set keys_file"
    return _refusal(403, problem, code=grpc.StatusCode.PERMISSION_DENIED)


def _kinds(route: Route) -> tuple[str, ...]:
    if route.many:
        return (LINES,)
    return (JSON,) if route.stream else (JSON, PROTO)


def _refusal(
    http: int,
    problem: str,
    *headers: tuple[str, str],
    code: grpc.StatusCode = grpc.StatusCode.UNIMPLEMENTED,
) -> Refusal:
    status = status_pb2.Status(code=code.value[0], message=problem)
    return Refusal(http=http, status=status, headers=headers)
