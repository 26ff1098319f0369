"""Backends: scoring in this process or at a server, behind one interface.

This module has what backends share: their interface, timeouts, server addresses.

Importing this module loads neither gRPC nor the engine: ``from hallujudge.sdk import Client`` stays
fast.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct

from ..errors import InvalidInputError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.found_claims import FoundClaim
    from hallujudge.judge_service.engine.spec import GraphSource, RunHeader, ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.metrics import Item, ItemResult


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
    """As they were read: answers in place of whole responses."""
    results: Sequence[ItemResult]
    """One result for each, in order."""


class ServerInfo(Struct, frozen=True, kw_only=True):
    """Release of the scoring engine, and its graphs."""

    version: str
    """Release of Hallujudge."""
    graphs: tuple[str, ...]
    """Names of the shipped graphs."""


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
        self,
        spec: ScoreSpec,
        header: RunHeader,
        batches: AsyncIterable[Batch],
        scores: Sequence[str] = (),
    ) -> AsyncGenerator[BatchResult | RunProgress, None]:
        """Yield the results of each batch in input order.

        Every few seconds without results, progress is yielded. Closing the generator early cancels
        the work.

        Args:
            spec: How items are scored.
            header: The run's header, from :meth:`header`.
            batches: The items, whose ids differ.
            scores: Names of scores that a server computes, which results from it have besides the
                metric's own; in this process they are computed from the statistics.
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


# Ports are numbers of 16 bits, and 0 names none.
_LAST_PORT = 65_535
# Other kinds of targets that gRPC resolves.
_OTHER_TARGETS = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "vsock:", "xds:")


def checked_address(target: str) -> str:
    """Return a server's address if it is valid.

    Raises:
        InvalidInputError: It is empty, a URL, or has no port.
    """
    # An unset variable of a shell leaves an empty address, which is not "no server".
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
