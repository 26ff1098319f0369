"""Admission control and error mapping for every RPC, over gRPC and over HTTP."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, TypeAlias

import grpc
from grpc_status import rpc_status

from ..access import Caller, CallMemory, Scope, begin_call, begin_memory, current_caller
from ..errors import HallujudgeError
from ..fair_queue import CpuScheduler
from ..observe import record_caller, record_failure, record_running, record_waiting
from ..tenancy import MemoryBudget
from ..wire.errors import pushback, status_of
from .authentication import Authenticator, anonymous
from .connections import ConnectionGuard
from .flow_control import Admission, CallClock, RunningCalls
from .logs import internal_error
from .request_reader import Form, ProtobufForm, RequestReader, malformed

# grpc.aio has no public generic type for handlers, and interceptors do not use their messages.
# The types are strings because they are generic in the stubs but not at run time.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
"""The implementation of a method."""
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
"""gRPC's context of a call."""


class Interceptor(ABC):
    """Wraps the handler of each method when it is registered.

    gRPC's own interceptors are asked at every call, and HTTP has none.
    """

    @abstractmethod
    def wrapped(self, method: str, handler: Handler) -> Handler:
        """Return the handler that replaces the one of a method.

        Args:
            method: The method, such as ``/hallujudge.judge.v1.JudgeService/Score``.
            handler: Its handler.
        """


def within(interceptors: Iterable[Interceptor], method: str, handler: Handler) -> Handler:
    """Return a method's handler within interceptors, the innermost of which comes first."""
    for each in interceptors:
        handler = each.wrapped(method, handler)
    return handler


_OURS = "/hallujudge.judge.v1."


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRule:
    """How calls of one method are admitted."""

    scope: Scope | None = None
    """The scope that the caller needs, or None if every known caller may call it."""
    open: bool = False
    """Whether unknown callers may call it too. Such calls have places of their own."""
    idle: bool = False
    """Whether its calls mostly wait or do no work, so that they have places of their own."""


METHODS: Mapping[str, MethodRule] = {
    "/hallujudge.judge.v1.JudgeService/Score": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.JudgeService/ScoreStream": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.JudgeService/Extract": MethodRule(scope=Scope.EXTRACT),
    "/hallujudge.judge.v1.JudgeService/Judge": MethodRule(scope=Scope.JUDGE),
    "/hallujudge.judge.v1.JudgeService/Normalize": MethodRule(scope=Scope.EXTRACT),
    "/hallujudge.judge.v1.JudgeService/ListMetrics": MethodRule(idle=True),
    "/hallujudge.judge.v1.JudgeService/GetServerInfo": MethodRule(idle=True),
    "/hallujudge.judge.v1.ScoringJobService/CreateJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/AddJobItems": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/GetJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/ListJobs": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/WatchJob": MethodRule(scope=Scope.SCORE, idle=True),
    "/hallujudge.judge.v1.ScoringJobService/CancelJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/DeleteJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/ListJobResults": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/GetJobReport": MethodRule(scope=Scope.SCORE),
}
"""The rules of this service's methods; a new method adds its line here."""

# What gRPC and Python keep for an open stream, as measured.
_OPEN_STREAM_BYTES = 16 << 10

# Health and reflection: an orchestrator has no key, and must not restart a busy server.
_FOREIGN = MethodRule(open=True)


