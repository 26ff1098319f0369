"""Jobs: runs that a server keeps. They are submitted, watched and fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "FINISHED_STATES",
    "JobInfo",
    "OnJobChange",
]


FINISHED_STATES = frozenset({"done", "failed", "cancelled"})
"""States that a job does not leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A run that a server keeps."""

    id: str
    """Id of the job."""
    request_id: str
    """Id of the request that created it; repeating the request creates no second job."""
    state: str
    """``open``, ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``."""
    items: int
    """Number of items."""
    scored: int
    """Items with a score."""
    unscored: int
    """Items that are unscored for a reason."""
    problem: str
    """Why the job failed or waits; empty if there is no problem."""
    problem_detail: str
    """The problem in words."""
    created_at: float
    """When the job was created, in seconds since 1970."""
    finished_at: float | None
    """When the job was done, failed or cancelled."""

    @property
    def is_finished(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self.state in FINISHED_STATES


OnJobChange: TypeAlias = "Callable[[JobInfo], None]"
"""Callback for a job now and after every change."""
