"""The tables of the jobs' database: jobs, their items, and what is known of these."""

from __future__ import annotations

from typing import Any

from ..errors import MissingExtraError

try:
    import sqlalchemy as sa
except ModuleNotFoundError as err:
    raise MissingExtraError.of("a database of jobs", "jobs") from err

metadata = sa.MetaData()
"""All tables."""

# SQLite numbers rows by itself only in a column of the type INTEGER, which holds 64 bits.
_Number = sa.Integer
versions = sa.Table(
    "hallujudge_jobs_version", metadata, sa.Column("version", sa.Integer, primary_key=True)
)
"""One row: the version of these tables."""

jobs = sa.Table(
    "hallujudge_jobs",
    metadata,
    sa.Column("number", _Number, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(40), nullable=False, unique=True),
    sa.Column("owner", sa.String(200), nullable=False),
    sa.Column("caller", sa.Text, nullable=False),
    sa.Column("request_id", sa.String(200), nullable=False),
    sa.Column("state", sa.String(20), nullable=False, index=True),
    sa.Column("spec", sa.LargeBinary, nullable=False),
    sa.Column("header", sa.LargeBinary, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("report", sa.LargeBinary),
    sa.Column("items", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("scored", sa.BigInteger, nullable=False),
    sa.Column("unscored", sa.BigInteger, nullable=False),
    sa.Column("problem", sa.String(60), nullable=False),
    sa.Column("problem_detail", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    # When the caller last added items, or the job ended: what retention counts from.
    sa.Column("touched_at", sa.Double, nullable=False),
    sa.Column("finished_at", sa.Double),
    sa.UniqueConstraint("owner", "request_id"),
    sqlite_autoincrement=True,
)
"""One row for each job."""


def _of_items(name: str, *columns: sa.Column[Any]) -> sa.Table:
    job = sa.ForeignKey(jobs.c.number, ondelete="CASCADE")
    place = sa.Column("position", _Number, primary_key=True)
    return sa.Table(
        name, metadata, sa.Column("job", _Number, job, primary_key=True), place, *columns
    )


items = _of_items(
    "hallujudge_job_items",
    sa.Column("item", sa.LargeBinary, nullable=False),
    # All three are NULL until the item is answered: an unanswered item is never an unscored one.
    sa.Column("scored", sa.Boolean),
    sa.Column("reason", sa.String(60)),
    sa.Column("result", sa.LargeBinary),
)
"""One row for each item of a job."""

item_ids = sa.Table(
    "hallujudge_job_ids",
    metadata,
    sa.Column("job", _Number, sa.ForeignKey(jobs.c.number, ondelete="CASCADE"), primary_key=True),
    # The 64-bit key of the id, as a signed number.
    sa.Column("key", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""One row for each item of a job that is open: the ids of later items must differ."""

flights = _of_items("hallujudge_job_flights")
"""One row for each item that a server works on now, or worked on when it died."""

suspicions = _of_items(
    "hallujudge_job_suspicions",
    # How many items may be scored together with it, itself included.
    sa.Column("together", sa.Integer, nullable=False),
    # While it was scored alone.
    sa.Column("deaths", sa.Integer, nullable=False),
    # Whether it was scored alone, without a death.
    sa.Column("survived", sa.Boolean, nullable=False),
)
"""One row for each item that was in flight when the server died."""

NAMES = (
    *("number", "id", "owner", "caller", "request_id", "state"),
    *("items", "bytes", "scored", "unscored"),
    *("problem", "problem_detail", "created_at", "finished_at"),
)
"""Columns of a job that are listed, by name."""

LISTED = tuple(jobs.c[name] for name in NAMES)
"""Columns of a job without its spec, which may hold a synonym graph."""

WHOLE: tuple[sa.Column[Any], ...] = (*LISTED, jobs.c.spec)
"""Columns of a job."""
