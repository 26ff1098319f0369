"""Observation of a server: records of its calls, its access log, metrics page and self-check."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc

from ..command_process import STANDARD_OUTPUT
from ..engine import Engine, ScoreSpec
from ..engine.registry import metric_entry
from ..errors import OutputError
from ..observe import (
    CallRecord,
    JobsActivity,
    Recorder,
    Stage,
    Together,
    WorkerState,
    begin_recording,
    record_end,
)
from ..tenancy import JudgeState
from .authentication import host_of
from .interceptors import Context, Handler, Interceptor, rule_of
from .logs import LineWriter, dropped_lines

if TYPE_CHECKING:
    from ..jobs.job_service import JobService
    from ..observe.prometheus import MetricsPage
    from ..settings.server_settings import ServerSettings
    from .workers import Workers

_LOG = logging.getLogger(__name__)

REQUEST_ID = "x-request-id"
"""The header with a client's own id for a call."""
# The name under which requests are recorded that never became a call of a method.
_REFUSED = "HTTP"
# Other ids are replaced, so that clients can't write arbitrary text into logs.
_ALLOWED_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")

# The self-check scores an item of this metric, because CHAIR needs no model.
_METRIC = "chair"
# The item takes a millisecond; under full load it waits for its turn.
_CHECK_LIMIT_SECONDS = 5.0
# Far longer than any step of a call, and than an attack that was measured holds the event loop.
_BLOCKED_SECONDS = 15.0
# Short against the limit above, so that a beat that is late by chance does not matter.
_BEAT_SECONDS = 1.0
# A server without a correct score for this many rounds needs a restart, not only fewer calls.
_DEAD_ROUNDS = 3

# Errors in the access log may quote what callers sent.
_MAX_ERROR = 500
# What a line of the access log has of a call as it is.
_COPIED = (
    *("request_id", "key", "key_name", "peer", "method", "metric"),
    *("items", "scored", "unscored"),
)


@dataclass(frozen=True, slots=True)
class ObservingInterceptor(Interceptor):
    """Records each call from its arrival to its end, except health checks and reflection.

    It wraps the handlers of :class:`GuardInterceptor`, which all receive streams, so that waiting
    for admission counts as a part of the call.
    """

    recorder: Recorder
    """Where calls are recorded."""

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
            with _Observed(self.recorder, method, context):
                return await call(raws, context)

        return observed

    def _stream(self, call: Callable[..., Any], method: str) -> Callable[..., Any]:
        async def observed(raws: object, context: Context) -> AsyncIterator[object]:
            with _Observed(self.recorder, method, context):
                async for response in call(raws, context):
                    yield response

        return observed


class _Observed:
    """The context of one call, from its arrival to its end."""

    __slots__ = ("_call", "_metadata", "_recorder")

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

    def __enter__(self) -> None:
        begin_recording(self._recorder, self._call)
        self._recorder.call_begun(self._call, self._metadata)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._call.stage is Stage.ENDED:
            return
        # The client went away, or did not read its stream to the end.
        if kind is not None and issubclass(kind, (asyncio.CancelledError, GeneratorExit)):
            self._call.status = "CANCELLED"
        record_end(self._recorder, self._call)


