"""Progress of a run: a bar on a terminal or in a notebook, elsewhere a line every ten seconds."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from msgspec import structs

from hallujudge.judge_service.engine.streams import RunProgress

from ..archives.json_files import amount
from ..archives.local_files import watching_reads

if TYPE_CHECKING:
    from hallujudge.metrics.framework.report import JudgeShare

PLAIN_SECONDS = 10.0
"""Time between two lines where there is no terminal."""

_POLL_SECONDS = 1.0


class Progress:
    """How far a run is.

    Args:
        total: Number of items.
        clock: Seconds on a clock that never goes back.
        done_word: What is done with items, and before "un" if it is not.
    """

    def __init__(
        self,
        total: int,
        clock: Callable[[], float] = time.monotonic,
        done_word: str = "scored",
    ) -> None:
        self.total = total
        self._word = done_word
        self.done = 0
        self._clock = clock
        self._started = clock()
        self._kept = 0
        self._unscored = 0
        self._now = RunProgress()
        self._shares: tuple[JudgeShare, ...] = ()
        self._before: tuple[JudgeShare, ...] = ()

    def kept(self, items: int, unscored: int) -> None:
        """Count items that were scored before the run was resumed."""
        self._kept += items
        self.scored(items, unscored)

    def scored(self, items: int, unscored: int) -> None:
        """Count items with results."""
        self.done += items
        self._unscored += unscored
        # An item with a result shows that the wait is over.
        self._now = structs.replace(self._now, waiting="")

    def judged(self, shares: tuple[JudgeShare, ...], *, kept: bool = False) -> None:
        """Take over what each judge gave to the items with results, or to the kept ones."""
        self._shares = shares
        self._before = shares if kept else self._before

    def waits(self, now: RunProgress) -> None:
        """Take over calls, cost and what is waited for."""
        self._now = now

    @property
    def waiting(self) -> str:
        """What is waited for; empty while the run is at work."""
        return self._now.waiting

    @property
    def is_paid(self) -> bool:
        """Whether a language model was called, or its earlier replies were used."""
        return bool(self._now.answers or self._now.reused or any(s.calls for s in self._shares))

    def details(self) -> str:
        """Return rate, time left, unscored items and what judges gave, as far as known."""
        # The clock may not have moved since the start.
        rate = (self.done - self._kept) / max(self._clock() - self._started, 1e-9)
        parts = [f"{rate:,.0f}/s" if rate >= 10 or not rate else f"{rate:.2f}/s"]
        if rate and self.done < self.total:
            parts.append(f"{_duration((self.total - self.done) / rate)} left")
        if self._unscored:
            parts.append(f"{self._unscored:,} un{self._word}")
        return ", ".join((*parts, *self._judging()))

    def _judging(self) -> Iterator[str]:
        """Yield what this run's calls took, and who gave the verdicts."""
        now = self._now
        if not (now.tokens or now.reused):  # a server's judges: what they took is in the results
            took, before = _took(self._shares), _took(self._before)
            now = structs.replace(
                now,
                answers=took.answers - before.answers or now.answers,
                tokens=took.tokens - before.tokens,
                cost=now.cost if took.cost is None else took.cost - (before.cost or 0.0),
            )
        counts = (
            (now.answers, "call", "calls"),
            (now.tokens, "token", "tokens"),
            (now.reused, "reply from the cache", "replies from the cache"),
        )
        yield from (amount(count, one, more) for count, one, more in counts if count)
        if now.cost is not None:
            yield f"cost {now.cost:.4f}"
        if given := self._given():
            yield verdicts_text(given)

    def _given(self) -> dict[str, int]:
        """Return the verdicts of each judge, also those on items without a result yet."""
        given, kept = (
            {share.judge: share.decided for share in shares}
            for shares in (self._shares, self._before)
        )
        for judge, count in self._now.verdicts.items():
            # Verdicts are counted as they are given, shares with the item's result: neither has
            # all.
            given[judge] = max(given.get(judge, 0), kept.get(judge, 0) + count)
        return given

    def line(self) -> str:
        """Return everything in one line."""
        share = 100 * self.done // max(self.total, 1)
        waiting = f"; waiting: {self.waiting}" if self.waiting else ""
        return (
            f"{self._word} {self.done:,} of {self.total:,} ({share} %), {self.details()}{waiting}"
        )


def verdicts_text(given: Mapping[str, int]) -> str:
    """Return how many verdicts each judge gave, in words."""
    return f"verdicts: {', '.join(f'{judge} {count:,}' for judge, count in given.items())}"


class Lines(Protocol):
    """Something whose progress fits in a line."""

    @property
    def is_paid(self) -> bool:
        """Whether the last line is always written, as what was paid for matters."""

    def line(self) -> str:
        """Return the line; empty if there is nothing to say."""


class Reading:
    """How far the files are read that were opened.

    Nothing is counted while they are read: only a line looks at the places in them.
    """

    is_paid = False
    """Reading costs nothing."""

    def __init__(self) -> None:
        self._files: list[tuple[Path, BinaryIO]] = []

    def opened(self, path: Path, file: BinaryIO) -> None:
        """Take over a file that was opened."""
        # Closed ones are read to their end.
        self._files = [entry for entry in self._files if not entry[1].closed]
        self._files.append((path, file))

    def line(self) -> str:
        """Return how far the largest of the open files is read; empty if none is open."""
        # A copy of the list: the thread that reads opens files meanwhile.
        read = ((*_place(file), path.name) for path, file in list(self._files))
        size, place, name = max(read, default=(0, 0, ""))
        if not size:
            return ""
        share = 100 * place // size
        return f"reading {name}: {place / 1e6:,.0f} of {size / 1e6:,.0f} MB ({share} %)"


