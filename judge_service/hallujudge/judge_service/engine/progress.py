"""What a run is doing while it has no results."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TICK_SECONDS", "RunProgress"]

TICK_SECONDS = 2.0
"""How often progress is reported while there are no results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """A sign of life of a run."""

    answers: int = 0
    """Answers that the run's language models gave so far, to any run."""
    cost: float | None = None
    """What their answers cost; None: not known, as at a server."""
    waiting: str = ""
    """What is waited for, in one sentence; empty: nothing, the run is at work."""
