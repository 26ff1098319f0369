"""Every RPC is observed: when it begins, how it ends, and what it asked for."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc

from ..observe.recorder import Recorder, begin_recording
from ..observe.values import CallRecord
from .methods import rule_of
from .peers import host_of
from .wrapping import Context, Handler, WrappingInterceptor

__all__ = ["REQUEST_ID", "ObservingInterceptor", "record_refused", "request_id"]

REQUEST_ID = "x-request-id"
"""The header with the id that a client chooses for a call."""
_REFUSED = "HTTP"
# Other ids are replaced: a log is no place for whatever a client sends.
_ALLOWED_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class ObservingInterceptor(WrappingInterceptor):
    """Records each call from its arrival to its end. Health checks and reflection are not recorded.

    It stands before the interceptor that admits calls, whose handlers all receive streams.

    Args:
        recorder: Where calls are recorded.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def wrapped(self, method: str, handler: Handler) -> Handler:
        """Return a handler whose calls are recorded; see the base class."""
        if rule_of(method).open:
            return handler
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(
                self._stream(handler.stream_stream, method),
                response_serializer=handler.response_serializer,
            )
        assert handler.stream_unary is not None, "calls are admitted as streams of bytes"
        return grpc.stream_unary_rpc_method_handler(
            self._unary(handler.stream_unary, method),
            response_serializer=handler.response_serializer,
        )

    def _unary(self, call: Callable[..., Any], method: str) -> Callable[..., Any]:
        async def observed(raws: object, context: Context) -> object:
            with _Observed(self._recorder, method, context):
                return await call(raws, context)

        return observed

    def _stream(self, call: Callable[..., Any], method: str) -> Callable[..., Any]:
        async def observed(raws: object, context: Context) -> AsyncIterator[object]:
            with _Observed(self._recorder, method, context):
                async for response in call(raws, context):
                    yield response

        return observed


class _Observed:
    """A block with one call, from its arrival to its end."""

    __slots__ = ("_began", "_call", "_metadata", "_recorder")

    def __init__(self, recorder: Recorder, method: str, context: Context) -> None:
        self._recorder = recorder
        self._metadata = tuple(context.invocation_metadata() or ())
        service, _, name = method.removeprefix("/").rpartition("/")
        self._call = CallRecord(
            method=name,
            service=service,
            request_id=request_id(self._metadata),
            peer=host_of(context.peer()),
        )
        self._began = time.perf_counter()

    def __enter__(self) -> None:
        begin_recording(self._recorder, self._call)
        self._recorder.call_begun(self._call, self._metadata)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, (asyncio.CancelledError, GeneratorExit)):
            self._call.status = "CANCELLED"
        self._call.seconds = time.perf_counter() - self._began
        self._recorder.call_ended(self._call)


def request_id(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Return the id that a call brought, or another if that one may not be in a log."""
    for name, value in metadata:
        if name == REQUEST_ID and isinstance(value, str) and _ALLOWED_ID.fullmatch(value):
            return value
    return os.urandom(16).hex()


def record_refused(
    recorder: Recorder, status: str, error: str, *, peer: str, request_id: str
) -> None:
    """Record an HTTP request that was refused before it became a call of a method.

    Args:
        recorder: Where calls are recorded.
        status: The name of the status code.
        error: What the client was told.
        peer: The client's address, in gRPC's notation.
        request_id: The id of the request.
    """
    call = CallRecord(
        method=_REFUSED,
        request_id=request_id,
        peer=host_of(peer),
        status=status,
        error=error,
    )
    recorder.call_ended(call)
