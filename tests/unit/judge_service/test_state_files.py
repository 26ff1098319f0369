"""Files that a server keeps: who may use them, and whether they are still its own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.jobs.database import Database
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.judge_service.server.observation import AccessLog
from hallujudge.judge_service.state_files import (
    DatabaseLostError,
    DatabaseWatch,
    make_private,
    warn_of_readers,
)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes_of(folder: Path) -> dict[str, int]:
    """Return the permissions of a folder and of what is in it."""
    return {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}


def test_what_a_server_creates_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    ledger = Ledger(folder / "spending.sqlite")
    database = Database(str(folder / "jobs.sqlite"))
    lock = database.runner_lock()
    assert lock.acquire()
    cache = VerdictCache(folder / "verdicts.sqlite")
    cache.check()
    create_key(folder / "keys.json", "ana", scopes=[Scope.SCORE])
    log = AccessLog(str(folder / "access.jsonl"))
    found = modes_of(folder)
    lock.release()
    log.close()
    ledger.close()
    database.close()
    names = {"spending.sqlite-wal", "jobs.sqlite-shm", "jobs.sqlite.lock", ".keys.json.lock"}
    assert names <= set(found)
    assert found.pop("state") == 0o700
    assert set(found.values()) == {0o600}, found


def test_what_others_could_use_is_taken_from_them_with_a_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    file = folder / "jobs.sqlite"
    for end in ("", "-wal"):
        file.with_name(file.name + end).touch()
    own = folder / "own.sqlite"
    own.touch(0o600)
    make_private(folder, [file, own, folder / "absent"])
    assert modes_of(folder) == {
        "state": 0o700, "jobs.sqlite": 0o600, "jobs.sqlite-wal": 0o600, "own.sqlite": 0o600
    }  # fmt: skip
    notes = [record.getMessage() for record in caplog.records]
    assert len(notes) == 3
    assert expected_message("judge_service.state_files:its-mode-is-now") in notes[1]
    assert str(file) in notes[1]
    caplog.clear()
    make_private(folder, [file, own])
    assert not caplog.records


def test_a_folder_of_all_users_is_left_to_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o1777)
    make_private(tmp_path, [])
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
    assert "it belongs to all users" in caplog.text


def test_a_private_key_that_all_users_can_read_is_told_but_not_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = tmp_path / "key.pem"
    key.touch(0o640)
    warn_of_readers(key)
    assert not caplog.records
    key.chmod(0o644)
    warn_of_readers(key)
    assert str(key) in caplog.text
    assert key.stat().st_mode & 0o777 == 0o644


def test_a_count_of_a_transaction_that_failed_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        watch = DatabaseWatch("", path)
        watch.begin(file.execute)
        with pytest.raises(ValueError, match="odd"), watch.transaction(file):
            raise ValueError("odd")
        with watch.transaction(file):
            pass
        file.execute("UPDATE hallujudge_state SET writes = 0")
        with pytest.raises(DatabaseLostError, match="older state"), watch.transaction(file):
            pass


def test_what_is_below_a_file_or_a_loop_of_links_is_left_to_those_who_open_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for folder in (tmp_path / "file" / "x", tmp_path / "loop"):
        make_private(folder, [folder / "jobs.sqlite"])
    assert caplog.text == ""
