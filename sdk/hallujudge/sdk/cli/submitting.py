"""What ``hallujudge submit`` says to the score command that it runs."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Submission", "submission"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A run that is submitted instead of being scored."""

    request_id: str = ""
    """Id of the request; empty: a hash of files and settings."""


submission: ContextVar[Submission | None] = ContextVar("submission", default=None)
"""The submission; None outside ``hallujudge submit``."""
