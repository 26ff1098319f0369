"""Databases of jobs: a file of SQLite, and a real PostgreSQL server that the tests start."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.postgres import PostgresServer, installed_postgres

from hallujudge.judge_service.jobs.database import Database
from hallujudge.judge_service.jobs.job_progress import JobProgress

__all__ = ["ascii_address", "jobs_address", "postgres", "postgres_address", "states"]

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running PostgreSQL server; its processes never run as root."""
    installed = installed_postgres()
    if installed is None:
        pytest.skip("no PostgreSQL server")
    server = PostgresServer(installed)
    server.start()
    yield server
    server.remove()


def postgres_address(server: PostgresServer) -> str:
    """Return the address of an empty schema."""
    name = f"jobs_{next(_numbers)}"
    server.execute(f"CREATE SCHEMA {name};")
    return f"{server.address()}&options=-csearch_path%3D{name}"


def ascii_address(server: PostgresServer) -> str:
    """Return the address of an empty database as a cluster without a locale makes it."""
    name = f"ascii_{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C';")
    return server.address(name)


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