def rule_of(method: str) -> MethodRule:
    """Return the rule of a method, such as ``/hallujudge.judge.v1.JudgeService/Score``.

    A method of this service that is not in the table is for administrators only.
    """
    if not method.startswith(_OURS):
        return _FOREIGN
    return METHODS.get(method, MethodRule(scope=Scope.ADMIN))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardInterceptor(Interceptor):
    """Admits calls, reads their messages, and converts the errors that they raise to a status.

    Every method becomes one that receives a stream of bytes, which is the same on the wire. gRPC
    would otherwise read and parse the message of a unary call before any interceptor runs. Here
    the caller is identified and the call is admitted before its message is read.
    """

    authenticator: Authenticator
    """Identifies callers."""
    admission: Admission
    """The limits of concurrent calls."""
    memory: MemoryBudget
    """The memory budget of the process."""
    running: RunningCalls
    """The running calls, and how long they may take."""
    connections: ConnectionGuard
    """Counts calls by connection."""
    scheduler: CpuScheduler
    """Shares the processor between callers."""
    form: Callable[[Callable[[bytes], Any] | None], Form] = ProtobufForm
    """Returns how the messages of a method are encoded, given its protobuf parser."""

    def wrapped(self, method: str, handler: Handler) -> Handler:
        """Return a handler whose calls are admitted; see the base class."""
        rule = rule_of(method)
        if rule.open:
            # Streams of health and reflection wait; their other calls end at once.
            rule = replace(rule, idle=bool(handler.response_streaming))
        call = _behaviour(handler)
        reader = RequestReader(self.form(handler.request_deserializer))
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._guard_stream(call, rule, reader, many=handler.request_streaming),
                response_serializer=handler.response_serializer,
            )
        return grpc.stream_unary_rpc_method_handler(
            self._guard_unary(call, rule, reader, many=handler.request_streaming),
            response_serializer=handler.response_serializer,
        )

    def _guard_unary(
        self, call: Callable[..., Any], rule: MethodRule, reader: RequestReader, *, many: bool
    ) -> Callable[..., Any]:
        async def served(raws: AsyncIterable[bytes], context: Context) -> object:
            # Admission comes first: the message is not read before the caller has a place.
            async with _Admitted(self, rule, context) as memory:
                with self.running.clock(many=many, open=rule.open) as clock:
                    request = await self._request(raws, context, reader, memory, clock, many=many)
                    clock.moved()
                    return await call(request, context)

        async def guarded(raws: AsyncIterable[bytes], context: Context) -> object:
            try:
                return await served(raws, context)
            except Exception as err:
                failure = _failure_of(err)
            finally:
                if many:
                    await _let_go(raws)
            # Outside the handler, so that the error is freed with the messages in its frames.
            await failure.abort(context)

        return guarded

    def _guard_stream(
        self, call: Callable[..., Any], rule: MethodRule, reader: RequestReader, *, many: bool
    ) -> Callable[..., Any]:
        async def served(raws: AsyncIterable[bytes], context: Context) -> AsyncIterator[object]:
            async with _Admitted(self, rule, context) as memory:
                with self.running.clock(many=many) as clock:
                    request = await self._request(raws, context, reader, memory, clock, many=many)
                    if not many:
                        clock.moved()
                    async for response in call(request, context):
                        yield response
                        # A busy stream is not idle; signs of life of an idle one do not count.
                        if memory.busy:
                            clock.moved()

        async def guarded(raws: AsyncIterable[bytes], context: Context) -> AsyncIterator[object]:
            try:
                async for response in served(raws, context):
                    yield response
                return
            except Exception as err:
                failure = _failure_of(err)
            finally:
                if many:
                    await _let_go(raws)
            await failure.abort(context)

        return guarded

    async def _request(
        self,
        raws: AsyncIterable[bytes],
        context: Context,
        reader: RequestReader,
        memory: CallMemory,
        clock: CallClock,
        *,
        many: bool,
    ) -> Any:
        """Return the messages of a call; a single one is read without an iterator."""
        if many:
            return reader.each(_noted(raws, clock), memory, self._pace)
        raw = await context.read()
        if raw is grpc.aio.EOF:
            raise malformed("the call has no message")
        return await reader.only(raw, memory)

    async def _pace(self) -> None:
        caller = current_caller()
        # A key may be revoked while a stream runs.
        self.authenticator.check(caller)
        await self.admission.limits.message(caller)

    def known(self, rule: MethodRule, context: Context) -> Caller:
        """Return the caller, for whom the running task works until it ends.

        Raises:
            HallujudgeError: The caller is unknown, or may not call the method.
        """
        caller = self.authenticator.caller_of(context)
        record_caller(caller)
        if rule.scope is not None:
            caller.require(rule.scope)
        begin_call(caller, self.authenticator.current, self.scheduler)
        return caller


