"""Metrics for Prometheus, and the page with /metrics, /healthz and /readyz.

Threads serve the page, so that it answers while the event loop is busy. Only this module uses the
library.
"""

from __future__ import annotations

import io
import logging
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import IO, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from hallujudge.metrics.framework.results import UnscoredReason

from .. import __version__
from ..access import current_caller
from ..errors import InvalidInputError, MissingExtraError
from ..settings.connection import OTHER_HOST, is_own_host, plain_host, web_address, with_port
from ..tenancy import JudgeCall, JudgeState, Outcomes
from . import CallRecord, JobsActivity, Recorder, Stage, WorkerState, key_label

try:
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        ProcessCollector,
        disable_created_metrics,
        make_wsgi_app,
    )
    from prometheus_client.core import GaugeMetricFamily, Metric
    from prometheus_client.exposition import ThreadingWSGIServer
    from prometheus_client.registry import Collector
except ModuleNotFoundError as err:
    raise MissingExtraError.of("metrics", "server") from err

# The time at which each series began would double their number, and Prometheus does not read it.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's

OTHER = "other"
"""The label of all values that have no series of their own."""

_LOG = logging.getLogger(__name__)
_MAX_CHARS = 80
# Each label value is a series that Prometheus stores: their number must have a bound.
_MAX_KEYS = 500
_MAX_NAMES = 100
# A scraper sends its request at once; a silent connection would keep its thread.
_SOCKET_SECONDS = 10
# Each has a thread. A scrape is over in milliseconds, so that the oldest is the one to close.
_MOST_CONNECTIONS = 64
# From a small caption to a stream of half an hour.
_CALL_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_REASONS = frozenset(reason.value for reason in UnscoredReason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What is read from the server whenever metrics are fetched."""

    memory_held: Callable[[], int]
    """The bytes of the memory budget that are held."""
    memory_limit: int
    """The memory budget, in bytes."""
    running_limit: int
    """The calls that may run at the same time."""
    waiting_limit: int
    """The calls that may wait."""
    judges: Callable[[], Sequence[JudgeState]]
    """The state of each language model that was called."""
    well: Callable[[], bool]
    """Whether calls are welcome."""
    check_seconds: Callable[[], float]
    """How long the last self check took."""
    workers: Callable[[], WorkerState] = WorkerState
    """What worker processes do."""
    jobs: Callable[[], JobsActivity] = JobsActivity
    """How many jobs there are, and whether they move."""
    dropped_lines: Callable[[], Mapping[str, int]] = dict
    """Log -> lines that were dropped because they were not read."""


def new_registry(readings: Readings) -> CollectorRegistry:
    """Return a registry with the metrics of the process and of the server's state."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_State(readings))
    return registry


class MetricsRecorder(Recorder):
    """Counts what the layers record.

    Args:
        registry: Where the metrics are found.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._label = BoundedLabel(_MAX_KEYS)
        self._key_names: dict[str, str] = {}
        self._name = BoundedLabel(_MAX_NAMES)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        seconds = partial(Histogram, buckets=_CALL_SECONDS, registry=registry)
        key, model = ("key",), ("model",)
        # Calls, and what of them is counted by key.
        self._calls = counter("hallujudge_calls", "Ended calls.", ("method", "status"))
        arrival = "Time from the arrival of a call to its end."
        self._call_seconds = seconds("hallujudge_call_seconds", arrival, ("method",))
        self._running = gauge("hallujudge_running_calls", "Calls that run.", ("method",))
        self._waiting = gauge("hallujudge_waiting_calls", "Calls that wait to run.", key)
        self._wait_seconds = seconds("hallujudge_wait_seconds", "Time that calls waited to run.")
        self._wait_by_key = counter("hallujudge_key_wait_seconds", "Time waited, by key.", key)
        self._by_key = counter("hallujudge_key_calls", "Ended calls by key.", ("key", "status"))
        self._key_info = gauge("hallujudge_key_info", "Names of keys; 1.", ("key", "name"))
        self._items_by_key = counter("hallujudge_key_items", "Items of ended calls, by key.", key)
        # Items.
        outcome = ("metric", "outcome")
        self._outcomes = counter("hallujudge_items", "Items by outcome.", outcome)
        reason = ("metric", "reason")
        self._reasons = counter("hallujudge_unscored_items", "Unscored items by reason.", reason)
        # Calls to language models.
        called = "Calls to language models."
        self._judge_calls = counter("hallujudge_judge_calls", called, ("model", "outcome"))
        sent = "Time from sending a call to a language model to its reply or failure."
        self._judge_seconds = seconds("hallujudge_judge_call_seconds", sent, model)
        cached = "Tokens; cached ones are a part of the prompt's."
        self._tokens = counter("hallujudge_judge_tokens", cached, ("model", "kind"))
        self._cost = counter("hallujudge_judge_cost", "Money, by the set prices.", model)
        by_key = "Calls to language models, by key."
        self._judge_by_key = counter("hallujudge_key_judge_calls", by_key, key)
        self._cost_by_key = counter("hallujudge_key_cost", "Money, by key.", key)
        spent = "Calls to language models that were not sent because a budget is spent, by key."
        self._refused_by_key = counter("hallujudge_key_refused_judge_calls", spent, key)
        where = "Look-ups of replies, by where they were found."
        self._lookups = counter("hallujudge_cache_lookups", where, ("found",))
        went_on = "Claims and questions that went on to the next judge."
        self._fallbacks = counter("hallujudge_fallbacks", went_on, ("judge", "reason"))

    def call_waits(self, call: CallRecord) -> None:
        """Count a call among the waiting ones."""
        super().call_waits(call)
        self._waiting.labels(self._key(call.key, call.key_name)).inc()

    def call_runs(self, call: CallRecord) -> None:
        """Count a call among the running ones."""
        super().call_runs(call)
        self._left_queue(call)
        self._running.labels(self._name(call.method)).inc()

    def call_ended(self, call: CallRecord) -> None:
        """Count a call that ended."""
        if call.stage is Stage.RUNNING:
            self._running.labels(self._name(call.method)).dec()
        super().call_ended(call)
        if call.stage is Stage.WAITING:
            self._left_queue(call)
        method, key = self._name(call.method), self._key(call.key, call.key_name)
        self._calls.labels(method, call.status).inc()
        self._call_seconds.labels(method).observe(call.seconds)
        self._by_key.labels(key, call.status).inc()
        if call.items:
            self._items_by_key.labels(key).inc(call.items)

    def items_scored(self, metric: str, outcomes: Outcomes) -> None:
        """Count items by outcome and reason."""
        name = self._name(metric)
        scored = outcomes.get("", 0)
        self._outcomes.labels(name, "scored").inc(scored)
        self._outcomes.labels(name, "unscored").inc(sum(outcomes.values()) - scored)
        for reason, count in outcomes.items():
            if reason:
                label = reason if reason in _REASONS else OTHER
                self._reasons.labels(name, label).inc(count)

    def judge_called(self, call: JudgeCall) -> None:
        """Count a call to a language model, its tokens and its cost."""
        model, key = self._name(call.model), self._current_key()
        self._judge_calls.labels(model, call.outcome).inc()
        self._judge_seconds.labels(model).observe(call.seconds)
        self._judge_by_key.labels(key).inc()
        self._tokens.labels(model, "prompt").inc(call.prompt_tokens)
        self._tokens.labels(model, "cached").inc(call.cached_tokens)
        self._tokens.labels(model, "completion").inc(call.completion_tokens)
        self._cost.labels(model).inc(call.cost)
        self._cost_by_key.labels(key).inc(call.cost)

    def budget_refused(self) -> None:
        """Count a call that a budget refused, by the caller's key."""
        self._refused_by_key.labels(self._current_key()).inc()

    def looked_up(self, found: str) -> None:
        """Count a look-up of a reply."""
        self._lookups.labels(found).inc()

    def fell_back(self, judge: str, reason: str) -> None:
        """Count a claim that went on to the next judge."""
        self._fallbacks.labels(self._name(judge), self._name(reason)).inc()

    def _current_key(self) -> str:
        caller = current_caller()
        return self._key(key_label(caller), caller.key_name)

    def _key(self, key: str, name: str) -> str:
        """Return the label of a key, and show its newest name."""
        label, before = self._label(key), self._key_names.get(key)
        if name and name != before and label != OTHER:
            # A key with a new name must not stay in the series of its old one.
            if before is not None:
                self._key_info.remove(label, before)
            self._key_names[key] = name
            self._key_info.labels(label, name).set(1)
        return label

    def _left_queue(self, call: CallRecord) -> None:
        key = self._key(call.key, call.key_name)
        self._waiting.labels(key).dec()
        self._wait_seconds.observe(call.waited_seconds)
        self._wait_by_key.labels(key).inc(call.waited_seconds)


class BoundedLabel:
    """Labels the first values as they are, and all further ones as :data:`OTHER`.

    Args:
        most: The number of values.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, value: str) -> str:
        """Return the label for a value."""
        value = value[:_MAX_CHARS]
        # Without the lock, which only new values need.
        if value in self._known:
            return value
        with self._lock:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(value)
        return value


class _State(Collector):
    """Reads the server's state when metrics are fetched."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    def collect(self) -> Iterable[Metric]:
        """Return the state as metrics."""
        readings, workers = self._readings, self._readings.workers()
        build = GaugeMetricFamily("hallujudge_build_info", "The release.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        for name, text, value in (
            ("memory_bytes", "Memory that callers' work holds.", readings.memory_held()),
            ("memory_limit_bytes", "The memory budget.", readings.memory_limit),
            ("running_calls_limit", "Calls that may run at once.", readings.running_limit),
            ("waiting_calls_limit", "Calls that may wait.", readings.waiting_limit),
            ("ready", "1 while calls are welcome.", float(readings.well())),
            ("self_check_seconds", "Time of the last self check.", readings.check_seconds()),
            ("workers_busy", "Worker processes at work.", workers.busy),
            ("worker_tasks_waiting", "Tasks that wait for a worker process.", workers.waiting),
            ("worker_deaths", "Worker processes that died at work.", workers.deaths),
        ):
            yield GaugeMetricFamily(f"hallujudge_{name}", text, value=value)
        lost = GaugeMetricFamily("hallujudge_dropped_log_lines", "Lost lines.", labels=["log"])
        for log, count in readings.dropped_lines().items():
            lost.add_metric([log], count)
        yield lost
        yield from _of_jobs(readings.jobs())
        yield from _of_judges(readings.judges())


def _of_jobs(activity: JobsActivity) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("hallujudge_jobs", "Jobs by state.", labels=["state"])
    for state, count in activity.counts.items():
        jobs.add_metric([state], count)
    yield jobs
    yield GaugeMetricFamily(
        "hallujudge_jobs_still_seconds",
        "Time since a job got results or ended, while some are queued or running.",
        value=activity.still_seconds,
    )


def _of_judges(states: Sequence[JudgeState]) -> Iterator[Metric]:
    for name, text, read in (
        ("running_calls", "Calls to the model under way.", lambda state: state.running),
        ("waiting_calls", "Calls that wait for the model.", lambda state: state.waiting),
        ("calls_limit", "Calls to the model that may be under way.", lambda state: state.limit),
        (
            "circuit_open",
            "1 while the model is not called because of failures.",
            lambda state: float(state.circuit_open),
        ),
    ):
        family = GaugeMetricFamily(f"hallujudge_judge_{name}", text, labels=["model"])
        # The judge and its fallback may be the same model at two addresses.
        values: dict[str, float] = {}
        for state in states:
            values[state.model] = values.get(state.model, 0) + read(state)
        for model, value in values.items():
            family.add_metric([model], value)
        yield family


class _Handler(WSGIRequestHandler):
    """Logs no requests."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape every few seconds is not news."""

    def get_stderr(self) -> IO[str]:
        """Return a stream that is not read: of a client that does not read, nothing is logged."""
        return io.StringIO()


class _Server(ThreadingWSGIServer):
    """Closes the oldest connections where there are too many, and logs none that says nothing."""

    request_queue_size = _MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)
        self._open: dict[socket.socket, None] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own."""
        self._open[request] = None
        if len(self._open) > _MOST_CONNECTIONS:
            oldest = list(self._open)[0]  # noqa: RUF015 - threads change the dict meanwhile
            self._open.pop(oldest, None)
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, *_connection: Any) -> None:
        """Ignore clients that say nothing or go; the base class writes all to standard error."""
        if not isinstance(error := sys.exception(), OSError):
            _LOG.error("the metrics page failed", exc_info=error)


class MetricsPage:
    """Serves metrics and health over HTTP.

    Args:
        host: The address to listen on.
        port: The port; 0 for a free one.
        registry: The metrics.
        alive: Returns why the process should be restarted; empty if it need not be.
        ready: Returns why no calls should be sent here; empty if they may be.
        names: Names of this server that requests may have, in addition to addresses.
        idle_seconds: How long a client may be silent.

    Raises:
        InvalidInputError: The address cannot be listened on.
    """

    def __init__(
        self,
        host: str,
        port: int,
        registry: CollectorRegistry,
        *,
        alive: Callable[[], str],
        ready: Callable[[], str],
        names: Collection[str] = (),
        idle_seconds: float = _SOCKET_SECONDS,
    ) -> None:
        self._metrics = make_wsgi_app(registry)
        self._answers = {"/healthz": alive, "/readyz": ready}
        self._names = names
        handler = type("Handler", (_Handler,), {"timeout": idle_seconds})
        try:
            self._server = make_server(plain_host(host), port, self._answer, _Server, handler)
        except OSError as err:
            raise InvalidInputError(
                f"metrics cannot listen on {with_port(host, port)}: {err.strerror or err}; set "
                "another metrics.host or metrics.port (port 0 chooses a free one)"
            ) from err
        self.address = with_port(host, self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        target = environ.get("PATH_INFO", "")
        # A target may be a whole URL (RFC 9112, 3.2.2).
        path = parts.path if (parts := web_address(target)) is not None else target
        host = environ.get("HTTP_HOST", "") if parts is None else parts.netloc
        own = is_own_host(host, self._names)
        if path == "/metrics" and own:
            found: Iterable[bytes] = self._metrics(environ, start_response)
            return found
        problem = self._answers[path]() if path in self._answers else None
        if not own:
            status, text = HTTPStatus.FORBIDDEN, f"the host is {host!r:.80}; {OTHER_HOST}"
        elif problem is None:
            status, text = HTTPStatus.NOT_FOUND, "try /metrics, /healthz or /readyz"
        elif problem:
            status, text = HTTPStatus.SERVICE_UNAVAILABLE, problem
        else:
            status, text = HTTPStatus.OK, "ok"
        start_response(
            f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")]
        )
        return [f"{text}\n".encode()]
