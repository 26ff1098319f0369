"""Jobs: runs that the server keeps in a database and goes on with after a restart.

This module has jobs as values: state, items, results, limits and owner. Specs, items,
results and reports are bytes, which :mod:`..wire.convert` converts.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec.json import decode, encode

from ..access import Caller, current_caller
from ..flights import Flights


class JobState(enum.StrEnum):
    """What a job is doing."""

    OPEN = "open"
    """More items are to be added."""
    QUEUED = "queued"
    """All items are there; the job waits for its turn."""
    RUNNING = "running"
    """Items are being scored."""
    DONE = "done"
    """Every item is scored or unscored, and there is a report."""
    FAILED = "failed"
    """The job can't go on."""
    CANCELLED = "cancelled"
    """The caller cancelled the job."""


FINISHED = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})
"""States that a job does not leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a job failed or waits."""

    reason: str = ""
    """A key of ``REASONS``; empty if there is no problem."""
    detail: str = ""
    """The problem in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run that the server keeps."""

    number: int
    """Position in the order of creation."""
    id: str
    """Id of the job."""
    owner: str
    """The caller that created it."""
    caller: str
    """The caller with its limits, as when it created the job."""
    request_id: str
    """The caller's own id of the request that created it."""
    state: JobState
    """What the job is doing."""
    spec: bytes
    """How items are scored."""
    items: int
    """Number of items."""
    bytes: int
    """Size of the items, the spec and the note."""
    scored: int
    """Items with a score."""
    unscored: int
    """Items that are unscored for a reason."""
    problem: Problem
    """Why the job failed or waits."""
    created_at: float
    """When the job was created, in seconds since 1970."""
    finished_at: float | None
    """When the job was done, failed or cancelled."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Verdicts that each judge gave since this server began or went on with it."""

    @property
    def answered(self) -> int:
        """Number of items with a result."""
        return self.scored + self.unscored


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """A job with its header and note."""

    job: Job
    header: bytes
    """Report of no items."""
    note: str
    """Text that is kept for the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to create."""

    owner: str
    """The caller."""
    caller: str
    """The caller with its limits, from :func:`kept_caller`."""
    request_id: str
    """The caller's own id of the request."""
    spec: bytes
    """How items are scored."""
    note: str = ""
    """Text that is kept for the caller."""


class NewItem(NamedTuple):
    """An item to add to a job."""

    id: str
    content: bytes
    """The item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of an item, with its outcome."""

    position: int
    """Position of the item in its job."""
    scored: bool
    """Whether the item is scored."""
    reason: str
    """Why the item is unscored; empty for a scored item."""
    result: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """The result of an item as callers get it."""

    result: bytes
    item: bytes | None
    """The item, if it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """Results from one position on, up to the first item without a result."""

    results: Sequence[StoredResult]
    next_position: int
    """Position after the last one."""
    last: bool
    """Whether the job has no items beyond this page."""


class Trial(NamedTuple):
    """Items that were in flight when the server died, and are scored together now."""

    items: Sequence[tuple[int, bytes]]
    """Their positions and contents."""
    left: int
    """Such items of the job, these included."""
    is_blamed: bool
    """Whether the server died again and again of the only one of them; it is not scored."""


class Death(NamedTuple):
    """A job that a server left when it died."""

    job: str
    """Its id."""
    items: int
    """Items of it that were in flight."""


class ScoredChunk(NamedTuple):
    """Items of a job that were scored together."""

    reasons: Sequence[str]
    """Why each item is unscored; empty for scored items."""
    results: Sequence[bytes]
    """The result of each item, as bytes."""
    share: Any
    """Their share of the report, for :meth:`JobWork.add`."""


class JobWork(Protocol):
    """Scores the items of one job, and makes its report."""

    async def score(self, contents: Sequence[bytes], flights: Flights) -> ScoredChunk:
        """Score items, which are written down while they are at work."""

    async def unscored(self, contents: Sequence[bytes], died: str) -> ScoredChunk:
        """Return results of items that are not scored, because a process died of them."""

    async def share_of(self, results: Sequence[bytes]) -> Any:
        """Return the share of the report of results that are stored already."""

    async def add(self, share: Any) -> None:
        """Add a share to the report, in the order of the items."""

    async def report(self) -> bytes:
        """Return the report of all shares, as bytes."""


JobWorkers: TypeAlias = Callable[[bytes, str], JobWork]
"""Makes the work of a job that needs no models: from its spec, and the name of its metric."""


# Only keys and certificates identify a caller for longer than a connection.
_ANONYMOUS = "anonymous"
_NAMED = ("key:", "certificate:")


def current_owner() -> str:
    """Return the owner of jobs that the running call creates or asks for.

    Callers without a key share their jobs: their address may be another one when they come back.
    """
    caller = current_caller()
    return caller.id if caller.id.startswith(_NAMED) else _ANONYMOUS


def kept_caller() -> str:
    """Return the running call's caller as it is kept with a job: it pays for the job's calls."""
    # Its levels are those of a connection, and its secret that of a call.
    return encode(replace(current_caller(), levels=(), secret=""), order="deterministic").decode()


def caller_of(kept: str) -> Caller:
    """Return the caller that a job works for, from :func:`kept_caller`."""
    return decode(kept, type=Caller)
