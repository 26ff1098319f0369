"""Databases of jobs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hallujudge.judge_service.jobs.database import Database
from hallujudge.judge_service.jobs.job_progress import JobProgress

__all__ = ["jobs_address", "states"]


@pytest.fixture
def jobs_address(tmp_path: Path) -> str:
    """The address of an empty database."""
    return str(tmp_path / "jobs.sqlite")


def states(address: str) -> dict[str, int]:
    """Return how many jobs a database has in each state that some have."""
    with closing(Database(address)) as database:
        return JobProgress(database).counts()
