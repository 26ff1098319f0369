"""Watches of a run into a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .parts import Part

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.streams import RunProgress

    from ..progress import Progress
    from .folder import Started
    from .parts import Entry

__all__ = ["ProgressWatch"]


class ProgressWatch:
    """Counts what a run has scored.

    Args:
        progress: Counts it.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def started(self, started: Started) -> None:
        """Learn what the folder holds already; its parts follow."""

    def scored(self, part: Part | Entry) -> None:
        """Count a part."""
        count = self._progress.scored if isinstance(part, Part) else self._progress.kept
        count(part.items, part.unscored.items.counts.total())

    def waits(self, progress: RunProgress) -> None:
        """Show what is waited for."""
        self._progress.waits(progress)
