"""Offloading of calls that need no model to worker processes, as the bytes that were received."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError, Message

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2

from ..access import call_memory, stream_pause
from ..engine.registry import metric_entry
from ..engine.spec import ScoreSpec
from ..engine.streams import ID_BYTES, TICK_SECONDS, StreamIds, ordered_map, with_ticks
from ..settings.server_settings import LimitSettings
from ..tenancy import tenancy
from ..threads import LONG_CHARS, import_in_thread
from .flow_control import Held, Window
from .interceptors import Context, Handler, Interceptor
from .judge_servicer import MAX_CONCURRENCY, RESULT_FACTOR, first_of
from .request_checks import GroupLimit, admitted_bytes, admitted_spec
from .request_reader import (
    MalformedBytesError,
    MoreMemoryError,
    ProtobufForm,
    RequestReader,
    TooManyFieldsError,
    charged,
    count_fields,
    leading_field,
    plan_of,
    read_message,
)
from .worker_tasks import Reply, Task
from .workers import Tallies, Workers

# Methods of other services, such as health, never go to workers.
_SERVICE = "/hallujudge.judge.v1.JudgeService/"
# Sending a smaller message to a worker and back takes as long as scoring it here.
_SMALL_BYTES = 2_048
# About 2,500 captions.
_LONG_BYTES = 256 << 10
# A spec with more fields than this is malformed, and is refused where the whole message is read.
_SPEC_FIELDS = 10_000
# A field has at least two bytes.
_COUNTED_BYTES = 2 * _SPEC_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadInterceptor(Interceptor):
    """Sends calls to worker processes if they need no model and take more than a moment.

    It runs after admission and receives raw bytes, because its handlers have no parser.
    """

    pool: Workers
    """The workers."""
    settings: LimitSettings
    """The limits of calls."""
    raw: bool
    """Whether messages arrive in the form that workers read. Others are parsed and encoded again
    for workers, which takes a hundredth of the time of scoring."""

    def wrapped(self, method: str, handler: Handler) -> Handler:
        """Return a handler that sends calls to workers, if the method allows it."""
        call: Any
        name = method.removeprefix(_SERVICE)
        if name == "ScoreStream":
            call = self._stream(handler)
            # Messages of JSON are parsed already.
            if not self.raw:
                call = _parsed_stream(call)
            return grpc.stream_stream_rpc_method_handler(call, **self._forms(handler))
        if name not in _UNARY:
            return handler
        call = self._unary(name, handler)
        if not self.raw:
            call = _parsed_unary(call, _UNARY[name].response)
        return grpc.unary_unary_rpc_method_handler(call, **self._forms(handler))

    def _forms(self, handler: Handler) -> dict[str, Any]:
        """Return the parser and the serializer of a handler."""
        if self.raw:
            return {"response_serializer": _serialized}
        return {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }

    def _unary(self, name: str, handler: Handler) -> Callable[[bytes, Context], Awaitable[Any]]:
        reader = RequestReader(ProtobufForm(handler.request_deserializer))
        typed: Any = handler.unary_unary
        plan = _UNARY[name].plan

        async def call(raw: bytes, context: Context) -> object:
            memory = call_memory()
            # None also where the message is broken: reading it here names what is wrong.
            if (planned := await plan(raw)) is None:
                return await typed(await reader.parsed(raw, memory), context)
            # The worker's share of the budget, before it has read anything.
            task = Task(kind=name.lower(), parts=(raw,), memory=charged(raw))
            reply = await self.pool.run(task, memory, long=planned.long)
            if reply.outcomes:
                # Here, because metrics are read from this process.
                tenancy().record_outcomes(planned.metric, reply.outcomes, reply.evaluated)
            memory.result(len(reply.parts[0]))
            return reply.parts[0]

        return call

    def _stream(
        self, handler: Handler
    ) -> Callable[[AsyncIterable[bytes], Context], AsyncGenerator[object, None]]:
        reader = RequestReader(ProtobufForm(handler.request_deserializer))
        typed: Any = handler.stream_stream

        async def call(
            raws: AsyncIterable[bytes], context: Context
        ) -> AsyncGenerator[object, None]:
            incoming = aiter(raws)
            # One iterator for both: the first message is taken from it here.
            parsed = _parsed(incoming, reader)
            first = await first_of(parsed)
            spec = await admitted_spec(first.spec)
            # Models stay in this process, where calls share budgets, a verdict cache and encoders.
            if metric_entry(spec.metric).needs_models(spec):
                responses = typed(_chained(first, parsed), context)
            else:
                responses = _Run(self.pool, self.settings, spec, first).responses(incoming)
            async with aclosing(responses):
                async for response in responses:
                    yield response

        return call


async def _parsed(
    raws: AsyncIterable[bytes], reader: RequestReader
) -> AsyncIterator[pb.ScoreStreamRequest]:
    async for raw in raws:
        yield await reader.parsed(raw, call_memory())


class _Run:
    """One stream that workers score.

    Args:
        pool: The workers.
        settings: The limits of calls.
        spec: How items are scored.
        first: The message with the spec.
    """

    def __init__(
        self,
        pool: Workers,
        settings: LimitSettings,
        spec: ScoreSpec,
        first: pb.ScoreStreamRequest,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._metric = spec.metric
        # Once: each batch carries the spec, since any worker may score it.
        self._spec = first.spec.SerializeToString()
        self._report = not first.results_only
        self._groups = GroupLimit(settings.max_report_groups)
        self._memory = call_memory()
        # Sums of workers instead of results, so that memory does not grow with the stream.
        self._tallies = Tallies(pool, self._spec)
        self._ids = StreamIds()

    async def responses(self, raws: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the responses of the stream."""
        # A long task waits its turn among long ones, so that short calls don't wait behind it.
        long = len(self._spec) > LONG_CHARS
        reply = await self._pool.run(Task(kind="open", parts=(self._spec,)), long=long)
        self._memory.answered()
        yield reply.parts[0]
        async with aclosing(with_ticks(self._scored(raws), TICK_SECONDS)) as responses:
            async for response in responses:
                if response is None:
                    progress = pb.StreamProgress(waiting=stream_pause())
                    response = pb.ScoreStreamResponse(progress=progress).SerializeToString()
                yield response

    async def _scored(self, raws: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
        window = Window(self._settings.max_unread_bytes, self._settings.max_batch_items)

        async def work(one: tuple[bytes, Held]) -> Reply:
            raw, batch = one
            reply = await self._batch(raw)
            window.made(batch, len(reply.parts[0]))
            return reply

        # The ids are kept in arrays; loading numpy in the event loop would stop all calls.
        await import_in_thread("numpy")
        # One item a batch: how many there are is unknown without parsing.
        paced = window.paced(raws, lambda raw: (1, len(raw)))
        async with aclosing(ordered_map(paced, work, limit=MAX_CONCURRENCY)) as replies:
            async for reply in replies:
                self._add_ids(reply)
                # In the stream's order, which the ordered map keeps.
                for tally in reply.parts[1:] if self._report else ():
                    # Tallies merge exactly, so that a stream belongs to no worker, and survives the
                    # death of one.
                    await self._tallies.add(tally)
                yield reply.parts[0]
                window.sent()
                self._memory.answered()
        if self._report:
            for piece in (await self._tallies.report("report")).parts:
                yield piece

    def _add_ids(self, reply: Reply) -> None:
        """Refuse the id of an earlier item."""

        def id_at(place: int) -> str:
            return pb.ScoreStreamResponse.FromString(reply.parts[0]).batch.results[place].id

        # Eight bytes a key; kept until the stream ends, because any later item may repeat an id.
        self._memory.keep(len(reply.keys) // 8 * ID_BYTES)
        self._ids.add(reply.keys, id_at)

    async def _batch(self, raw: bytes) -> Reply:
        replies = await self._pool.run_items(
            self._task(raw), partial(self._alone, raw), self._memory, long=_is_long(raw)
        )
        for reply in replies:
            tenancy().record_outcomes(self._metric, reply.outcomes, reply.evaluated)
            # Workers count what a batch adds; the limit is one of the stream.
            self._groups.add(reply.groups)
        reply = replies[0] if len(replies) == 1 else _joined(replies)
        self._memory.result(RESULT_FACTOR * len(reply.parts[0]))
        return reply

    def _task(self, raw: bytes) -> Task:
        parts = (self._spec, raw)
        return Task(kind="batch", parts=parts, report=self._report, memory=charged(raw))

    def _alone(self, raw: bytes) -> list[Task]:
        """Return a task for each item of a batch."""
        try:
            request = read_message(pb.ScoreStreamRequest, raw, charged(raw))
        except MoreMemoryError as err:
            self._memory.grow(err.size - charged(raw))
            request = read_message(pb.ScoreStreamRequest, raw)
        batches = (pb.ItemBatch(items=[item]) for item in request.batch.items)
        return [self._task(_serialized(pb.ScoreStreamRequest(batch=one))) for one in batches]


def _joined(replies: Sequence[Reply]) -> Reply:
    """Return the reply to a batch whose items were scored one by one."""
    response = pb.ScoreStreamResponse()
    for reply in replies:
        # Repeated fields are appended, which is how protobuf merges messages.
        response.MergeFromString(reply.parts[0])
    tallies = [tally for reply in replies for tally in reply.parts[1:]]
    return Reply(
        parts=(response.SerializeToString(), *tallies),
        keys=b"".join(reply.keys for reply in replies),
    )


async def _chained(
    first: pb.ScoreStreamRequest, rest: AsyncIterator[pb.ScoreStreamRequest]
) -> AsyncIterator[pb.ScoreStreamRequest]:
    yield first
    async for request in rest:
        yield request


class _Plan(NamedTuple):
    """How a message is sent to a worker."""

    metric: str
    long: bool


async def _plan_score(raw: bytes) -> _Plan | None:
    """Return how a message is sent to a worker, or None if this process answers it."""
    spec = await _leading_spec(raw)
    if spec is None:
        return None
    entry = metric_entry(spec.metric)
    # Small messages are faster here, unless the metric parses sentences with rules.
    if (len(raw) < _SMALL_BYTES and not entry.parses(spec)) or entry.needs_models(spec):
        return None
    return _Plan(spec.metric, _is_long(raw))


async def _plan_extract(raw: bytes) -> _Plan | None:
    spec = await _leading_spec(raw)
    if spec is None:
        return None
    entry = metric_entry(spec.metric)
    if entry.calls_models(spec) or entry.extracts_with_models(spec):
        return None
    return _Plan(spec.metric, _is_long(raw))


async def _plan_normalize(raw: bytes) -> _Plan | None:
    return _Plan("", True) if len(raw) > LONG_CHARS else None


def _is_long(raw: bytes) -> bool:
    return len(raw) > _LONG_BYTES


class _Unary(NamedTuple):
    """A method with one message."""

    plan: Callable[[bytes], Awaitable[_Plan | None]]
    response: type[Message]


_UNARY: dict[str, _Unary] = {
    "Score": _Unary(_plan_score, pb.ScoreResponse),
    "Extract": _Unary(_plan_extract, pb.ExtractResponse),
    "Normalize": _Unary(_plan_normalize, pb.NormalizeResponse),
}
"""The methods with one message."""


async def _leading_spec(raw: bytes) -> ScoreSpec | None:
    """Return the spec at the start of a request, or None if the request starts differently.

    Raises:
        HallujudgeError: The spec is invalid, or the caller may not use it.
    """
    # A client that writes fields in another order is served here, only more slowly.
    found = leading_field(raw)
    if found is None:
        return None
    try:
        if len(found) > _COUNTED_BYTES:
            count_fields(found, plan_of(scoring_pb2.ScoreSpec.DESCRIPTOR), _SPEC_FIELDS)
        return await admitted_bytes(found)
    except (MalformedBytesError, TooManyFieldsError, DecodeError):
        return None  # parsing the whole message raises the error


def _parsed_unary(call: Callable[..., Any], response: type[Message]) -> Callable[..., Any]:
    """Return a call that takes and returns messages, not bytes."""

    async def parsed(request: Message, context: Context) -> Message:
        return _message(response, await call(request.SerializeToString(), context))

    return parsed


def _parsed_stream(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a stream that takes and yields messages, not bytes."""

    async def parsed(
        requests: AsyncIterable[Message], context: Context
    ) -> AsyncGenerator[Message, None]:
        raws = (request.SerializeToString() async for request in requests)
        async with aclosing(call(raws, context)) as responses:
            async for response in responses:
                yield _message(pb.ScoreStreamResponse, response)

    return parsed


def _message(kind: type[Message], response: Any) -> Message:
    # A call that was answered in this process is a message already.
    return kind.FromString(response) if isinstance(response, bytes) else response


def _serialized(response: Any) -> bytes:
    data: bytes = response if isinstance(response, bytes) else response.SerializeToString()
    return data
