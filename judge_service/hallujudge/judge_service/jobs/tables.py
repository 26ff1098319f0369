"""The tables of the jobs' database: jobs, their items, and what is known of these."""

from __future__ import annotations

VERSIONS = "CREATE TABLE IF NOT EXISTS hallujudge_jobs_version (version INTEGER PRIMARY KEY)"
"""One row: the version of the other tables."""

_OF_ITEMS = """
    job INTEGER NOT NULL REFERENCES hallujudge_jobs (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    PRIMARY KEY (job, position)
"""

TABLES = (
    # One row for each job.
    """
CREATE TABLE IF NOT EXISTS hallujudge_jobs (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id VARCHAR(40) NOT NULL UNIQUE,
    owner VARCHAR(200) NOT NULL,
    caller TEXT NOT NULL,
    request_id VARCHAR(200) NOT NULL,
    state VARCHAR(20) NOT NULL,
    spec BLOB NOT NULL,
    header BLOB NOT NULL,
    note TEXT NOT NULL,
    report BLOB,
    items BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    scored BIGINT NOT NULL,
    unscored BIGINT NOT NULL,
    problem VARCHAR(60) NOT NULL,
    problem_detail TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    -- When the caller last added items, or the job ended: what retention counts from.
    touched_at DOUBLE NOT NULL,
    finished_at DOUBLE,
    UNIQUE (owner, request_id)
)""",
    "CREATE INDEX IF NOT EXISTS ix_hallujudge_jobs_state ON hallujudge_jobs (state)",
    # One row for each item of a job.
    f"""
CREATE TABLE IF NOT EXISTS hallujudge_job_items (
    item BLOB NOT NULL,
    -- All three are NULL until the item is answered: an unanswered item is never an unscored one.
    scored BOOLEAN,
    reason VARCHAR(60),
    result BLOB,
    {_OF_ITEMS})""",
    # One row for each item of a job that is open: the ids of later items must differ. The key is
    # the 64-bit key of the id, as a signed number.
    """
CREATE TABLE IF NOT EXISTS hallujudge_job_ids (
    job INTEGER NOT NULL REFERENCES hallujudge_jobs (number) ON DELETE CASCADE,
    "key" BIGINT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (job, "key")
) WITHOUT ROWID""",
    # One row for each item that a server works on now, or worked on when it died.
    f"CREATE TABLE IF NOT EXISTS hallujudge_job_flights ({_OF_ITEMS})",
    # One row for each item that was in flight when the server died.
    f"""
CREATE TABLE IF NOT EXISTS hallujudge_job_suspicions (
    -- How many items may be scored together with it, itself included.
    together INTEGER NOT NULL,
    -- While it was scored alone.
    deaths INTEGER NOT NULL,
    -- Whether it was scored alone, without a death.
    survived BOOLEAN NOT NULL,
    {_OF_ITEMS})""",
)
"""The statements that make the tables."""

NAMES = (
    *("number", "id", "owner", "caller", "request_id", "state"),
    *("items", "bytes", "scored", "unscored"),
    *("problem", "problem_detail", "created_at", "finished_at"),
)
"""Columns of a job that are listed, by name."""

LISTED = ", ".join(NAMES)
"""Columns of a job without its spec, which may hold a synonym graph."""

WHOLE = f"{LISTED}, spec"
"""Columns of a job."""


def marks(count: int) -> str:
    """Return the marks of so many values of a statement, in brackets."""
    return f"({', '.join('?' * count)})"
