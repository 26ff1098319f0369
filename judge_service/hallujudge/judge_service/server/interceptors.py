"""What stands before every call: admission, and the one place that turns errors into status."""

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

# grpc.aio gives handlers no public generic type; their messages are opaque here anyway.
# As strings: the stubs know them as generic, the classes themselves are not.
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

# Health and reflection answer whatever the load: an orchestrator must not mistake busy for dead.
_OURS = "/hallujudge.judge.v1."


class Admission:
    """A bounded number of calls at work and a bounded queue behind them.

    gRPC's own limits answer with a bare CANCELLED or without details, so callers could not tell a
    busy server from a broken one.

    Args:
        running: Calls at work at once.
        waiting: Calls that may wait; one more is turned away.
        retry_after: What a caller who is turned away is told to wait, in seconds.
    """

    def __init__(self, *, running: int, waiting: int, retry_after: float = 0.5) -> None:
        self._room = asyncio.Semaphore(running)
        self._limit = running + waiting
        self._inside = 0
        self._retry_after = retry_after

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Waits for room.

        Raises:
            OverloadedError: The queue is full.
        """
        if self._inside >= self._limit:
            raise OverloadedError(
                f"{self._inside} calls are at work or waiting; "
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
    """Admits calls and turns what they raise into status.

    Args:
        admission: Who may come in.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def intercept_service(  # type: ignore[override]  # the stub is generic by call
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler:
        """Wraps the handlers of our own service."""
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
        assert call is not None, "a method of ours is neither unary nor a stream"

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
    # abort_with_status would leave our own trailer out.
    trailers = (*status.trailing_metadata, *pushback(error))
    await context.abort(status.code, status.details, trailing_metadata=trailers)
    raise AssertionError("abort returned")


def _internal(error: Exception) -> InternalError:
    """A defect: the caller gets an id, the log gets the rest. Texts of users stay out of both."""
    error_id = uuid.uuid4().hex[:12]
    _LOG.error("error %s", error_id, exc_info=error)
    return InternalError(
        f"the server failed; its log has the details under {error_id}",
        metadata={"error_id": error_id},
    )
