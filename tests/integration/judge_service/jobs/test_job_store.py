"""Jobs in a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import (
    InvalidInputError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    VersionMismatchError,
)
from hallujudge.judge_service.jobs import Answer, Job, JobState, NewItem, NewJob, Problem
from hallujudge.judge_service.jobs.database import Database
from hallujudge.judge_service.jobs.job_progress import JobProgress
from hallujudge.judge_service.jobs.job_store import JobStore
from hallujudge.judge_service.settings.server_settings import JobSettings

DAY = 86_400.0


@pytest.fixture
def database(jobs_address: str) -> Iterator[Database]:
    with closing(Database(jobs_address, busy_seconds=0.01)) as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> JobStore:
    return JobStore(database, JobSettings(per_owner=3, max_items=5, max_bytes=120))


@pytest.fixture
def progress(database: Database) -> JobProgress:
    return JobProgress(database)


def new(request_id: str = "r", owner: str = "ann", spec: bytes = b"\0spec") -> NewJob:
    return NewJob(owner=owner, caller="{}", request_id=request_id, spec=spec, note="a note: ü")


def items_of(*contents: bytes, at: int = 0) -> list[NewItem]:
    """Return items whose ids are their positions."""
    return [NewItem(str(place), content) for place, content in enumerate(contents, at)]


def made(
    store: JobStore, contents: Sequence[bytes] = (b"a", b"b"), request_id: str = "r",
    owner: str = "ann", *, more: bool = False, now: float = 1.0,
) -> Job:  # fmt: skip
    items = items_of(*contents)
    return store.create(new(request_id, owner), b"header", items, more=more, now=now)


def answer(position: int, *, scored: bool = True, result: bytes = b"result") -> Answer:
    reason = "" if scored else "RESPONSE_MISSING"
    return Answer(position=position, scored=scored, reason=reason, result=result)


def test_a_job_is_created_read_and_listed(store: JobStore) -> None:
    job = made(store)
    assert (job.state, job.items, job.answered) == (JobState.QUEUED, 2, 0)
    assert job.bytes == len(b"ab" + b"\0spec" + "a note: ü".encode())
    details = store.get("ann", job.id)
    assert details.job == job
    assert (details.header, details.note) == (b"header", "a note: ü")
    later = made(store, request_id="s")
    assert [found.id for found in store.list("ann", 10)] == [later.id, job.id]
    assert [found.id for found in store.list("ann", 10, later.number)] == [job.id]


def test_a_request_that_is_repeated_creates_nothing(store: JobStore) -> None:
    first = made(store)
    assert store.find("ann", "r") == first
    assert made(store, (b"other",)) == first
    assert len(store.list("ann", 10)) == 1


def test_a_job_of_another_caller_is_absent(store: JobStore) -> None:
    job = made(store)
    messages = set()
    for wrong_owner, job_id in (("bob", job.id), ("bob", "0" * 32)):
        with pytest.raises(NotFoundError) as absent:
            store.get(wrong_owner, job_id)
        assert absent.value.reason == "JOB_UNKNOWN"
        messages.add(str(absent.value).replace(job_id, ""))
        for call in (store.cancel,):
            with pytest.raises(NotFoundError):
                call(wrong_owner, job_id, now=2.0)
        with pytest.raises(NotFoundError):
            store.delete(wrong_owner, job_id)
        with pytest.raises(NotFoundError):
            store.report(wrong_owner, job_id)
        with pytest.raises(NotFoundError):
            store.add(wrong_owner, job_id, 0, items_of(b"x"), more=False, now=2.0)
        with pytest.raises(NotFoundError):
            store.results(wrong_owner, job_id, 0, count=1, max_bytes=1, with_items=True)
    assert len(messages) == 1
    for odd in ("", "a\0b", "é", "x" * 500):
        with pytest.raises(NotFoundError):
            store.get("ann", odd)
    assert store.list("bob", 10) == []
    assert made(store, owner="bob").id != job.id


def test_items_are_added_once(store: JobStore) -> None:
    job = made(store, (b"a", b"b"), more=True)
    assert job.state is JobState.OPEN
    added = store.add("ann", job.id, 1, items_of(b"b", b"c", at=1), more=True, now=2.0)
    assert added.items == 3
    with pytest.raises(InvalidInputError, match="from position 3 on"):
        store.add("ann", job.id, 4, items_of(b"e", at=4), more=True, now=2.0)
    closed = store.add("ann", job.id, 3, (), more=False, now=2.0)
    assert (closed.state, closed.items) == (JobState.QUEUED, 3)
    assert store.add("ann", job.id, 2, items_of(b"c", at=2), more=False, now=2.0) == closed
    with pytest.raises(InvalidInputError) as late:
        store.add("ann", job.id, 3, items_of(b"d", at=3), more=False, now=2.0)
    assert late.value.reason == "JOB_NOT_OPEN"


def test_an_id_of_an_earlier_request_is_refused(store: JobStore) -> None:
    job = made(store, (b"a", b"b"), more=True)
    store.add("ann", job.id, 2, items_of(b"c", at=2), more=True, now=2.0)
    for more in (True, False):
        again = [NewItem("new", b"d"), NewItem("1", b"b")]
        with pytest.raises(
            InvalidInputError,
            match=expected_message("judge_service.engine.streams:items-id-is-also-the-id-of", 1),
        ):
            store.add("ann", job.id, 3, again, more=more, now=2.0)
    assert store.get("ann", job.id).job.items == 3
    # The answer to a request was lost: it is sent again, with the same items.
    repeated = store.add("ann", job.id, 2, items_of(b"c", b"d", at=2), more=False, now=2.0)
    assert (repeated.items, repeated.state) == (4, JobState.QUEUED)
    other = made(store, (b"a",), request_id="other", more=True)
    assert store.add("ann", other.id, 1, items_of(b"b", at=1), more=False, now=2.0).items == 2


def test_limits_refuse_jobs_items_and_bytes(store: JobStore) -> None:
    for number, contents in enumerate(((b"x",) * 6, (b"x" * 121,))):
        with pytest.raises(InvalidInputError) as large:
            made(store, contents, request_id=str(number))
        assert large.value.reason == "JOB_TOO_LARGE"
    assert store.list("ann", 10) == []
    for number in range(3):
        made(store, request_id=str(number))
    with pytest.raises(OverloadedError) as many:
        made(store, request_id="one more")
    assert many.value.reason == "JOB_LIMIT"
    made(store, owner="bob")
    store.cancel("ann", store.list("ann", 1)[0].id, now=2.0)
    store.delete("ann", store.list("ann", 1)[0].id)
    made(store, request_id="one more")


def chunk(
    progress: JobProgress,
    job: Job,
    after: int,
    *,
    answered: bool = False,
    count: int = 9,
    max_bytes: int = 100,
) -> list[tuple[int, bytes]]:
    return progress.chunk(job.number, after, answered=answered, count=count, max_bytes=max_bytes)


def test_results_come_with_their_outcome_and_only_once(
    store: JobStore, progress: JobProgress
) -> None:
    job = made(store, (b"a", b"b", b"c"))
    assert progress.begin(job.number)
    assert chunk(progress, job, -1, count=2) == [(0, b"a"), (1, b"b")]
    assert chunk(progress, job, 0, max_bytes=1) == [(1, b"b")]
    assert progress.store(job.number, [answer(0), answer(2, scored=False)])
    assert progress.store(job.number, [answer(0, scored=False, result=b"again"), answer(2)])
    now = store.get("ann", job.id).job
    assert (now.scored, now.unscored, now.state) == (1, 1, JobState.RUNNING)
    assert chunk(progress, job, -1) == [(1, b"b")]
    assert chunk(progress, job, 1) == []
    assert chunk(progress, job, -1, answered=True) == [(0, b"result"), (2, b"result")]
    page = store.results("ann", job.id, 0, count=9, max_bytes=100, with_items=True)
    assert [(row.item, row.result) for row in page.results] == [(b"a", b"result")]
    assert (page.next_position, page.last) == (1, False)
    progress.store(job.number, [answer(1)])
    page = store.results("ann", job.id, 1, count=9, max_bytes=1, with_items=False)
    assert [(row.item, row.result) for row in page.results] == [(None, b"result")]
    page = store.results("ann", job.id, 2, count=9, max_bytes=100, with_items=False)
    assert (len(page.results), page.next_position, page.last) == (1, 3, True)
    everything = [(place, b"result") for place in range(3)]
    assert chunk(progress, job, -1, answered=True) == everything


def test_a_finished_job_stays_as_it_is(store: JobStore, progress: JobProgress) -> None:
    job = made(store)
    with pytest.raises(InvalidInputError) as early:
        store.report("ann", job.id)
    assert early.value.reason == "JOB_NOT_FINISHED"
    with pytest.raises(InvalidInputError, match="cancel it before"):
        store.delete("ann", job.id)
    assert progress.counts() == {"queued": 1}
    assert progress.finish(job.number, b"report", 5.0)
    assert progress.counts() == {"done": 1}
    assert store.report("ann", job.id) == b"report"
    assert store.cancel("ann", job.id, now=6.0).state is JobState.DONE
    assert not progress.fail(job.number, Problem(reason="INTERNAL"), 7.0)
    assert not progress.begin(job.number)
    assert progress.waiting() == []


def test_a_cancelled_job_keeps_results_that_were_paid_for(
    store: JobStore, progress: JobProgress
) -> None:
    job = made(store)
    progress.begin(job.number)
    assert store.cancel("ann", job.id, now=2.0).finished_at == 2.0
    assert not progress.store(job.number, [answer(0)])
    after = store.get("ann", job.id).job
    assert (after.state, after.scored) == (JobState.CANCELLED, 1)


def test_a_problem_is_noted_and_goes_away(store: JobStore, progress: JobProgress) -> None:
    job = made(store)
    progress.wait(job.number, Problem(reason="JUDGE_UNREACHABLE", detail="no \0 answer" * 500))
    waiting = store.get("ann", job.id).job
    assert (waiting.state, waiting.problem.reason) == (JobState.QUEUED, "JUDGE_UNREACHABLE")
    assert len(waiting.problem.detail) == 1000
    assert [found.id for found in progress.waiting()] == [job.id]
    progress.begin(job.number)
    assert store.get("ann", job.id).job.problem == Problem()


def test_old_jobs_are_deleted_with_their_items(
    database: Database, store: JobStore, progress: JobProgress
) -> None:
    done, open_ = made(store, now=0.0), made(store, request_id="open", more=True, now=0.0)
    running = made(store, request_id="running", now=0.0)
    progress.finish(done.number, b"report", DAY)
    assert progress.delete_old(30 * DAY, 30.0) == 0
    assert progress.delete_old(30 * DAY + 1, 30.0) == 1
    assert progress.delete_old(31 * DAY + 1, 30.0) == 1
    assert [job.id for job in store.list("ann", 9)] == [running.id]
    with database.reading() as connection:
        [count] = connection.execute("SELECT count(*) FROM hallujudge_job_items").fetchone()
    assert count == running.items
    assert open_.id != running.id


def test_one_server_at_a_time_runs_jobs(jobs_address: str, database: Database) -> None:
    first, second = database.runner_lock(), database.runner_lock()
    assert first.acquire()
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_a_newer_database_is_refused(jobs_address: str, database: Database) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO hallujudge_jobs_version VALUES (99)")
    with pytest.raises(VersionMismatchError, match="update hallujudge"):
        Database(jobs_address)


def test_a_full_disk_is_told(database: Database, store: JobStore, progress: JobProgress) -> None:
    job = made(store)
    with database.reading() as connection:
        # The pages that there are, no more. The store's calls use this connection again.
        connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(OverloadedError) as full:
        store.create(new("full"), b"h" * 100_000, (), more=True, now=1.0)
    assert full.value.reason == "JOBS_FULL"
    with pytest.raises(OverloadedError):
        progress.store(job.number, [answer(0, result=b"r" * 100_000)])
    after = store.get("ann", job.id).job
    assert (after.answered, len(store.list("ann", 9))) == (0, 1)


def test_a_locked_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    with closing(Database(str(path), busy_seconds=0.01)) as opened:
        store = JobStore(opened, JobSettings())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(UnavailableError) as locked:
                made(store)
            assert locked.value.reason == "JOBS_UNAVAILABLE"
            assert locked.value.retry_after
            other.execute("ROLLBACK")
        made(store)


def test_an_address_is_no_file() -> None:
    with pytest.raises(InvalidInputError, match="jobs are kept in a file") as refused:
        Database("postgresql://u:secret@h/d")
    assert "secret" not in str(refused.value)


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    path.write_text("not a database, but long enough to be looked at" * 50)
    # What is caught holds its frames, and what they left open.
    with pytest.raises(InvalidInputError, match="can't be used") as caught:
        Database(str(path))
    assert caught.tb is not None
    assert path not in [file.resolve() for file in Path("/proc/self/fd").iterdir()]
