"""Worker processes that die at any time, or are ended."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support import process_tasks
from support.threads import eventually

from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.processes import DiedError, Processes, Work


def processes(do: Callable[[Any], Any]) -> Processes[None, Any, Any]:
    return Processes(Work(process_tasks.nothing, None, do), count=1, attempts=2)


def test_the_start_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, start = Event(), BaseProcess.start

    def start_later(process: BaseProcess) -> None:
        assert go_on.wait(60)
        start(process)

    monkeypatch.setattr(BaseProcess, "start", start_later)
    with closing(processes(process_tasks.nothing)) as pool:
        pool.start_soon()
        go_on.set()
        assert pool.result(None) is None


def test_a_process_that_dies_while_it_writes_is_noticed(tmp_path: Path) -> None:
    with closing(processes(process_tasks.die_while_writing)) as pool:
        marker = tmp_path / "was here"
        assert pool.result(marker) == "whole"
        assert marker.exists()


def test_a_task_that_its_processes_die_of_is_given_up() -> None:
    with closing(processes(process_tasks.die)) as pool, pytest.raises(DiedError):
        pool.result(None)


def test_errors_of_tasks_are_raised_and_the_process_goes_on() -> None:
    with closing(processes(process_tasks.refuse)) as pool:
        for _ in range(2):
            with pytest.raises(InvalidInputError, match="a mistake of the user"):
                pool.result(None)


def test_a_defect_says_where_it_was_found() -> None:
    with closing(processes(process_tasks.fail)) as pool:
        with pytest.raises(ZeroDivisionError) as caught:
            pool.result(None)
        assert "in fail" in caught.value.__notes__[0]


def test_the_traceback_of_an_error_can_be_collected() -> None:
    with closing(processes(process_tasks.fail)) as pool:
        with pytest.raises(ZeroDivisionError) as caught:
            pool.result(None)
        # A cycle with the frames of the traceback; what its collection raises is an error here.
        caught.value.args = (caught.value,)
        del caught
        gc.collect()


def test_ended_processes_keep_nobody_waiting(tmp_path: Path) -> None:
    with closing(processes(process_tasks.wait_forever)) as pool:
        ready = tmp_path / "ready"
        waiting: list[Future[Any]] = [pool.threads.submit(pool.result, ready) for _ in range(2)]
        assert eventually(lambda: ready.exists() and all(each.running() for each in waiting))
    for future in waiting:
        assert isinstance(future.exception(), DiedError)


def test_closed_processes_do_not_start_again() -> None:
    pool = processes(process_tasks.refuse)
    pool.close()
    with pytest.raises(DiedError):
        pool.result(None)
