"""A pool of worker processes, without the processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from hallujudge.sdk import ScoreRun
from hallujudge.sdk.archives.json_lines import Mark, Span
from hallujudge.sdk.runs import processes as pool
from hallujudge.sdk.runs.processes import PoolParts
from hallujudge.sdk.runs.score_run import SaveOptions
from hallujudge.sdk.runs.worker import SliceCheck, WorkerSettings

SPANS = [Span(Mark(), 10), Span(Mark(1, 10), 20), Span(Mark(1, 30), 30), Span(Mark(1, 60), 40)]


class StartingProcesses:
    """Processes that are started when the first slice was checked."""

    def __init__(self, *_work: Any, **_settings: Any) -> None:
        self.starting: Future[None] = Future()
        self.tasks: list[SliceCheck] = []

    def start_soon(self) -> Future[None]:
        return self.starting

    def results(self, tasks: Iterable[SliceCheck], *, ahead: int) -> Iterator[str]:
        assert ahead == 6
        for task in tasks:
            self.tasks.append(task)
            yield "by a worker"


def test_slices_are_checked_here_until_the_workers_have_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes = StartingProcesses()
    monkeypatch.setattr(pool, "Processes", lambda *_work, **_settings: processes)

    class Reader:
        def items(self, *_place: Any) -> Iterator[Any]:
            yield from ()

        def check(self, _start: Mark, size: int) -> Any:
            if size == 20:
                processes.starting.set_result(None)
            return "here"

    spec = ScoreRun("chair", responses={"1": "A dog."}).spec()
    made = PoolParts(WorkerSettings(spec=spec, judges={}, save=SaveOptions()), 2)
    made.start()
    found: list[Any] = list(made.check(Reader(), SPANS))
    assert found == ["here", "here", "by a worker", "by a worker"]
    assert [task.span for task in processes.tasks] == SPANS[2:]
