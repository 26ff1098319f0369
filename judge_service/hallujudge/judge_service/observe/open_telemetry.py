"""What is sent by OpenTelemetry: traces of calls, and scores as events.

The span of a call goes on from the client's, and judge calls are inside it. Events are those of
the conventions for generative AI, ``gen_ai.evaluation.result``. Programs that observe language
models, such as Langfuse, Phoenix or Datadog, read them. They are log records with a name, sent over
OTLP/HTTP. What the conventions have no attribute for, such as the signature, is in attributes that
begin with ``hallujudge.``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import grpc

from .. import __version__
from ..errors import MissingExtraError, UnavailableError
from ..settings.connection import collector_address, masked
from ..tenancy import Attributes, EvaluatedItem
from . import CallRecord, Recorder

try:
    from opentelemetry import context, trace
    from opentelemetry._logs import LoggerProvider as AnyProvider
    from opentelemetry._logs import LogRecord
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Span, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    from opentelemetry.trace import SpanKind, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as err:
    raise MissingExtraError.of("OpenTelemetry", "otel") from err


# W3C Trace Context; other metadata is of no interest to the propagator.
_HEADERS = ("traceparent", "tracestate")

# Where OTLP/HTTP takes log records, below the address of a collector.
_LOGS = "/v1/logs"


class Tracing(Recorder):
    """Records spans.

    The library's own interceptor for servers breaks streams in both directions, and ends a span
    when the handler of a stream is made instead of when the stream ends.

    Args:
        exporter: Where spans go.
        ratio: The share of new traces that are recorded; a client's decision goes first.
    """

    name = "sending traces"

    def __init__(self, exporter: SpanExporter, ratio: float = 1.0) -> None:
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "hallujudge"}),
            sampler=ParentBased(TraceIdRatioBased(ratio)),
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("hallujudge", __version__)
        self._parents = TraceContextTextMapPropagator()
        # By identity, since a record that changes has no hash.
        self._spans: dict[int, Span] = {}

    def call_begun(self, call: CallRecord, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        """Begin the span of a call, inside the client's."""
        span = self._tracer.start_span(
            f"{call.service}/{call.method}",
            context=self._parents.extract(_headers(metadata)),
            kind=SpanKind.SERVER,
            attributes={
                "rpc.system": "grpc",
                "rpc.service": call.service,
                "rpc.method": call.method,
            },
        )
        # The task that serves a call ends with it, so nothing has to be detached.
        context.attach(trace.set_span_in_context(span))
        call.trace_id = trace.format_trace_id(span.get_span_context().trace_id)
        if isinstance(span, Span):
            self._spans[id(call)] = span

    def call_ended(self, call: CallRecord) -> None:
        """End the span of a call."""
        span = self._spans.pop(id(call), None)
        if span is None:
            return
        span.set_attributes(
            {
                "rpc.grpc.status_code": grpc.StatusCode[call.status].value[0],
                "hallujudge.request_id": call.request_id,
                "hallujudge.key": call.key,
                "hallujudge.key_name": call.key_name,
                "hallujudge.metric": call.metric,
                "hallujudge.items": call.items,
                "hallujudge.waited_seconds": call.waited_seconds,
            }
        )
        # A client that hangs up is not an error of the server.
        if call.status not in ("OK", "CANCELLED"):
            span.set_status(StatusCode.ERROR, call.status)
        span.end()

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[None]:
        """Provide a block of work inside the running span."""
        # Texts of errors may quote responses, so only the kind of an error is recorded.
        with self._tracer.start_as_current_span(
            name,
            kind=SpanKind.CLIENT if name.startswith("chat ") else SpanKind.INTERNAL,
            attributes=dict(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except Exception as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    def close(self) -> None:
        """Send the spans that wait."""
        self._provider.shutdown()


def otlp_exporter(endpoint: str) -> SpanExporter:
    """Return an exporter to a collector's address, such as ``http://localhost:4317``.

    Raises:
        InvalidInputError: It is not such an address; the library would drop every span later.
    """
    collector_address(endpoint, "trace.endpoint", ", such as http://localhost:4317")
    return OTLPSpanExporter(endpoint=endpoint, insecure=not endpoint.startswith("https://"))


def _headers(metadata: Iterable[tuple[str, str | bytes]]) -> Mapping[str, str]:
    return {name: value for name, value in metadata if name in _HEADERS and isinstance(value, str)}


class EvaluationEvents:
    """Emits events.

    Args:
        provider: Where they go.
    """

    def __init__(self, provider: AnyProvider) -> None:
        self._logger = provider.get_logger("hallujudge", __version__)

    def emit(
        self,
        name: str,
        value: float | None = None,
        *,
        response_id: str = "",
        explanation: str = "",
        error: str = "",
        own: Mapping[str, str | int | float] | None = None,
    ) -> None:
        """Emit an event in the running span, if there is one.

        Args:
            name: The metric and the score, such as ``chair/chair_i``.
            value: The score; None if the response is unscored.
            response_id: The id of the response; empty for a score over several.
            explanation: What the score rests on.
            error: Why the response is unscored.
            own: Further attributes, without their prefix ``hallujudge.``.
        """
        attributes: dict[str, str | int | float] = {"gen_ai.evaluation.name": name}
        if value is not None:
            attributes["gen_ai.evaluation.score.value"] = value
        texts = {
            "gen_ai.evaluation.explanation": explanation,
            "gen_ai.response.id": response_id,
            "error.type": error,
        }
        attributes |= {key: text for key, text in texts.items() if text}
        attributes |= {f"hallujudge.{key}": given for key, given in (own or {}).items()}
        self._logger.emit(LogRecord(event_name="gen_ai.evaluation.result", attributes=attributes))


class EventRecorder(Recorder):
    """Records scores of items as events. They hold ids and numbers, and no text of a response.

    Args:
        provider: Where events go; it is closed with the recorder.
    """

    name = "sending evaluation events"
    wants_items = True

    def __init__(self, provider: LoggerProvider) -> None:
        self._provider = provider
        self._events = EvaluationEvents(provider)

    def items_evaluated(self, metric: str, items: Sequence[EvaluatedItem]) -> None:
        """Emit an event for each score of each item, and one for an unscored item."""
        for item in items:
            if item.reason:
                self._events.emit(metric, response_id=item.id, error=item.reason)
            for score, value in item.scores.items():
                self._events.emit(f"{metric}/{score}", value, response_id=item.id)

    def close(self) -> None:
        """Send the events that wait."""
        self._provider.shutdown()


def otlp_provider(endpoint: str = "") -> LoggerProvider:
    """Return a provider that sends events to a collector.

    Args:
        endpoint: Its address, such as ``http://localhost:4318``; empty for that of the environment
            variables ``OTEL_EXPORTER_OTLP_…``.

    Raises:
        InvalidInputError: It is not such an address; the library would drop every event later.
    """
    return _provider(_exporter(endpoint))


@contextmanager
def sending(endpoint: str = "") -> Iterator[LoggerProvider]:
    """Give a provider, and send its events to a collector at the end.

    Args:
        endpoint: The collector's address, as for :func:`otlp_provider`.

    Raises:
        InvalidInputError: It is not such an address.
        UnavailableError: The collector did not take all events.
    """
    exporter = _exporter(endpoint)
    provider = _provider(exporter)
    try:
        yield provider
    finally:
        # This sends what waits, so that it is known below whether any event was lost.
        provider.shutdown()
    if exporter.lost:
        where = masked(endpoint) or "the address in OTEL_EXPORTER_OTLP_ENDPOINT"
        raise UnavailableError(
            f"no collector at {where} took the evaluation events. Start it, or correct the address"
        )


class _Exporter(OTLPLogExporter):
    """Sends events, and notes whether some were not taken."""

    lost = False

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Send a batch."""
        result = super().export(batch)
        self.lost |= result is not LogRecordExportResult.SUCCESS
        return result


def _exporter(endpoint: str) -> _Exporter:
    if not endpoint:
        return _Exporter(endpoint=None)
    parts = collector_address(
        endpoint,
        "the address of evaluation events",
        " that takes OTLP over HTTP, such as http://localhost:4318",
    )
    own = parts.path.strip("/")
    return _Exporter(endpoint=endpoint if own else endpoint.rstrip("/") + _LOGS)


def _provider(exporter: _Exporter) -> LoggerProvider:
    provider = LoggerProvider(Resource.create({"service.name": "hallujudge"}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    return provider
