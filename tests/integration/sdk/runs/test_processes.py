"""Worker processes that die at any time, and runs that several of them score."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import process_tasks
from support.messages import expected_message
from support.process_tasks import DeadlyReader
from support.threads import PATIENCE, eventually

from hallujudge.judge_service.process_pool import ClosedError, DiedError
from hallujudge.sdk import Client, RunFolder, ScoreRun
from hallujudge.sdk.archives.inputs import spans_of
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.processes import PoolParts, Processes, Work
from hallujudge.sdk.runs.run_inputs import PreparedRun
from hallujudge.sdk.runs.score_run import SaveOptions
from hallujudge.sdk.runs.worker import WorkerSettings


def processes(do: Callable[[Any], Any], **more: Any) -> Processes[Any, Any, Any]:
    return Processes(Work(process_tasks.given, do), count=1, **more)


# A module that workers import: it waits until the test goes on.
WAITS = """
import os, time
while not os.path.exists({!r}):
    time.sleep(0.01)
"""


def test_the_start_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = tmp_path / "go on"
    (tmp_path / "waits.py").write_text(WAITS.format(str(go_on)))
    monkeypatch.syspath_prepend(tmp_path)
    with closing(processes(process_tasks.nothing, preload=("waits",))) as pool:
        starting = pool.start_soon()
        assert not starting.done()
        go_on.touch()
        assert pool.submit(None).result(PATIENCE) is None
        assert starting.result(PATIENCE) is None


# A module that workers import: Ctrl-C reaches them before they have imported everything.
INTERRUPTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
# Without a guard: processes do not import the main module again.
WORKS = """
import sys
sys.path.insert(0, sys.argv[1])
from support import process_tasks
from hallujudge.sdk.runs.processes import Processes, Work

