"""A clock that a test sets."""

from __future__ import annotations


class Clock:
    """Returns the time that a test sets, in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
