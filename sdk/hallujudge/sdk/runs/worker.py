"""A worker process of a run: it makes the parts of the batches that it is sent."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from typing import TYPE_CHECKING, NamedTuple

from ..backends.base import BatchResult
from .groups import Group, GroupReaders
from .parts import Part, PartMaker

if TYPE_CHECKING:
    from hallujudge.judge_service.engine import ScoringSession
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.llm.budget import SharedCalls

    from ..archives.inputs import CheckedSlice, SliceReader
    from ..archives.json_lines import Span

__all__ = ["SliceCheck", "Worker", "WorkerSettings", "do", "prepare"]

_NEW_OBJECTS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker needs to know."""

    spec: ScoreSpec
    """How items are scored."""
    judges: Mapping[str, object]
    """Settings of the judges."""
    keep_text: bool
    """Whether responses are kept."""
    html: bool = False
    """Whether an HTML page is made."""


class SliceCheck(NamedTuple):
    """A slice of an archive that a worker checks."""

    reader: SliceReader
    """Reads the archive."""
    span: Span
    """The slice."""


class Worker:
    """Scores batches with an engine of its own.

    Args:
        settings: What it needs to know.
        shared: Verdict store and budgets that workers share, if they call language models.
    """

    def __init__(self, settings: WorkerSettings, shared: SharedCalls | None = None) -> None:
        from ..backends.embedded import EmbeddedBackend

        self._settings = settings
        self._backend = EmbeddedBackend(settings.judges, shared)
        self._readers = GroupReaders()
        self._opening = asyncio.Lock()
        self._opened: tuple[ScoringSession, PartMaker] | None = None

    async def open(self) -> tuple[ScoringSession, PartMaker]:
        """Get ready to score, unless that was done."""
        async with self._opening:
            if self._opened is None:
                settings = self._settings
                session = await self._backend.open(settings.spec)
                maker = PartMaker(
                    session.metric,
                    settings.spec.group_by,
                    keep_text=settings.keep_text,
                    html=settings.html,
                )
                self._opened = session, maker
        return self._opened

    async def parts(self, group: Group) -> list[Part]:
        """Return the parts of a group of items."""
        session, maker = await self.open()
        parts = []
        first = group.first
        for batch in group.batches(self._readers):
            results = await session.evaluate(batch)
            parts.append(maker.make(BatchResult(items=batch, results=results), first))
            first += len(batch)
        return parts

    def check(self, task: SliceCheck) -> CheckedSlice | None:
        """Return what a slice of an archive holds."""
        return self._readers.of(task.reader).check(*task.span)


class _OnlyWorker(NamedTuple):
    """The worker of this process."""

    worker: Worker
    loop: asyncio.AbstractEventLoop


_workers: dict[str, _OnlyWorker] = {}


def prepare(settings: WorkerSettings) -> None:
    """Get a worker process ready; called once in each."""
    # Ctrl-C reaches every process of a terminal; the one that wrote the journal stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As the command line does, and for its reason.
    gc.set_threshold(_NEW_OBJECTS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    loop, worker = asyncio.new_event_loop(), Worker(settings)
    loop.run_until_complete(worker.open())
    _workers["only"] = _OnlyWorker(worker, loop)


def do(task: Group | SliceCheck) -> list[Part] | CheckedSlice | None:
    """Return the parts of a group of items, or what a slice of an archive holds."""
    worker, loop = _workers["only"]
    if isinstance(task, SliceCheck):
        return worker.check(task)
    return loop.run_until_complete(worker.parts(task))


def _end_with_parent() -> None:
    """End this process when its parent has died, for example by kill -9."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