work = Work(process_tasks.given, process_tasks.nothing)
pool = Processes(work, count=1, preload=("interrupted",))
print(pool.submit(None).result())
pool.close()
"""


def test_ctrl_c_does_not_end_processes_that_start(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    (tmp_path / "works.py").write_text(WORKS)
    done = subprocess.run(
        [sys.executable, tmp_path / "works.py", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(process_tasks.__file__).parents[1])},
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("None\n", "", 0)


def test_a_process_that_dies_while_it_writes_is_noticed(tmp_path: Path) -> None:
    with closing(processes(process_tasks.die_while_writing)) as pool:
        marker = tmp_path / "was here"
        assert pool.submit(marker).result(PATIENCE) == "whole"
        assert marker.exists()


def test_a_task_that_its_processes_die_of_is_given_up() -> None:
    with closing(processes(process_tasks.die)) as pool, pytest.raises(DiedError):
        pool.submit(None).result(PATIENCE)


def test_errors_of_tasks_are_raised_and_the_process_goes_on() -> None:
    with closing(processes(process_tasks.refuse)) as pool:
        for _ in range(2):
            with pytest.raises(InvalidInputError, match="a mistake of the user"):
                pool.submit(None).result(PATIENCE)


def test_an_error_before_the_first_task_is_that_of_each_task(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with closing(Processes(Work(process_tasks.refused, None), count=1)) as pool:
        for _ in range(2):
            with pytest.raises(InvalidInputError, match="a mistake of the user"):
                pool.submit(None).result(PATIENCE)
    assert capfd.readouterr().err == ""


def test_a_defect_says_where_it_was_found() -> None:
    with closing(processes(process_tasks.fail)) as pool:
        with pytest.raises(ZeroDivisionError) as caught:
            pool.submit(None).result(PATIENCE)
        assert "in fail" in caught.value.__notes__[0]


def test_the_traceback_of_an_error_can_be_collected() -> None:
    with closing(processes(process_tasks.fail)) as pool:
        with pytest.raises(ZeroDivisionError) as caught:
            pool.submit(None).result(PATIENCE)
        # A cycle with the frames of the traceback; what its collection raises is an error here.
        caught.value.args = (caught.value,)
        del caught
        gc.collect()


def test_ended_processes_keep_nobody_waiting(tmp_path: Path) -> None:
    with closing(processes(process_tasks.wait_forever)) as pool:
        ready = tmp_path / "ready"
        waiting: list[Future[Any]] = [pool.submit(ready) for _ in range(2)]
        assert eventually(ready.exists)
        assert not any(each.done() for each in waiting)
    for future in waiting:
        assert isinstance(future.exception(PATIENCE), ClosedError)


def test_closed_processes_do_not_start_again() -> None:
    pool = processes(process_tasks.refuse)
    pool.close()
    with pytest.raises(ClosedError):
        pool.submit(None).result(PATIENCE)


# Workers run the file of a benchmark from outside.
OUTSIDE = Path(__file__).resolve().parents[4] / "examples" / "my_benchmark.py"
COUNT = 6_000
FILES = ("items.jsonl", "report.json", "report.html")


class Watch:
    """Calls a function with the number of parts so far."""

    def __init__(self, on_part: Callable[[int], None]) -> None:
        self._parts = 0
        self._on_part = on_part

    def started(self, started: Any) -> None:
        """Do nothing."""

    def waits(self, progress: Any) -> None:
        """Do nothing."""

    def judged(self, shares: Any, *, kept: bool) -> None:
        pass

    def scored(self, _part: Any) -> None:
        self._parts += 1
        self._on_part(self._parts)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.embedded() as client:
        yield client


def run_of(folder: Path, workers: int, **more: Any) -> ScoreRun:
    texts = ("A dog on a sofa.", "A cat and a dog.", None, "Two people near a table.")
    ids = [str(number) for number in range(COUNT)]
    return ScoreRun(
        "chair",
        responses={key: texts[n % 4] for n, key in enumerate(ids)},
        references={key: ["dog"] for key in ids},
        folder=folder,
        html=True,
        workers=workers,
        **more,
    )


def score(client: Client, run: ScoreRun, on_part: Callable[[int], None] = lambda _: None) -> None:
    with RunFolder(Path(str(run.folder))) as folder:
        client.score_into(folder, PreparedRun.of(run), Watch(on_part))


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def kill_a_worker() -> None:
    os.kill(process_tasks.workers_of(os.getpid())[0], signal.SIGKILL)


@pytest.fixture(scope="module")
def whole(client: Client, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    score(client, run_of(folder, 1))
    return contents(folder)


def test_the_batches_of_a_worker_that_died_are_done_again(
    client: Client, whole: dict[str, bytes], tmp_path: Path
) -> None:
    def on_part(number: int) -> None:
        if number in (1, 40):
            kill_a_worker()

    score(client, run_of(tmp_path, 2), on_part)
    assert contents(tmp_path) == whole


async def test_an_item_that_ends_its_workers_is_unscored_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    rows = [{"id": str(n), "caption": "A dog.", "objects": ["dog"]} for n in range(1000)]
    path, file = tmp_path / "captions.jsonl", tmp_path / "fatal.py"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = ["from support.dying_worker import die_of_item", "die_of_item('700')"]
    file.write_text("\n".join([OUTSIDE.read_text("utf-8"), *lines]))
    run = ScoreRun("chair", responses=path)
    settings = WorkerSettings(
        spec=run.spec(), judges={}, save=SaveOptions(), benchmarks=(str(file),)
    )
    items = PreparedRun.of(run).items
    assert items.slices is not None
    with closing(PoolParts(settings, 1)) as pool:
        parts = [part async for part in pool.parts(items, 0)]
    written = [json.loads(line) for part in parts for line in part.lines.splitlines()]
    assert [row["id"] for row in written] == [row["id"] for row in rows]
    unscored = {row["id"]: row["reason"] for row in written if row.get("reason")}
    assert unscored == {"700": "PROCESS_DIED"}
    assert sum(part.unscored.items.counts["PROCESS_DIED"] for part in parts) == 1


def test_workers_read_their_own_slices_of_a_file(
    client: Client, whole: dict[str, bytes], tmp_path: Path
) -> None:
    run = run_of(tmp_path / "out", 2)
    responses, references = tmp_path / "captions.jsonl", tmp_path / "objects.json"
    given: Any = run.responses
    rows = ({"image_id": key, "caption": text} for key, text in given.items())
    responses.write_text("".join(json.dumps(row) + "\n" for row in rows))
    references.write_text(json.dumps(run.references))
    run = replace(run, responses=responses, references=references)
    assert PreparedRun.of(run).items.slices is not None
    score(client, run)
    # The page names its input files.
    for name in ("items.jsonl", "report.json"):
        assert contents(tmp_path / "out")[name] == whole[name]


def test_workers_check_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    row = {"caption": "A dog." + 3000 * " ", "objects": ["dog"]}
    path.write_text("".join(json.dumps({"id": n, **row}) + "\n" for n in range(2000)))
    run = ScoreRun("chair", responses=path)
    whole = PreparedRun.of(run).items
    settings = WorkerSettings(spec=run.spec(), judges={}, save=SaveOptions())
    with closing(PoolParts(settings, 2)) as pool:
        items = PreparedRun.of(run, workers=pool).items
        # A process that dies leaves the check to this one.
        assert list(pool.check(DeadlyReader(), spans_of(path))) == [None]
    assert list(items) == list(whole)
    assert items.slices is not None
    assert whole.slices is not None
    assert items.slices.marks.end == whole.slices.marks.end
    assert items.slices.marks != whole.slices.marks


class StoppedError(Exception):
    """Stands for whatever ends a run."""


def test_a_run_of_several_processes_is_resumed_by_one(
    client: Client, whole: dict[str, bytes], tmp_path: Path
) -> None:
    def stop(_number: int) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        score(client, run_of(tmp_path, 2), stop)
    score(client, run_of(tmp_path, 1, resume=True))
    assert contents(tmp_path) == whole


def test_a_server_and_callbacks_need_one_process(client: Client, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.runs.scoring:on-batch-needs-the-results-in-this"),
    ):
        score(client, run_of(tmp_path, 2, on_batch=lambda _batch: None))
    with pytest.raises(InvalidInputError, match="workers is -1; give 0"):
        score(client, run_of(tmp_path, -1))
