"""``hallujudge top``: a server at work, in the terminal.

The server's metrics page is read at intervals, the difference of two readings is summarized, and
the summary is shown.
"""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from http.client import HTTPException
from typing import ClassVar

from rich.text import Text

from hallujudge.judge_service.settings.connection import web_address

from ..errors import InvalidInputError, MissingExtraError, UnavailableError

with MissingExtraError.unless_installed("hallujudge top", "top"):
    from prometheus_client.parser import text_string_to_metric_families
    from textual.app import App, ComposeResult
    from textual.binding import Binding, BindingType
    from textual.widgets import DataTable, Footer, Static

_MAX_BYTES = 8 << 20
_TIMEOUT_SECONDS = 5.0

_CLIENTS = ("client", "name", "waiting", "calls/s", "items/s", "errors/s", "judge calls", "cost")
_JUDGES = (
    "judge", "state", "running", "waiting", "limit", "calls/s", "failures/s", "seconds", "tokens/s",
    "cost",
)  # fmt: skip
_METRICS = ("metric", "items/s", "scored", "unscored", "most frequent reason")
# Decimals of the figures that are not whole numbers.
_DIGITS = {
    "calls": 1, "items": 1, "errors": 1, "failures": 1, "seconds": 2, "tokens": 0, "cost": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The samples of a server at one moment."""

    at: float
    """The moment, in seconds."""
    samples: Mapping[str, list[tuple[dict[str, str], float]]] = field(default_factory=dict)
    """The labels and values of each metric."""

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have these labels."""
        wanted = labels.items()
        return sum(value for found, value in self.samples.get(name, ()) if wanted <= found.items())

    def values(self, label: str, *names: str) -> list[str]:
        """Return the values of a label in some metrics, sorted."""
        found = (labels for name in names for labels, _ in self.samples.get(name, ()))
        return sorted({labels[label] for labels in found if label in labels})


def metrics_url(address: str) -> str:
    """Return the URL of the metrics of an address, such as ``127.0.0.1:9464``.

    Raises:
        InvalidInputError: It is not an address of a web server.
    """
    url = address if "://" in address else f"http://{address}"
    parts = web_address(url)
    if parts is None:
        raise InvalidInputError(
            f"{address!r} is not the address of a metrics page; give HOST:PORT, with the port that "
            "the server's --metrics-port names"
        )
    return url if parts.path.strip("/") else url.rstrip("/") + "/metrics"


def fetch(url: str) -> Reading:
    """Read a server's metrics.

    Raises:
        UnavailableError: The address does not answer, or not with metrics.
    """
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - http only
            # One byte more than allowed shows that the page is too large.
            data = response.read(_MAX_BYTES + 1)
    except (OSError, ValueError, HTTPException) as err:
        # URLError wraps the system's error, whose text alone is readable.
        reason = getattr(err, "reason", err)
        reason = getattr(reason, "strerror", None) or reason
        if isinstance(err, HTTPException):  # its text is what was sent, of which bytes are no words
            reason = "what it sends is not HTTP"
        raise UnavailableError(
            f"{url} does not answer: {reason}; check the address, or start the "
            "server with --metrics-port"
        ) from err
    if len(data) > _MAX_BYTES:
        raise UnavailableError(
            f"{url} sends more than {_MAX_BYTES} bytes; it is not a metrics page"
        )
    return parse(data.decode("utf-8", "replace"), time.monotonic())


def parse(text: str, at: float) -> Reading:
    """Return the samples of a page.

    Raises:
        UnavailableError: It is not a page of a Hallujudge server.
    """
    samples: dict[str, list[tuple[dict[str, str], float]]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    except (ValueError, IndexError, KeyError) as err:
        raise UnavailableError("the page is not one of metrics; check the address") from err
    if "hallujudge_build_info" not in samples:
        raise UnavailableError("the page is not a Hallujudge server's; check the address")
    return Reading(at=at, samples=samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A caller: a key, or all callers without one."""

    key: str
    """The id of the key, or a label for callers without one."""
    name: str
    """The name of the key; empty for callers without one."""
    waiting: int
    """Waiting calls."""
    calls: float
    """Completed calls per second."""
    items: float
    """Items per second."""
    errors: float
    """Failed calls per second."""
    cost: float
    """Cost since the server started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A language model."""

    model: str
    """Its name."""
    state: str
    """``ok``, or ``not called`` while its calls fail."""
    running: int
    """Running calls."""
    waiting: int
    """Calls that wait for a free place."""
    limit: int
    """Maximum number of running calls."""
    calls: float
    """Calls answered or failed per second."""
    failures: float
    """Failed calls per second."""
    seconds: float | None
    """Mean time of a call, or None without calls."""
    tokens: float
    """Tokens sent and received per second."""
    cost: float
    """Cost since the server started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """The items of a metric."""

    metric: str
    """The metric."""
    items: float
    """Items per second."""
    scored: int
    """Scored items since the server started."""
    unscored: int
    """Unscored items since the server started."""
    reason: str
    """The most frequent reason of unscored items; empty without unscored items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A server at one moment."""

    version: str
    """Its release."""
    ready: bool
    """Whether the server accepts calls."""
    running: int
    """Running calls."""
    running_limit: int
    """Maximum number of running calls."""
    waiting: int
    """Waiting calls."""
    waiting_limit: int
    """Maximum number of waiting calls."""
    memory: float
    """The used share of the memory budget."""
    calls: float
    """Completed calls per second."""
    items: float
    """Items per second."""
    wait_seconds: float | None
    """Mean waiting time of calls, or None without calls."""
    cost: float
    """Cost since the server started."""
    cost_per_hour: float
    """Cost per hour at the current rate."""
    cache_hits: float | None
    """The share of replies found in a cache, or None without lookups."""
    fallbacks: int
    """Claims that were passed to the next judge."""
    clients: tuple[Client, ...]
    """Callers, the busiest first."""
    judges: tuple[Judge, ...]
    """Language models."""
    metrics: tuple[MetricRow, ...]
    """Metrics, the busiest first."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two readings of one server."""

    before: Reading
    now: Reading

    def grown(self, name: str, **labels: str) -> float:
        """Return the increase of a counter, or its value after a restart of the server."""
        now = self.now.total(name, **labels)
        before = self.before.total(name, **labels)
        return now - before if now >= before else now

    def rate(self, name: str, **labels: str) -> float:
        """Return the increase of a counter per second."""
        seconds = self.now.at - self.before.at
        return self.grown(name, **labels) / seconds if seconds > 0 else 0.0

    def mean(self, name: str, **labels: str) -> float | None:
        """Return the mean of a histogram since the last reading, or else since the start."""
        count = self.grown(f"{name}_count", **labels)
        if count:
            return self.grown(f"{name}_sum", **labels) / count
        count = self.now.total(f"{name}_count", **labels)
        return self.now.total(f"{name}_sum", **labels) / count if count else None


def summarize(before: Reading, now: Reading) -> Summary:
    """Return the state at a reading, with rates since an earlier one."""
    pair = _Pair(before, now)
    limit = now.total("hallujudge_memory_limit_bytes")
    lookups = now.total("hallujudge_cache_lookups_total")
    unknown = now.total("hallujudge_cache_lookups_total", found="nowhere")
    return Summary(
        version=next(iter(now.values("version", "hallujudge_build_info")), ""),
        ready=now.total("hallujudge_ready") > 0,
        running=int(now.total("hallujudge_running_calls")),
        running_limit=int(now.total("hallujudge_running_calls_limit")),
        waiting=int(now.total("hallujudge_waiting_calls")),
        waiting_limit=int(now.total("hallujudge_waiting_calls_limit")),
        memory=now.total("hallujudge_memory_bytes") / limit if limit else 0.0,
        calls=pair.rate("hallujudge_calls_total"),
        items=pair.rate("hallujudge_items_total"),
        wait_seconds=pair.mean("hallujudge_wait_seconds"),
        cost=now.total("hallujudge_judge_cost_total"),
        cost_per_hour=3600 * pair.rate("hallujudge_judge_cost_total"),
        cache_hits=1 - unknown / lookups if lookups else None,
        fallbacks=int(now.total("hallujudge_fallbacks_total")),
        clients=_clients(pair),
        judges=_judges(pair),
        metrics=_metrics(pair),
    )


def _clients(pair: _Pair) -> tuple[Client, ...]:
    now = pair.now
    keys = now.values("key", "hallujudge_key_calls_total", "hallujudge_waiting_calls")
    infos = now.samples.get("hallujudge_key_info", ())
    names = {labels["key"]: labels["name"] for labels, _ in infos}
    found = [
        Client(
            key=key,
            name=names.get(key, ""),
            waiting=int(now.total("hallujudge_waiting_calls", key=key)),
            calls=pair.rate("hallujudge_key_calls_total", key=key),
            items=pair.rate("hallujudge_key_items_total", key=key),
            errors=pair.rate("hallujudge_key_calls_total", key=key)
            - pair.rate("hallujudge_key_calls_total", key=key, status="OK"),
            cost=now.total("hallujudge_key_cost_total", key=key),
        )
        for key in keys
    ]
    return tuple(sorted(found, key=lambda one: (-one.waiting, -one.calls, one.key)))


def _judges(pair: _Pair) -> tuple[Judge, ...]:
    now = pair.now
    names = now.values("model", "hallujudge_judge_calls_limit", "hallujudge_judge_calls_total")
    return tuple(
        Judge(
            model=model,
            state="not called" if now.total("hallujudge_judge_circuit_open", model=model) else "ok",
            running=int(now.total("hallujudge_judge_running_calls", model=model)),
            waiting=int(now.total("hallujudge_judge_waiting_calls", model=model)),
            limit=int(now.total("hallujudge_judge_calls_limit", model=model)),
            calls=pair.rate("hallujudge_judge_calls_total", model=model),
            failures=pair.rate("hallujudge_judge_calls_total", model=model)
            - pair.rate("hallujudge_judge_calls_total", model=model, outcome="answered"),
            seconds=pair.mean("hallujudge_judge_call_seconds", model=model),
            tokens=pair.rate("hallujudge_judge_tokens_total", model=model, kind="prompt")
            + pair.rate("hallujudge_judge_tokens_total", model=model, kind="completion"),
            cost=now.total("hallujudge_judge_cost_total", model=model),
        )
        for model in names
    )


def _metrics(pair: _Pair) -> tuple[MetricRow, ...]:
    now = pair.now
    found = [
        MetricRow(
            metric=metric,
            items=pair.rate("hallujudge_items_total", metric=metric),
            scored=int(now.total("hallujudge_items_total", metric=metric, outcome="scored")),
            unscored=int(now.total("hallujudge_items_total", metric=metric, outcome="unscored")),
            reason=_most_frequent_reason(now, metric),
        )
        for metric in now.values("metric", "hallujudge_items_total")
    ]
    return tuple(sorted(found, key=lambda one: (-one.items, one.metric)))


def _most_frequent_reason(now: Reading, metric: str) -> str:
    rows = now.samples.get("hallujudge_unscored_items_total", ())
    found = [(value, labels["reason"]) for labels, value in rows if labels["metric"] == metric]
    return max(found, default=(0.0, ""))[1]


class TopApp(App[None]):
    """Shows a server's clients, queue, judges, rates and cost, updated at intervals.

    Args:
        read: Reads the server's metrics; may block.
        address: The server's address, for the title.
        interval: Seconds between readings.
    """

    CSS = """
    #state { height: auto; padding: 0 1; }
    #problem { height: auto; padding: 0 1; color: $error; }
    DataTable { height: auto; max-height: 40%; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("r", "read", "Read now"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, read: Callable[[], Reading], address: str, interval: float) -> None:
        super().__init__()
        self._read = read
        self._address = address
        self._interval = interval
        self._before: Reading | None = None

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        yield Static(id="state")
        yield Static(id="problem")
        for name, columns in (("clients", _CLIENTS), ("judges", _JUDGES), ("metrics", _METRICS)):
            table: DataTable[Text] = DataTable(
                id=name, cursor_type="none", zebra_stripes=True, show_cursor=False
            )
            table.add_columns(*columns)
            yield table
        yield Footer()

    async def on_mount(self) -> None:
        """Read now, and then at intervals."""
        await self.action_read()
        self.set_interval(self._interval, self.action_read)

    async def action_read(self) -> None:
        """Read the metrics and show them."""
        problem = self.query_one("#problem", Static)
        try:
            now = await asyncio.to_thread(self._read)
        except UnavailableError as err:
            problem.update(Text(str(err)))
            return
        problem.update("")
        self.show(summarize(self._before or now, now))
        self._before = now

    def show(self, summary: Summary) -> None:
        """Show a summary."""
        self.query_one("#state", Static).update(_state(self._address, summary))
        self._fill("clients", map(_row, summary.clients))
        self._fill("judges", map(_row, summary.judges))
        self._fill("metrics", map(_row, summary.metrics))

    def _fill(self, name: str, rows: Iterable[tuple[str, ...]]) -> None:
        table: DataTable[Text] = self.query_one(f"#{name}", DataTable)
        table.clear()
        for first, *rest in rows:
            # A plain string would be parsed as markup, and names may contain brackets.
            table.add_row(Text(first), *(_cell(value) for value in rest))


def _cell(value: str) -> Text:
    """Return a cell; numbers are aligned to the right."""
    return Text(value, justify="right" if value[:1].isdigit() else "left")


def _state(address: str, summary: Summary) -> Text:
    text = Text.assemble(
        (f"hallujudge {summary.version} at {address}  ", "bold"),
        ("ready", "green") if summary.ready else ("NOT READY", "bold red"),
    )
    waited = "–" if summary.wait_seconds is None else f"{summary.wait_seconds:.3f} s"
    hits = "–" if summary.cache_hits is None else f"{summary.cache_hits:.0%}"
    text.append(
        f"\ncalls    {summary.calls:.1f}/s   "
        f"running {summary.running} of {summary.running_limit}   "
        f"waiting {summary.waiting} of {summary.waiting_limit}   mean wait {waited}"
        f"\nitems    {summary.items:.1f}/s   memory budget {summary.memory:.0%}   "
        f"replies found again {hits}   fallbacks {summary.fallbacks}"
        f"\ncost     {summary.cost:.4f}   {summary.cost_per_hour:.4f} an hour"
    )
    return text


def _row(one: Client | Judge | MetricRow) -> tuple[str, ...]:
    """Return the cells of a row, in the order of its fields."""
    return tuple(_shown(entry.name, getattr(one, entry.name)) for entry in fields(one))


def _shown(name: str, value: str | float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.{_DIGITS[name]}f}" if name in _DIGITS else str(value)
