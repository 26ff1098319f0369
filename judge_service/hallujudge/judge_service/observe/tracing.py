"""Traces by OpenTelemetry: a call's span goes on from the client's, judge calls are inside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import grpc

from ..errors import MissingExtraError
from ..installation import __version__
from ..settings.connection import collector_address
from ..tenancy import Attributes
from . import CallRecord, Recorder

try:
    from opentelemetry import context, trace
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Span, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    from opentelemetry.trace import SpanKind, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as err:
    raise MissingExtraError.of("traces", "otel") from err


# W3C Trace Context; other metadata is of no interest to the propagator.
_HEADERS = ("traceparent", "tracestate")


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

    def span(self, name: str, attributes: Attributes) -> AbstractContextManager[None]:
        """Return a block of work inside the running span."""
        return self._span(name, attributes)

    @contextmanager
    def _span(self, name: str, attributes: Attributes) -> Iterator[None]:
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
