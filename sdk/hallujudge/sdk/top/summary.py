"""What `hallujudge top` shows: rates and states of two readings."""

from __future__ import annotations

from dataclasses import dataclass

from .reading import Reading

__all__ = ["Client", "Judge", "MetricRow", "Summary", "summarize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A caller: a key, or all callers without one."""

    key: str
    """The id of the key, or a word for callers without one."""
    waiting: int
    """Calls that wait."""
    calls: float
    """Calls that ended, in a second."""
    items: float
    """Items, in a second."""
    errors: float
    """Calls that failed, in a second."""
    judge_calls: int
    """Calls to language models since the server began."""
    cost: float
    """Money since the server began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A language model."""

    model: str
    """Its name."""
    state: str
    """``ok``, or ``not called`` while its calls fail."""
    running: int
    """Calls under way."""
    waiting: int
    """Calls that wait for a place."""
    limit: int
    """Calls that may be under way."""
    calls: float
    """Calls answered or failed, in a second."""
    failures: float
    """Calls that failed, in a second."""
    seconds: float | None
    """Mean time of a call; None: there was none."""
    tokens: float
    """Tokens sent and received, in a second."""
    cost: float
    """Money since the server began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """A metric's items."""

    metric: str
    """The metric."""
    items: float
    """Items, in a second."""
    scored: int
    """Scored items since the server began."""
    unscored: int
    """Unscored items since the server began."""
    reason: str
    """The most frequent reason of unscored items; empty: there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A server at one moment."""

    version: str
    """Its release."""
    ready: bool
    """Whether calls are welcome."""
    running: int
    """Calls that run."""
    running_limit: int
    """Calls that may run."""
    waiting: int
    """Calls that wait."""
    waiting_limit: int
    """Calls that may wait."""
    memory: float
    """The share of the memory budget that is held."""
    calls: float
    """Calls that ended, in a second."""
    items: float
    """Items, in a second."""
    wait_seconds: float | None
    """Mean time that calls waited; None: there was none."""
    cost: float
    """Money since the server began."""
    cost_per_hour: float
    """Money in an hour, at the present rate."""
    cache_hits: float | None
    """The share of replies that were known; None: none was looked up."""
    fallbacks: int
    """Claims that went on to the next judge."""
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
        """Return by how much a counter grew; after a restart, its value."""
        now = self.now.total(name, **labels)
        before = self.before.total(name, **labels)
        return now - before if now >= before else now

    def rate(self, name: str, **labels: str) -> float:
        """Return by how much a counter grows in a second."""
        seconds = self.now.at - self.before.at
        return self.grown(name, **labels) / seconds if seconds > 0 else 0.0

    def mean(self, name: str, **labels: str) -> float | None:
        """Return the mean of what a histogram counted in between, or else of all of it."""
        count = self.grown(f"{name}_count", **labels)
        if count:
            return self.grown(f"{name}_sum", **labels) / count
        count = self.now.total(f"{name}_count", **labels)
        return self.now.total(f"{name}_sum", **labels) / count if count else None


def summarize(before: Reading, now: Reading) -> Summary:
    """Return what two readings show; rates are those between them."""
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
    names = now.values("key", "hallujudge_key_calls_total", "hallujudge_waiting_calls")
    found = [
        Client(
            key=key,
            waiting=int(now.total("hallujudge_waiting_calls", key=key)),
            calls=pair.rate("hallujudge_key_calls_total", key=key),
            items=pair.rate("hallujudge_key_items_total", key=key),
            errors=pair.rate("hallujudge_key_calls_total", key=key)
            - pair.rate("hallujudge_key_calls_total", key=key, status="OK"),
            judge_calls=int(now.total("hallujudge_key_judge_calls_total", key=key)),
            cost=now.total("hallujudge_key_cost_total", key=key),
        )
        for key in names
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
