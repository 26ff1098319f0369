"""A progress bar on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Bar", "NoBar", "progress_bar"]

_AT_WORK = "scoring"


class Bar(Protocol):
    """What shows how far a run is."""

    def done(self, items: int) -> None:
        """Show that so many items have results."""

    def waits(self, why: str) -> None:
        """Show what is waited for; empty: nothing, the run is at work."""


class NoBar:
    """Shows nothing."""

    def done(self, items: int) -> None:
        """Do nothing."""

    def waits(self, why: str) -> None:
        """Do nothing."""


class _RichBar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def done(self, items: int) -> None:
        self._progress.update(self._task, completed=items, description=_AT_WORK)

    def waits(self, why: str) -> None:
        shown = f"waiting: {why}" if why else _AT_WORK
        self._progress.update(self._task, description=shown)


@contextmanager
def progress_bar(total: int) -> Iterator[Bar]:
    """Show a bar, with what is waited for in front of it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    told = TextColumn("{task.description}", markup=False)
    columns = (told, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _RichBar(bar, bar.add_task(_AT_WORK, total=total))
