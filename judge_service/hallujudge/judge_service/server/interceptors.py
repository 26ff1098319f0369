"""Admission control and error mapping for every RPC."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeAlias

import grpc
from grpc_status import rpc_status

from ..errors import HallujudgeError, InternalError, OverloadedError
from ..wire.errors import pushback, status_of

__all__ = ["Admission", "GuardInterceptor"]

_LOG = logging.getLogger(__name__)

# grpc.aio has no public generic type for handlers, and this module does not use their messages.
# The types are strings because they are generic in the stubs but not at run time.
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

# Health and reflection are exempt from admission: an orchestrator must not restart a busy server.
_OURS = "/hallujudge.judge.v1."


class Admission:
    """Limits the number of running calls and of calls that wait for them.

    gRPC's own limits respond with a bare CANCELLED or without details, so that callers could not
    distinguish a busy server from a broken one.

    Args:
        running: The maximum number of running calls.
        waiting: The maximum number of waiting calls; further calls are rejected.
        retry_after: The time after which a rejected call should be repeated, in seconds.
    """

    def __init__(self, *, running: int, waiting: int, retry_after: float = 0.5) -> None:
        self._room = asyncio.Semaphore(running)
        self._limit = running + waiting
        self._inside = 0
        self._retry_after = retry_after

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Wait until the call may run.

        Raises:
            OverloadedError: The queue is full.
        """
        if self._inside >= self._limit:
            raise OverloadedError(
                f"{self._inside} calls are running or waiting; "
                f"try again in {self._retry_after:g} s",
                metadata={"limit": str(self._limit)},
                retry_after=self._retry_after,
            )
        self._inside += 1
        try:
            async with self._room:
                yield
        finally:
            self._inside -= 1


class GuardInterceptor(grpc.aio.ServerInterceptor):
    """Admits calls, and converts the errors that they raise to a gRPC status.

    Args:
        admission: The limits of concurrent calls.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def intercept_service(  # type: ignore[override]  # the stub is generic by call
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler:
        """Wrap the handlers of the judge service."""
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith(_OURS):
            return handler
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                self._guard_stream(handler.stream_stream),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        return grpc.unary_unary_rpc_method_handler(
            self._guard_unary(handler.unary_unary),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _guard_unary(self, call: Callable[..., Any] | None) -> Callable[..., Any]:
        assert call is not None, "a method of the service is neither unary nor a stream"

        async def guarded(request: object, context: _Context) -> object:
            try:
                async with self._admission.admitted():
                    return await call(request, context)
            except Exception as err:
                await _abort(err, context)

        return guarded

    def _guard_stream(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def guarded(requests: object, context: _Context) -> AsyncIterator[object]:
            try:
                async with self._admission.admitted():
                    async for response in call(requests, context):
                        yield response
            except Exception as err:
                await _abort(err, context)

        return guarded


async def _abort(error: Exception, context: _Context) -> NoReturn:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if not isinstance(error, HallujudgeError):
        error = _internal(error)
    status = rpc_status.to_status(status_of(error))
    # abort_with_status would omit the pushback trailer.
    trailers = (*status.trailing_metadata, *pushback(error))
    await context.abort(status.code, status.details, trailing_metadata=trailers)
    raise AssertionError("abort returned")


def _internal(error: Exception) -> InternalError:
    """Log a defect, and return an error with its id only: details may contain users' texts."""
    error_id = uuid.uuid4().hex[:12]
    _LOG.error("error %s", error_id, exc_info=error)
    return InternalError(
        f"the server failed; its log has the details under {error_id}",
        metadata={"error_id": error_id},
    )
