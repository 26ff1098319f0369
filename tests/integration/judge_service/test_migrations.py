"""Databases of an older release are brought to this one's format, as a whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from hallujudge.judge_service.access import spending
from hallujudge.judge_service.errors import HallujudgeError
from hallujudge.judge_service.jobs import database
from hallujudge.judge_service.llm import cache_file
from hallujudge.judge_service.state_files import NewerFormatError, migrate

_KINDS: dict[str, tuple[ModuleType, str, Callable[[Path], object]]] = {
    "answers": (
        cache_file,
        "CACHE_FORMAT",
        lambda path: cache_file.CacheFile(path, busy_seconds=1),
    ),
    "spending": (spending, "SPENDING_FORMAT", spending.Ledger),
    "hallujudge_jobs": (database, "SCHEMA_VERSION", lambda path: database.Database(str(path))),
}


def _open(table: str, path: Path) -> None:
    opened = _KINDS[table][2](path)
    opened.close()  # type: ignore[attr-defined]  # all three have it


def _found(path: Path, table: str) -> tuple[int, set[str]]:
    """Return the format of a file, and the columns of a table."""
    number = "SELECT version FROM hallujudge_jobs_version"
    with closing(sqlite3.connect(path)) as file:
        query = number if table == "hallujudge_jobs" else "PRAGMA user_version"
        columns = file.execute(f"PRAGMA table_info({table})").fetchall()
        return file.execute(query).fetchone()[0], {column[1] for column in columns}


@pytest.fixture(params=_KINDS)
def table(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(table: str, tmp_path: Path) -> Path:
    """A file of this release."""
    path = tmp_path / "old.sqlite"
    _open(table, path)
    return path


def _add_format(monkeypatch: pytest.MonkeyPatch, table: str, *statements: str) -> None:
    """Let the installed release have another format, which these statements lead to."""
    module, name, _ = _KINDS[table]
    now = getattr(module, name)
    monkeypatch.setattr(module, name, now + 1)
    monkeypatch.setattr(module, "MIGRATIONS", {now + 1: statements})


def test_an_older_file_is_migrated(table: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, columns = _found(path, table)
    _add_format(monkeypatch, table, f"ALTER TABLE {table} ADD COLUMN more TEXT")
    _open(table, path)
    assert _found(path, table) == (now + 1, {*columns, "more"})
    _open(table, path)


def test_a_migration_that_fails_changes_nothing(
    table: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _found(path, table)
    _add_format(
        monkeypatch, table, f"ALTER TABLE {table} ADD COLUMN more TEXT", "ALTER TABLE nothing"
    )
    with pytest.raises(HallujudgeError):
        _open(table, path)
    assert _found(path, table) == before


def test_a_newer_file_is_refused(table: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, _ = _KINDS[table]
    monkeypatch.setattr(module, name, 0)
    with pytest.raises(HallujudgeError, match="update hallujudge"):
        _open(table, path)


def test_formats_are_passed_in_order() -> None:
    done: list[str] = []
    migrate(done.append, 1, 3, {2: ("a", "b"), 3: ("c",), 4: ("d",)})
    assert done == ["a", "b", "c"]
    migrate(done.append, 3, 3, {})
    assert done == ["a", "b", "c"]
    with pytest.raises(NewerFormatError, match=r"format 4; this release reads up to 3"):
        migrate(done.append, 4, 3, {})
