"""Scores as events ``gen_ai.evaluation.result`` of OpenTelemetry's conventions for generative AI.

Programs that observe language models, such as Langfuse, Phoenix or Datadog, read these events. They
are log records with a name, sent over OTLP/HTTP. What the conventions have no attribute for, such
as the signature, is in attributes that begin with ``hallujudge.``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from ..errors import MissingExtraError, UnavailableError
from ..installation import __version__
from ..settings.connection import collector_address, masked
from ..tenancy import EvaluatedItem
from . import Recorder

try:
    from opentelemetry._logs import LoggerProvider as AnyProvider
    from opentelemetry._logs import LogRecord
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult
    from opentelemetry.sdk.resources import Resource
except ModuleNotFoundError as err:
    raise MissingExtraError.of("evaluation events", "otel") from err


EVENT = "gen_ai.evaluation.result"
"""Name of the events."""

# Where OTLP/HTTP takes log records, below the address of a collector.
_LOGS = "/v1/logs"

OwnAttributes: TypeAlias = "Mapping[str, str | int | float]"
"""Attributes without their prefix ``hallujudge.``."""


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
        own: OwnAttributes | None = None,
    ) -> None:
        """Emit an event in the running span, if there is one.

        Args:
            name: The metric and the score, such as ``chair/chair_i``.
            value: The score; None if the response is unscored.
            response_id: The id of the response; empty for a score over several.
            explanation: What the score rests on.
            error: Why the response is unscored.
            own: Further attributes.
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
        self._logger.emit(LogRecord(event_name=EVENT, attributes=attributes))


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
    return _Exporter(endpoint=logs_address(endpoint) if endpoint else None)


def _provider(exporter: _Exporter) -> LoggerProvider:
    provider = LoggerProvider(Resource.create({"service.name": "hallujudge"}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    return provider


def logs_address(endpoint: str) -> str:
    """Return where a collector takes log records.

    Raises:
        InvalidInputError: It is not the address of a collector.
    """
    parts = collector_address(
        endpoint,
        "the address of evaluation events",
        " that takes OTLP over HTTP, such as http://localhost:4318",
    )
    return endpoint if parts.path.strip("/") else endpoint.rstrip("/") + _LOGS