class _Admitted:
    """The context of an admitted call, with its caller and its memory.

    A class and not a generator for speed, as in :class:`Admission`.
    """

    __slots__ = ("_context", "_guard", "_memory", "_peer", "_place", "_rule")

    def __init__(self, guard: GuardInterceptor, rule: MethodRule, context: Context) -> None:
        self._guard = guard
        self._rule = rule
        self._context = context
        self._memory = CallMemory(guard.memory)
        self._peer = ""
        self._place: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> CallMemory:
        """Wait for a place.

        Raises:
            HallujudgeError: The caller is unknown, may not call the method, or is over a limit.
        """
        begin_memory(self._memory)
        guard, rule = self._guard, self._rule
        if rule.open and not rule.idle:
            return self._memory
        try:
            peer = self._context.peer()
            if rule.open:
                caller = anonymous(peer)
                self._memory.take(_OPEN_STREAM_BYTES)
            else:
                caller = guard.known(rule, self._context)
                guard.connections.entered(peer)
                self._peer = peer
            record_waiting()
            place = guard.admission.admitted(caller, idle=rule.idle, open=rule.open)
            await place.__aenter__()
        except BaseException:
            self._leave()
            raise
        self._place = place
        record_running()
        return self._memory

    def _leave(self) -> None:
        if self._peer:
            self._guard.connections.left(self._peer)
        self._memory.close()

    async def __aexit__(self, *ended: Any) -> None:
        try:
            if self._place is not None:
                await self._place.__aexit__(*ended)
        finally:
            self._leave()


async def _noted(raws: AsyncIterable[bytes], clock: CallClock) -> AsyncIterator[bytes]:
    async for raw in raws:
        clock.moved()
        yield raw


def _behaviour(handler: Handler) -> Callable[..., Any]:
    call = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    assert call is not None, "a method has no behaviour"
    return call


async def _let_go(raws: AsyncIterable[bytes]) -> None:
    """Free the last message of a stream.

    gRPC's message receiver and its generator refer to each other. They would keep the message alive
    until Python's garbage collector runs, which counts objects and not their bytes.
    """
    received: Any = aiter(raws)
    try:
        await received.aclose()
    except RuntimeError:
        return  # a cancelled task is still waiting for the next message


class _Failure(NamedTuple):
    """The status of a failed call.

    It holds no exception: gRPC keeps the error that a call is aborted with, and the frames of its
    causes would keep the call's messages in memory.
    """

    code: grpc.StatusCode
    details: str
    trailers: tuple[tuple[str, str | bytes], ...]

    async def abort(self, context: Context) -> NoReturn:
        """End the call.

        Raises:
            CancelledError: The client has gone and receives no status.
        """
        ending = context.abort(self.code, self.details, trailing_metadata=self.trailers)
        # gRPC keeps the error, and with it this frame, which must not keep the call.
        del context
        try:
            await ending
        # The call has ended already, so that no client waits for a status.
        except grpc.aio.InternalError as err:
            raise asyncio.CancelledError from err
        raise AssertionError("abort returned")


def _failure_of(error: Exception) -> _Failure:
    """Return the status of a call that raised an error.

    Raises:
        AbortError: The call has already ended.
        CancelledError: The server has stopped.
    """
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if _is_stopped(error):
        raise asyncio.CancelledError from error
    if not isinstance(error, HallujudgeError):
        error = internal_error(error)
    status = rpc_status.to_status(status_of(error))
    record_failure(status.code.name, str(error))
    # abort_with_status would omit the pushback trailer.
    return _Failure(status.code, status.details, (*status.trailing_metadata, *pushback(error)))


def _is_stopped(error: Exception) -> bool:
    """Return whether gRPC has stopped, so that no client receives a status.

    The error that reading a message raises then has no public type of its own.
    """
    known = (grpc.aio.UsageError, grpc.aio.InternalError)
    return isinstance(error, grpc.aio.BaseError) and not isinstance(error, known)
