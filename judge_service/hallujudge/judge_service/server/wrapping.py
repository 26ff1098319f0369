"""What the server's interceptors share: each wraps the handler of a method once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc

__all__ = ["Context", "Handler", "WrappingInterceptor"]

# grpc.aio has no public generic type for handlers, and interceptors do not use their messages.
# The types are strings because they are generic in the stubs but not at run time.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""What serves a method."""
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
"""gRPC's own view of a call."""


class WrappingInterceptor(grpc.aio.ServerInterceptor, ABC):
    """Wraps the handler of each method at its first call, and keeps it for later calls."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    async def intercept_service(  # type: ignore[override]  # the stub is generic by call
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Return the wrapped handler of a call's method; an unknown method has none."""
        method = handler_call_details.method
        if (known := self._handlers.get(method)) is not None:
            return known
        handler = await continuation(handler_call_details)
        # Names of unknown methods are not kept: callers choose them.
        if handler is None:
            return handler
        self._handlers[method] = wrapped = self.wrapped(method, handler)
        return wrapped

    @abstractmethod
    def wrapped(self, method: str, handler: Handler) -> Handler:
        """Return what serves a method instead of its handler.

        Args:
            method: The method, such as ``/hallujudge.judge.v1.JudgeService/Score``.
            handler: What serves it without this interceptor.
        """
