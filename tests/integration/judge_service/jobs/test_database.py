"""The database of jobs, deleted, replaced or set back while it is used: no job is lost silently."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.database_mishaps import copied, deleted, log_deleted, replaced, set_back

from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.jobs import Job, NewItem, NewJob
from hallujudge.judge_service.jobs.database import Database, FileLock
from hallujudge.judge_service.jobs.job_store import JobStore
from hallujudge.judge_service.settings.server_settings import JobSettings


def created(store: JobStore, request_id: str) -> Job:
    new = NewJob(owner="ann", caller="{}", request_id=request_id, spec=b"", note="")
    return store.create(new, b"", [NewItem("a", b"a")], more=False, now=1.0)


def refusals(store: JobStore, caplog: pytest.LogCaptureFixture) -> set[str]:
    """Return the reasons for which a job is not created, and none is listed."""
    caplog.clear()
    reasons = set()
    for _ in range(2):
        with pytest.raises(UnavailableError) as caught:
            created(store, "after")
        reasons.add(caught.value.reason)
        with pytest.raises(UnavailableError) as caught:
            store.list("ann", 10)
        reasons.add(caught.value.reason)
    assert len(caplog.records) == 1, "the log names the loss once"
    return reasons


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[JobStore]:
    with closing(Database(str(path))) as database:
        yield JobStore(database, JobSettings())


def emptied(path: Path, _old: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE hallujudge_state")


@pytest.mark.parametrize("mishap", [deleted, replaced, set_back, emptied, log_deleted])
def test_no_job_is_taken_into_a_file_that_is_another_now(
    path: Path,
    store: JobStore,
    mishap: Callable[[Path, Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    old = copied(path)
    created(store, "before")
    mishap(path, old)
    assert refusals(store, caplog) == {"JOBS_LOST"}
    # Nor is an empty file made in its place, which the next start would take for all there is.
    assert path.exists() == (mishap is not deleted)


def test_a_file_that_is_put_back_has_its_jobs(path: Path, store: JobStore) -> None:
    job = created(store, "before")
    aside = path.with_name("aside")
    path.rename(aside)
    with pytest.raises(UnavailableError):
        created(store, "after")
    aside.rename(path)
    created(store, "after")
    assert job.id in {one.id for one in store.list("ann", 10)}


def test_two_servers_with_one_database_take_no_loss_from_each_other(jobs_address: str) -> None:
    with closing(Database(jobs_address)) as one, closing(Database(jobs_address)) as other:
        stores = [JobStore(database, JobSettings()) for database in (one, other)]
        for number in range(6):
            created(stores[number % 2], str(number))
        assert [len(store.list("ann", 10)) for store in stores] == [6, 6]


def test_a_lock_whose_file_was_deleted_is_not_held_beside_anothers(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = FileLock(path), FileLock(path)
    assert first.acquire()
    assert not second.acquire()
    path.unlink()
    assert second.acquire()
    assert not first.acquire()
    second.release()
    assert first.acquire()
    first.release()


def test_a_connection_that_can_not_be_set_up_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    class Broken(sqlite3.Connection):
        def execute(self, *_: object) -> sqlite3.Cursor:
            raise sqlite3.OperationalError("disk I/O error")

        def close(self) -> None:
            closed.append(self)
            super().close()

    with closing(Database(str(path))) as database, database.reading():
        # The only connection is in use, so the next transaction opens another one.
        monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: Broken(*args, **more))
        with pytest.raises(UnavailableError), database.reading():
            pass
    assert len(closed) == 1