def request_id(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Return the request id of a call, or a new one if it is missing or not allowed in logs."""
    for name, value in metadata:
        if name == REQUEST_ID and isinstance(value, str) and _ALLOWED_ID.fullmatch(value):
            return value
    return os.urandom(16).hex()


def record_refused(
    recorder: Recorder, status: str, error: str, *, peer: str, request_id: str
) -> None:
    """Record an HTTP request that was refused before it became a call of a method.

    Args:
        recorder: The recorder of calls.
        status: The name of the status code.
        error: The error message.
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


class AccessLog(Recorder):
    """Writes a line of JSON for each call, without responses and keys, in a thread of its own.

    Args:
        target: A file, or ``-`` for standard output.
        errors: Whether lines hold the texts of errors, which may quote what callers sent.

    Raises:
        OutputError: The file cannot be written.
    """

    name = "the access log"

    def __init__(self, target: str, *, errors: bool = False) -> None:
        self._errors = errors
        complain = partial(_LOG.error, "the access log loses lines: %s")
        self._writer = LineWriter(_opened(target), "access log", complain)

    @property
    def dropped(self) -> int:
        """How many lines were lost."""
        return self._writer.dropped

    def call_ended(self, call: CallRecord) -> None:
        """Write a call's line, soon."""
        super().call_ended(call)
        self._writer.put(access_line(call, errors=self._errors))

    def close(self) -> None:
        """Write what waits, unless it is not read, and close the file."""
        self._writer.close()


def access_line(call: CallRecord, *, errors: bool = False) -> str:
    """Return the line of a call. JSON escapes line breaks, so that a value cannot add a line."""
    fields: dict[str, object] = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        **{name: getattr(call, name) for name in _COPIED},
        "seconds": round(call.seconds, 6),
        "waited_seconds": round(call.waited_seconds, 6),
        "status": call.status,
    }
    if call.trace_id:
        fields["trace_id"] = call.trace_id
    if errors and call.error:
        fields["error"] = call.error[:_MAX_ERROR]
    return json.dumps(fields)


def _opened(target: str) -> int:
    if target == "-":
        return STANDARD_OUTPUT
    try:
        return os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as err:
        raise OutputError(
            f"the access log {target!r} can't be written ({err.strerror or err}); set log.access "
            "to a file in a folder that the server may write, or to -"
        ) from err


class SelfCheck:
    """Scores a tiny CHAIR item with a known score.

    Args:
        engine: The engine that is checked.
        interval: Seconds between checks.
        limit: Seconds that a check may take.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        interval: float,
        limit: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._interval = interval
        self._limit = limit
        self._clock = clock
        self._good_at = self._beat_at = clock()
        self._beat: asyncio.TimerHandle | None = None
        self.problem = ""
        """What was wrong in the last check, or an empty text."""
        self.seconds = 0.0
        """How long the last check took."""
        self.draining = False
        """Whether the server is draining."""

    def alive(self) -> str:
        """Return why the process should be restarted, or an empty text.

        It may be called from another thread, which detects a blocked event loop.
        """
        if self._beat is not None and (still := self._clock() - self._beat_at) > _BLOCKED_SECONDS:
            return f"the event loop has not run for {still:.0f} s"
        silent = self._clock() - self._good_at
        if self._interval and silent > _DEAD_ROUNDS * (self._interval + self._limit):
            return f"no correct score for {silent:.0f} s; {self.problem or 'the loop is blocked'}"
        return ""

    def ready(self) -> str:
        """Return why the server should receive no calls, or an empty text."""
        if self.draining:
            return "the server is draining"
        return self.problem or self.alive()

    async def check(self) -> str:
        """Score the item once, and return what is wrong or an empty text."""
        began = self._clock()
        try:
            self.problem = await asyncio.wait_for(self._wrong(), self._limit)
        except TimeoutError:
            self.problem = f"scoring a small item took longer than {self._limit:g} s"
        except Exception as error:
            self.problem = f"scoring a small item failed: {type(error).__name__}"
        self.seconds = self._clock() - began
        if not self.problem:
            self._good_at = self._clock()
        return self.problem

    async def run(self, on_change: Callable[[bool], None]) -> None:
        """Check until cancelled.

        Args:
            on_change: Called with whether the server is healthy, whenever that changes.
        """
        begin_recording(Recorder())  # the item must not count as a caller's
        try:
            self._beats()
            await self._check_forever(on_change)
        finally:
            if self._beat is not None:
                self._beat.cancel()
                self._beat = None

    def _beats(self) -> None:
        self._beat_at = self._clock()
        self._beat = asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._beats)

    async def _check_forever(self, on_change: Callable[[bool], None]) -> None:
        well = True
        while True:
            problem = await self.check()
            if well is bool(problem):
                well = not well
                _LOG.log(
                    logging.INFO if well else logging.ERROR,
                    "self check: %s",
                    problem or "well again",
                )
                on_change(well)
            await asyncio.sleep(self._interval)

    async def _wrong(self) -> str:
        trial = metric_entry(_METRIC).trial
        session = await self._engine.open(ScoreSpec(metric=_METRIC))
        [result] = await session.score([trial.item])
        value = result.scores.get(trial.score)
        if value != trial.value:
            return f"{trial.score} of a small item is {value}, not {trial.value:g}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The recorder, self-check and metrics page of one server."""

    recorder: Recorder
    """The recorder of calls."""
    check: SelfCheck
    """Whether the server is healthy."""
    page: MetricsPage | None = None
    """The metrics page, or None if the settings have no port for it."""

    def endings(self) -> dict[str, Callable[[], None]]:
        """Return what writes pending records and closes each part, by the part's name."""
        page = {} if self.page is None else {"the metrics page": self.page.close}
        return page | {part.name: part.close for part in self.recorder.parts}


