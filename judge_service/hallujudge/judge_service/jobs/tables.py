"""Tables of the jobs' database, the same for SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = ["SCHEMA_VERSION", "items", "jobs", "metadata", "versions"]

SCHEMA_VERSION = 1
"""Raised when older releases could misread what newer ones write."""

metadata = MetaData()
"""All tables."""

# SQLite numbers rows by itself only in a column of the type INTEGER.
_Number = BigInteger().with_variant(Integer, "sqlite")

versions = Table("hallujudge_jobs_version", metadata, Column("version", Integer, primary_key=True))
"""One row: the version of these tables."""

jobs = Table(
    "hallujudge_jobs",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("id", String(40), nullable=False, unique=True),
    Column("owner", String(200), nullable=False),
    Column("caller", Text, nullable=False),
    Column("request_id", String(200), nullable=False),
    Column("state", String(20), nullable=False, index=True),
    Column("spec", LargeBinary, nullable=False),
    Column("header", LargeBinary, nullable=False),
    Column("note", Text, nullable=False),
    Column("report", LargeBinary),
    Column("items", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("scored", BigInteger, nullable=False),
    Column("unscored", BigInteger, nullable=False),
    Column("problem", String(60), nullable=False),
    Column("problem_detail", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    # When the caller last added items, or the job ended: what retention counts from.
    Column("touched_at", Double, nullable=False),
    Column("finished_at", Double),
    UniqueConstraint("owner", "request_id"),
    sqlite_autoincrement=True,
)
"""One row for each job."""

items = Table(
    "hallujudge_job_items",
    metadata,
    Column("job", _Number, ForeignKey(jobs.c.number, ondelete="CASCADE"), primary_key=True),
    Column("position", _Number, primary_key=True),
    Column("item", LargeBinary, nullable=False),
    # All three are NULL until the item is answered: an unanswered item is never an unscored one.
    Column("scored", Boolean),
    Column("reason", String(60)),
    Column("result", LargeBinary),
)
"""One row for each item of a job."""