def _place(file: BinaryIO) -> tuple[int, int]:
    """Return the size of a file and the place in it; zeros if it is closed."""
    # The thread that reads may close it at any time.
    try:
        return os.fstat(file.fileno()).st_size, file.raw.tell()  # type: ignore[attr-defined]  # of a file with a buffer
    except (OSError, ValueError):
        return 0, 0


def _took(shares: Iterable[JudgeShare]) -> RunProgress:
    """Return what the replies that were paid for took."""
    paid = [share for share in shares if share.calls]
    costs = [share.cost for share in paid if share.cost is not None]
    return RunProgress(
        answers=sum(share.calls for share in paid),
        tokens=sum(share.prompt_tokens + share.completion_tokens for share in paid),
        cost=sum(costs) if costs else None,
    )


class PlainLines:
    """Writes a line of progress every ten seconds.

    Args:
        progress: The progress.
        write: Writes a line.
        clock: Seconds on a clock that never goes back.
        seconds: Time between two lines.
    """

    def __init__(
        self,
        progress: Lines,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        seconds: float = PLAIN_SECONDS,
    ) -> None:
        self._progress = progress
        self._write = write
        self._clock = clock
        self._seconds = seconds
        self._due = clock() + seconds
        self._written = False

    def end(self) -> None:
        """Write how far the run came, unless it was too short for lines and cost nothing."""
        if self._written or self._progress.is_paid:
            self._write(self._progress.line())

    def tick(self) -> None:
        """Write a line if one is due."""
        if self._clock() >= self._due and (line := self._progress.line()):
            self._written = True
            self._write(line)
            self._due = self._clock() + self._seconds


@contextmanager
def shown_progress(total: int, done_word: str = "scored") -> Iterator[Progress]:
    """Show progress while the block runs, and yield what counts it.

    Args:
        total: Number of items.
        done_word: What is done with items, and before "un" if it is not.
    """
    progress = Progress(total, done_word=done_word)
    show = _in_notebook if _is_notebook() else _bar if _is_terminal() else _lines
    with show(progress):
        yield progress


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    # A kernel has imported IPython; without it, importing it would take time.
    ipython = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None


@contextmanager
def _in_notebook(progress: Progress) -> Iterator[None]:
    """Show a bar below the cell; it needs no widgets, which rich's and tqdm's bars do."""
    from IPython.display import display

    from ..report.page.page_parts import element

    def shown() -> dict[str, str]:
        line = progress.line()
        bar = element("progress", "", value=str(progress.done), max=str(max(progress.total, 1)))
        return {"text/plain": line, "text/html": element("div", bar, " ", line)}

    handle = display(shown(), raw=True, display_id=True)
    try:
        with _ticking(lambda: handle.update(shown(), raw=True)):
            yield
    finally:
        handle.update(shown(), raw=True)


@contextmanager
def shown_reading() -> Iterator[None]:
    """Show how far large files are read while the block reads them."""
    reading = Reading()
    with watching_reads(reading.opened), shown_line(reading):
        yield


@contextmanager
def shown_line(progress: Lines) -> Iterator[None]:
    """Show progress in one line while the block runs.

    Args:
        progress: What is shown; a terminal has its latest line, elsewhere there is one every ten
            seconds.
    """
    write, seconds = (_rewrite, 0.0) if _is_terminal() else (_write, PLAIN_SECONDS)
    lines = PlainLines(progress, write, seconds=seconds)
    with _ticking(lines.tick):
        yield


@contextmanager
def _lines(progress: Progress) -> Iterator[None]:
    lines = PlainLines(progress, _write)
    try:
        with _ticking(lines.tick):
            yield
    finally:
        lines.end()


@contextmanager
def _ticking(tick: Callable[[], object]) -> Iterator[None]:
    """Call a function every second while the block runs."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(_POLL_SECONDS):
            tick()

    # A thread, so that a run that waits says so.
    # A daemon, since a thread must not keep the process from ending.
    thread = threading.Thread(target=run, name="hallujudge-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _bar(progress: Progress) -> Iterator[None]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class State(ProgressColumn):
        """The first column: it reads the progress whenever the bar is drawn."""

        def render(self, task: Task) -> Text:
            task.completed = progress.done
            return Text(f"waiting: {progress.waiting}" if progress.waiting else "scoring")

    class Details(ProgressColumn):
        """The last column."""

        def render(self, task: Task) -> Text:  # noqa: ARG002
            return Text(progress.details())

    columns = (State(), BarColumn(), MofNCompleteColumn(), Details())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task("scoring", total=progress.total)
        yield
    # The bar vanishes.
    PlainLines(progress, _write).end()


def _rewrite(line: str) -> None:
    """Write a line in place of the last one of a terminal."""
    # The cursor stays before the line, so that whatever is written next replaces it.
    _write(line, end="\x1b[K\r")


def _write(line: str, end: str = "\n") -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{line}{end}")
        sys.stderr.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
