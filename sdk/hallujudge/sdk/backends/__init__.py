"""Backends: scoring in this process or at a server, behind one interface.

This module has what backends share: their interface, timeouts, run headers, server addresses.

Importing this module loads neither gRPC nor the engine: ``from hallujudge.sdk import Client`` stays
fast.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from msgspec import Struct

from hallujudge.metrics import IntervalSettings, Item, ItemResult, Metric, Report, Tally
from hallujudge.metrics.framework.signature import before_items, signature_field
from hallujudge.metrics.framework.thought_scores import with_thought_scores
from hallujudge.metrics.framework.trait_sums import SCORED
from hallujudge.metrics.responses.reader import MARKS, THOUGHTS

from ..errors import InvalidInputError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.found_claims import FoundClaim
    from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress
    from hallujudge.judge_service.llm.estimate import Estimate


Batch: TypeAlias = "Sequence[Item]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long a client waits for a server, in seconds.

    Raises:
        InvalidInputError: ``progress_timeout`` is not above 0, or ``reconnect_timeout`` is below 0.
    """

    call_timeout: float = 60.0
    """How long a unary call may take."""
    stream_timeout: float = 86_400.0
    """How long a whole run may take."""
    # A judge gives up after 300 seconds, so that two of them in a row still count as progress.
    progress_timeout: float = 600.0
    """How long a server may work without a result, an answer of a judge or a reason to wait."""
    # Restarting a server with its models takes about a minute.
    reconnect_timeout: float = 120.0
    """How long a server that was lost during a run, or is full, is called again; 0 never."""

    def __post_init__(self) -> None:
        # Written so that NaN fails too.
        if not self.progress_timeout > 0:
            raise InvalidInputError(
                f"progress_timeout is {self.progress_timeout:g}; give a number of seconds above 0"
            )
        if self.reconnect_timeout < 0 or math.isnan(self.reconnect_timeout):
            raise InvalidInputError(
                f"reconnect_timeout is {self.reconnect_timeout:g}; give a number of seconds, or 0 "
                "to end a run with its connection"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """Items of one batch with their results."""

    items: Batch
    """The items."""
    results: Sequence[ItemResult]
    """One result for each, in order."""


class ServerInfo(Struct, frozen=True, kw_only=True):
    """Release of the scoring engine, and its graphs."""

    version: str
    """Release of Hallujudge."""
    graphs: tuple[str, ...]
    """Names of the shipped graphs."""


class RunHeader(Struct, frozen=True, kw_only=True):
    """What is known of a run before its first item."""

    metric: Metric
    """The metric; from a server it lacks the fields that only the signature has."""
    signature: str
    """The signature up to what depends on the items."""
    settings: Mapping[str, str]
    """The settings behind the signature, in full."""
    notes: tuple[str, ...]
    """What limits the use of the scores, whatever the items are."""
    release: str
    """The release that scores."""

    def read(self, items: Sequence[Item], results: Sequence[ItemResult]) -> Sequence[Item]:
        """Return scored items as they were read: with answers in place of responses."""
        # Imported here because the engine is not needed before there are results.
        from hallujudge.judge_service.engine.reading_pipeline import read_items

        return read_items(self.metric, self.settings, items, results)

    def report(self, tally: Tally, interval: IntervalSettings) -> Report:
        """Return the report over all items of a tally.

        Args:
            tally: The statistics of the items.
            interval: How intervals are made.
        """
        made = tally.finish(
            interval, version=self.release, settings=dict(self.settings), notes=self.notes
        )
        # A metric from a server lacks fields of the signature, so the header's signature replaces
        # that part; the fields that depend on the items follow it.
        own = str(self.metric.signature)
        return replace(made, signature=self.signature + made.signature.removeprefix(own))


class ScoringBackend(Protocol):
    """Scores items, in this process or at a server."""

    @property
    def worker_settings(self) -> Mapping[str, object] | None:
        """Judge settings for worker processes, or None if they can't share the work."""

    def origin(self) -> dict[str, Any]:
        """Return where the backend scores, as the manifest of a run records it."""

    def with_cache(self, path: Path) -> ScoringBackend | None:
        """Return a backend that also caches verdicts in a file.

        Returns:
            The backend, or None if this one has a cache of its own.
        """

    async def header(self, spec: ScoreSpec) -> RunHeader:
        """Return what is known of a run before its first item."""

    def score_stream(
        self, spec: ScoreSpec, header: RunHeader, batches: AsyncIterable[Batch]
    ) -> AsyncGenerator[BatchResult | RunProgress, None]:
        """Yield the results of each batch in input order.

        Every few seconds without results, progress is yielded. Closing the generator early cancels
        the work.

        Args:
            spec: How items are scored.
            header: The run's header, from :meth:`header`.
            batches: The items, whose ids differ.
        """

    async def evaluate(
        self, spec: ScoreSpec, header: RunHeader, batch: Batch, scores: Sequence[str] = ()
    ) -> Sequence[ItemResult]:
        """Return the result of each item of one batch, whose ids differ, in order.

        Args:
            spec: How items are scored.
            header: The run's header, from :meth:`header`.
            batch: The items.
            scores: If there are any, the results need no more than these scores.
        """

    async def extract(self, spec: ScoreSpec, texts: Sequence[str]) -> list[list[FoundClaim]]:
        """Return the claims of each text, without verdicts."""

    async def judge(self, spec: ScoreSpec, items: Sequence[Item]) -> list[ItemResult]:
        """Return verdicts on each item's claims, without a report."""

    async def normalize(
        self, source: GraphSource, words: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        """Map each word to its roots in a graph."""

    async def server_info(self) -> ServerInfo:
        """Return the release and the shipped graphs."""

    async def estimate(self, spec: ScoreSpec, items: Sequence[Item]) -> list[Estimate]:
        """Return how many judge calls and tokens a run needs, without calling a judge.

        Raises:
            UnsupportedError: The metric calls no paid judge, or a server scores.
        """

    async def close(self) -> None:
        """Close connections; the next call opens new ones."""


def metric_of(name: str, variant: str, settings: Mapping[str, str]) -> Metric:
    """Return a metric as a run used it, without fields that only the signature has.

    Args:
        name: Its name.
        variant: Its variant.
        settings: The settings of the run's report.

    Raises:
        NotFoundError: The metric is unknown.
        MetricError: The variant or an option is unknown.
    """
    # Imported here because the registry loads the engine.
    from hallujudge.judge_service.engine.registry import metric_entry

    declared = metric_entry(name).metric
    options = {
        option.name: settings[option.name] for option in declared.options if option.name in settings
    }
    options |= {name: settings[name] for name in (THOUGHTS, MARKS) if name in settings}
    labels = {
        entry.name: ""
        for entry in fields(declared)
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING
    }
    metric: Any = declared(**labels | options, variant=variant)
    scored = options.get(THOUGHTS) == SCORED
    return with_thought_scores(metric) if scored else cast("Metric", metric)


def header_of(report: Report) -> RunHeader:
    """Return the header of the run that made a report of no items."""
    return RunHeader(
        metric=metric_of(report.metric, report.variant, report.settings),
        signature=before_items(report.signature),
        settings=report.settings,
        notes=report.notes,
        release=signature_field(report.signature, "v"),
    )


_LAST_PORT = 65_535
# Other kinds of targets that gRPC resolves.
_OTHER_TARGETS = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "vsock:", "xds:")


def checked_address(target: str) -> str:
    """Return a server's address if it is valid.

    Raises:
        InvalidInputError: It is empty, a URL, or has no port.
    """
    if not target.strip():
        raise InvalidInputError(
            "the server's address is empty; give HOST:PORT, or name no server to score in "
            "this process"
        )
    # Late: importing the client loads no settings.
    from hallujudge.judge_service.settings.connection import masked

    shown = masked(target)
    if target.startswith(("http://", "https://")):
        raise InvalidInputError(
            f"the server's address {shown!r} is a URL; give HOST:PORT, such as localhost:50051",
            metadata={"target": shown},
        )
    if not target.startswith(_OTHER_TARGETS) and not _has_port(target):
        raise InvalidInputError(
            f"the server's address {shown!r} has no port from 1 to 65535; give HOST:PORT, such as "
            "localhost:50051",
            metadata={"target": shown},
        )
    return target


def _has_port(target: str) -> bool:
    host, _, port = target.rpartition(":")
    return bool(host) and port.isascii() and port.isdecimal() and 0 < int(port) <= _LAST_PORT


__all__ = ["Batch", "BatchResult", "ScoringBackend"]
