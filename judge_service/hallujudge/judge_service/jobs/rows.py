"""Rows of the jobs' table as values."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from .tables import jobs
from .values import Job, JobState, Problem

__all__ = ["LISTED", "WHOLE", "job_of"]

_NAMES = (
    *("number", "id", "owner", "caller", "request_id", "state"),
    *("items", "bytes", "scored", "unscored"),
    *("problem", "problem_detail", "created_at", "finished_at"),
)
LISTED = tuple(jobs.c[name] for name in _NAMES)
"""Columns of a job without its spec, which may hold a synonym graph."""
WHOLE: tuple[sa.Column[Any], ...] = (*LISTED, jobs.c.spec)
"""Columns of a job."""


def job_of(row: Any) -> Job:
    """Return the job of a row of :data:`LISTED` or :data:`WHOLE`."""
    values = {name: getattr(row, name) for name in _NAMES if not name.startswith("problem")}
    return Job(
        **values | {"state": JobState(row.state)},
        problem=Problem(reason=row.problem, detail=row.problem_detail),
        spec=bytes(getattr(row, "spec", b"")),
    )
