"""Scoring into a folder: parts come from a backend in input order and go to the journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hallujudge.metrics import Report, Tally

from ..backends.base import BatchResult
from ..errors import InternalError
from .batching import batches_async
from .parts import Part, PartMaker

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress

    from ..archives import ItemSource
    from ..backends.base import RunHeader, ScoringBackend
    from .folder import RunFolder, Started
    from .parts import Entry

__all__ = ["BackendParts", "PartSource", "RunWatch", "score_parts"]

OnBatch: TypeAlias = "Callable[[BatchResult], None]"
OnProgress: TypeAlias = "Callable[[RunProgress], None]"


class PartSource(Protocol):
    """Scores items and gives the parts in input order."""

    def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items.

        Args:
            items: All items of the run.
            first: Position of the first one that is still to be scored.
        """
        ...


class RunWatch(Protocol):
    """Receives the progress of a run, for progress bars and notes."""

    def started(self, started: Started) -> None:
        """Learn what the folder holds already."""
        ...

    def scored(self, part: Part | Entry) -> None:
        """Learn of a part, the kept ones of a resumed run first."""
        ...

    def waits(self, progress: RunProgress) -> None:
        """Learn, every few seconds without a part, what is waited for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendParts:
    """Parts of what a backend scores, in this process or at a server."""

    backend: ScoringBackend
    """The backend."""
    spec: ScoreSpec
    """How items are scored."""
    header: RunHeader
    """What is known of the run."""
    keep_text: bool
    """Whether responses are kept."""
    html: bool = False
    """Whether an HTML page is made."""
    on_batch: OnBatch | None = None
    """Callback for each batch of results."""
    on_progress: OnProgress | None = None
    """Callback for what is waited for."""

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        maker = PartMaker.of(
            self.header, self.spec.group_by, keep_text=self.keep_text, html=self.html
        )
        stream = self.backend.score_stream(
            self.spec, batches_async(items.start_at(first)), report=False
        )
        async with aclosing(stream) as results:
            async for done in results:
                assert not isinstance(done, Report), "no report was asked for"
                if not isinstance(done, BatchResult):
                    if self.on_progress is not None:
                        self.on_progress(done)
                    continue
                if self.on_batch is not None:
                    self.on_batch(done)
                yield maker.make(done, first)
                first += len(done.items)


async def score_parts(
    folder: RunFolder,
    started: Started,
    source: PartSource,
    items: ItemSource,
    spec: ScoreSpec,
    header: RunHeader,
    watch: RunWatch | None = None,
) -> Report:
    """Score what a folder does not hold yet, and return the report over everything.

    Args:
        folder: Where the parts go.
        started: What the folder holds already.
        source: Scores items.
        items: All items of the run.
        spec: How they are scored.
        header: What is known of the run.
        watch: Receives the progress of the run.
    """
    total = Tally(header.metric, spec.group_by)
    for entry in started.kept.entries():
        total.merge_bytes(entry.tally)
        if watch is not None:
            watch.scored(entry)
    if folder.written < len(items):
        async with aclosing(source.parts(items, folder.written)) as parts:
            async for part in parts:
                folder.add(part)
                total.merge_bytes(part.tally)
                if watch is not None:
                    watch.scored(part)
    if folder.written != len(items):
        raise InternalError(f"{folder.written} of {len(items)} items were scored")
    # Intervals of many items take seconds; a thread keeps the event loop free.
    return await asyncio.to_thread(header.report, total, spec.interval)
