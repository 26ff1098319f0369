"""The standard health service of gRPC: whether the server takes calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal, TypeAlias

import grpc

from ..errors import MissingExtraError

try:
    from grpc_health.v1 import health_pb2, health_pb2_grpc
except ModuleNotFoundError as err:
    raise MissingExtraError.of("the server", "server") from err

__all__ = ["HealthServicer"]

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Response = health_pb2.HealthCheckResponse


class HealthServicer(health_pb2_grpc.HealthServicer):
    """Tells the health of all services alike.

    The servicer of grpcio-health-checking holds a lock while it writes to a client: one client that
    does not read keeps every change from the others, and a server from stopping. This one writes
    without a lock.

    Args:
        services: The names of the services.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(("", *services))
        self._well = True
        self._draining = False
        self._change = asyncio.Event()

    def tell(self, well: bool) -> None:
        """Tell whether the server is well; a server that drains takes no calls."""
        if not self._draining:
            self._well = well
            self._wake()

    def drain(self) -> None:
        """Tell that the server takes no more calls, and end the calls that watch."""
        self.tell(False)
        self._draining = True

    async def Check(  # noqa: N802 - a name of the wire
        self, request: health_pb2.HealthCheckRequest, context: _Context
    ) -> _Response:
        """Return the health of a service."""
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return _Response(status=self._status())

    async def Watch(  # noqa: N802 - the same
        self,
        request: health_pb2.HealthCheckRequest,
        context: _Context,  # noqa: ARG002 - gRPC passes it
    ) -> AsyncIterator[_Response]:
        """Yield the health of a service, now and after every change."""
        known, told = request.service in self._services, None
        while True:
            change = self._change
            status = self._status() if known else _Response.SERVICE_UNKNOWN
            if status != told:
                yield _Response(status=status)
                # It may have changed while the client read.
                told = status
            elif self._draining:
                return
            else:
                await change.wait()

    def _status(self) -> Literal[1, 2]:
        return _Response.SERVING if self._well else _Response.NOT_SERVING

    def _wake(self) -> None:
        self._change.set()
        self._change = asyncio.Event()