def observe(
    settings: ServerSettings,
    engine: Engine,
    workers: Workers | None = None,
    jobs: JobService | None = None,
) -> Observation:
    """Return the observation that the settings describe.

    Args:
        settings: The settings.
        engine: The engine of the server.
        workers: The worker processes, if there are any.
        jobs: The jobs, if the server keeps any.

    Raises:
        HallujudgeError: An address, a file or an extra is missing.
    """
    check = SelfCheck(engine, interval=settings.self_check_seconds, limit=_CHECK_LIMIT_SECONDS)
    parts: list[Recorder] = []
    if settings.trace.endpoint:
        from ..observe.open_telemetry import Tracing, otlp_exporter

        tracing = Tracing(otlp_exporter(settings.trace.endpoint), settings.trace.ratio)
        tracing.name = f"sending traces to {settings.trace.endpoint}"
        parts.append(tracing)
    if settings.evaluation_endpoint:
        from ..observe.open_telemetry import EventRecorder, otlp_provider

        parts.append(EventRecorder(otlp_provider(settings.evaluation_endpoint)))
    page, access = None, None
    if settings.log.access:
        access = AccessLog(settings.log.access, errors=bool(settings.log.access_errors))
    if settings.metrics.port >= 0:
        page, recorder = _metrics(settings, engine, check, workers, jobs, access)
        parts.append(recorder)
    # After the others, because it writes what they wrote into a call.
    if access is not None:
        parts.append(access)
    recorder = parts[0] if len(parts) == 1 else Together(parts) if parts else Recorder()
    return Observation(recorder=recorder, check=check, page=page)


def _metrics(
    settings: ServerSettings,
    engine: Engine,
    check: SelfCheck,
    workers: Workers | None,
    jobs: JobService | None,
    access: AccessLog | None,
) -> tuple[MetricsPage, Recorder]:
    from ..observe.prometheus import MetricsPage, MetricsRecorder, Readings, new_registry

    def judges() -> Sequence[JudgeState]:
        factory = engine.resources.built_judges
        return factory.states() if factory is not None else ()

    def dropped() -> Mapping[str, int]:
        return {"server": dropped_lines(), "access": access.dropped if access is not None else 0}

    memory = engine.resources.memory
    registry = new_registry(
        Readings(
            memory_held=lambda: memory.held,
            memory_limit=memory.limit or 0,
            running_limit=settings.limits.max_running_calls,
            waiting_limit=settings.limits.max_waiting_calls,
            judges=judges,
            well=lambda: not check.ready(),
            check_seconds=lambda: check.seconds,
            workers=lambda: WorkerState() if workers is None else workers.state,
            jobs=lambda: JobsActivity() if jobs is None else jobs.activity,
            dropped_lines=dropped,
        )
    )
    recorder = MetricsRecorder(registry)
    page = MetricsPage(
        settings.metrics.host,
        settings.metrics.port,
        registry,
        alive=check.alive,
        ready=check.ready,
        names=settings.own_names,
    )
    return page, recorder
