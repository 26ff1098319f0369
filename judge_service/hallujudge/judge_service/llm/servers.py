"""The servers of a judge: each has connections, a circuit and a limit of concurrent calls.

Calls with the same affinity go to the same server, so that its prefix cache holds what their
prompts have in common. A server that is down is passed over until it answers again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from .batch_files import BatchFiles
from .breaker import CircuitBreaker
from .http import Endpoint, HttpEndpoint
from .limiter import AdaptiveLimiter

__all__ = ["ChatServer", "next_server", "preferred"]


class ChatServer:
    """One server of a judge.

    Args:
        endpoint: Where it is.
        http: Sends calls.
        breaker: Its circuit.
        limiter: How many calls it gets at the same time.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        http: HttpEndpoint | BatchFiles,
        breaker: CircuitBreaker,
        limiter: AdaptiveLimiter,
    ) -> None:
        self.endpoint = endpoint
        self.http = http
        self.breaker = breaker
        self.limiter = limiter

    @classmethod
    def of(
        cls,
        endpoint: Endpoint,
        *,
        max_concurrency: int,
        circuit_threshold: int,
        circuit_seconds: float,
        clock: Callable[[], float],
        offline: BatchFiles | None = None,
    ) -> ChatServer:
        """Return the server at an endpoint.

        Args:
            endpoint: Where it is.
            max_concurrency: Calls at the same time at most.
            circuit_threshold: Failures in a row after which it is not called for a while.
            circuit_seconds: How long it is not called at most.
            clock: Seconds on a clock that never goes back.
            offline: Files in place of the server.
        """
        return cls(
            endpoint,
            offline or HttpEndpoint(endpoint, max_concurrency),
            CircuitBreaker(circuit_threshold, circuit_seconds, clock),
            AdaptiveLimiter(max_concurrency, clock),
        )

    @property
    def is_down(self) -> bool:
        """Whether the server has failed so often that it is not called for now."""
        return self.breaker.state == "open"


def preferred(servers: Sequence[ChatServer], affinity: str) -> list[ChatServer]:
    """Return the servers in the order in which calls with an affinity use them.

    Rendezvous hashing: every process finds the same order, and a server that is added or left out
    moves no call between the others.

    Args:
        servers: All servers.
        affinity: What the calls have in common.
    """
    if len(servers) == 1:
        return list(servers)

    def weight(server: ChatServer) -> bytes:
        return sha256(f"{server.endpoint.url}\0{affinity}".encode("utf-8", "replace")).digest()

    return sorted(servers, key=weight)


def next_server(order: Iterable[ChatServer]) -> ChatServer:
    """Return the first server that is not down, or the one that is called again the soonest."""
    servers = list(order)
    up = (server for server in servers if not server.is_down)
    return next(up, min(servers, key=lambda server: server.breaker.seconds_left))
