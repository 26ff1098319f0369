"""Jobs and items in the database, as callers see them. Every method blocks and is atomic."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

from hallujudge.metrics.framework.tally import cluster_key

from ..engine.streams import repeated_id
from ..errors import InvalidInputError, NotFoundError, OverloadedError
from ..settings.server_settings import JobSettings
from . import FINISHED, Job, JobDetails, JobState, NewItem, NewJob, ResultPage, StoredResult
from .database import LISTED, WHOLE, Database, fitting, job_of, marks

# SQLite takes 32,766 values in one statement.
_KEYS = 1000


class JobStore:
    """Jobs of callers. A job of another caller is absent.

    Args:
        database: The database.
        limits: Limits of jobs.
    """

    def __init__(self, database: Database, limits: JobSettings) -> None:
        self._database = database
        self._limits = limits

    def find(self, owner: str, request_id: str) -> Job | None:
        """Return the job that a request created; None if there is none."""
        with self._database.reading() as connection:
            return _found(connection, "owner = ? AND request_id = ?", owner, request_id)

    def create(
        self, new: NewJob, header: bytes, items: Sequence[NewItem], *, more: bool, now: float
    ) -> Job:
        """Create a job with its first items, or return the one that the request created before.

        Args:
            new: The job.
            header: Its report of no items.
            items: Its first items.
            more: Whether more items will be added.
            now: Seconds since 1970.

        Raises:
            OverloadedError: The caller has too many jobs, or the disk is full.
            InvalidInputError: There are too many items, or too large ones.
        """
        try:
            with self._database.writing() as connection:
                self._check_count(connection, new.owner)
                values = _fresh(new, header, now)
                names, places = ", ".join(values), marks(len(values))
                connection.execute(
                    f"INSERT INTO hallujudge_jobs ({names}) VALUES {places}",
                    tuple(values.values()),
                )
                job = _owned(connection, new.owner, values["id"])
                return self._added(connection, job, job.items, items, more=more, now=now)
        except sqlite3.IntegrityError:
            # The same request, sent twice at the same time.
            known = self.find(new.owner, new.request_id)
            if known is None:
                raise
            return known

    def check_repeated(self, job: Job, items: Sequence[NewItem], *, more: bool) -> None:
        """Refuse a request that has the request id of a job, but other items.

        Args:
            job: The job that the request id created.
            items: The first items of the request.
            more: Whether more items will be added.

        Raises:
            InvalidInputError: The job has other items.
        """
        with self._database.reading() as connection:
            _check_same(connection, job, 0, items)
        too_few = not more and len(items) < job.items
        if too_few or (job.state is not JobState.OPEN and len(items) > job.items):
            raise _differs(
                f"request_id {job.request_id[:80]!r} created job {job.id} with {job.items} items, "
                f"not {len(items)}"
            )

    def add(
        self,
        owner: str,
        job_id: str,
        position: int,
        items: Sequence[NewItem],
        *,
        more: bool,
        now: float,
    ) -> Job:
        """Add items to an open job; those that it has already are ignored.

        Args:
            owner: The caller.
            job_id: The job.
            position: Position of the first item.
            items: The items.
            more: Whether more items will be added.
            now: Seconds since 1970.

        Raises:
            NotFoundError: The caller has no such job.
            InvalidInputError: Items are missing before the position, there are too many, the job
                has others in their place, or a new one has the id of another.
        """
        with self._database.writing() as connection:
            job = _owned(connection, owner, job_id)
            if position > job.items:
                raise InvalidInputError(
                    f"position is {position}, but job {job.id} has {job.items} items; send the "
                    f"items from position {job.items} on"
                )
            _check_same(connection, job, position, items)
            if job.state is not JobState.OPEN:
                return _unless_more(job, position + len(items))
            return self._added(connection, job, position, items, more=more, now=now)

    def get(self, owner: str, job_id: str) -> JobDetails:
        """Return a job.

        Raises:
            NotFoundError: The caller has no such job.
        """
        with self._database.reading() as connection:
            job = _owned(connection, owner, job_id)
            header, note = connection.execute(
                "SELECT header, note FROM hallujudge_jobs WHERE number = ?", (job.number,)
            ).fetchone()
        return JobDetails(job=job, header=header, note=note)

    def list(self, owner: str | None, count: int, before: int | None = None) -> list[Job]:
        """Return the newest jobs of a caller, without their specs.

        Args:
            owner: The caller; None for the jobs of all callers.
            count: Most jobs.
            before: Number of the job after the first one; None to start at the newest.
        """
        query = (
            f"SELECT {LISTED} FROM hallujudge_jobs WHERE (?1 IS NULL OR owner = ?1)"
            " AND (?2 IS NULL OR number < ?2) ORDER BY number DESC LIMIT ?3"
        )
        with self._database.reading() as connection:
            return list(map(job_of, connection.execute(query, (owner, before, count))))

    def cancel(self, owner: str | None, job_id: str, *, now: float) -> Job:
        """Cancel a job, unless it is finished.

        Args:
            owner: The caller; None for a job of any caller.
            job_id: The job.
            now: Seconds since 1970.

        Raises:
            NotFoundError: The caller has no such job.
        """
        with self._database.writing() as connection:
            job = _owned(connection, owner, job_id)
            if job.state in FINISHED:
                return job
            ended = {"state": JobState.CANCELLED.value, "touched_at": now, "finished_at": now}
            return _updated(connection, job, ended)

    def delete(self, owner: str, job_id: str) -> None:
        """Delete a finished job with its items and results.

        Raises:
            NotFoundError: The caller has no such job.
            InvalidInputError: The job is not finished.
        """
        with self._database.writing() as connection:
            job = _owned(connection, owner, job_id)
            if job.state not in FINISHED:
                raise InvalidInputError(
                    f"job {job.id} is {job.state.value}; cancel it before it is deleted",
                    reason="JOB_NOT_FINISHED",
                )
            connection.execute("DELETE FROM hallujudge_jobs WHERE number = ?", (job.number,))

    def results(
        self,
        owner: str,
        job_id: str,
        position: int,
        *,
        count: int,
        max_bytes: int,
        with_items: bool,
    ) -> ResultPage:
        """Return results of a job from a position on, up to the first item without one.

        Args:
            owner: The caller.
            job_id: The job.
            position: Position of the first item.
            count: Most results.
            max_bytes: Most bytes; the page has at least one result anyway.
            with_items: Whether items are returned too.

        Raises:
            NotFoundError: The caller has no such job.
        """
        # An item without a result has no size: a sum with NULL is NULL.
        size = "length(result) + length(item)" if with_items else "length(result)"
        page = (
            "SELECT {} FROM hallujudge_job_items WHERE job = ? AND position >= ?"
            " ORDER BY position LIMIT ?"
        )
        with self._database.reading() as connection:
            job = _owned(connection, owner, job_id)
            # Sizes first: a page of large items must not fill the memory.
            sizes = connection.execute(page.format(size), (job.number, position, count))
            fit = fitting((row[0] for row in sizes), max_bytes)
            columns = "result, item" if with_items else "result, NULL"
            rows = connection.execute(page.format(columns), (job.number, position, fit))
            found = [StoredResult(result=result, item=item) for result, item in rows]
        end = position + len(found)
        last = end >= job.items and job.state is not JobState.OPEN
        return ResultPage(results=found, next_position=end, last=last)

    def report(self, owner: str, job_id: str) -> bytes:
        """Return the report of a job.

        Raises:
            NotFoundError: The caller has no such job.
            InvalidInputError: The job is not done.
        """
        with self._database.reading() as connection:
            job = _owned(connection, owner, job_id)
            [content] = connection.execute(
                "SELECT report FROM hallujudge_jobs WHERE number = ?", (job.number,)
            ).fetchone()
        if job.state is not JobState.DONE or content is None:
            raise InvalidInputError(
                f"job {job.id} is {job.state.value} and has no report; {job.answered} of "
                f"{job.items} items are answered",
                reason="JOB_NOT_FINISHED",
            )
        return cast(bytes, content)

    def _check_count(self, connection: sqlite3.Connection, owner: str) -> None:
        [count] = connection.execute(
            "SELECT count(*) FROM hallujudge_jobs WHERE owner = ?", (owner,)
        ).fetchone()
        if count >= self._limits.per_owner:
            raise OverloadedError(
                f"the server keeps {count} jobs for you, as many as it may (jobs.per_owner); "
                "delete some that are finished",
                reason="JOB_LIMIT",
                metadata={"limit": str(self._limits.per_owner)},
            )

    def _added(
        self,
        connection: sqlite3.Connection,
        job: Job,
        position: int,
        items: Sequence[NewItem],
        *,
        more: bool,
        now: float,
    ) -> Job:
        # Those before were sent again by a client that lost the answer, and were compared already.
        new = items[job.items - position :]
        count, size = job.items + len(new), job.bytes + sum(len(item.content) for item in new)
        self._check_size(count, size)
        _keep_ids(connection, job, new, more=more)
        connection.executemany(
            "INSERT INTO hallujudge_job_items (job, position, item) VALUES (?, ?, ?)",
            [(job.number, place, item.content) for place, item in enumerate(new, job.items)],
        )
        state = (JobState.OPEN if more else JobState.QUEUED).value
        changed = {"items": count, "bytes": size, "state": state, "touched_at": now}
        return _updated(connection, job, changed)

    def _check_size(self, count: int, size: int) -> None:
        limits = self._limits
        for name, value, limit in (
            ("jobs.max_items", count, limits.max_items),
            ("jobs.max_bytes", size, limits.max_bytes),
        ):
            if value > limit:
                unit = "items" if name == "jobs.max_items" else "bytes of items"
                raise InvalidInputError(
                    f"the job would have {value} {unit}; a job may have {limit} ({name}). "
                    "Make several jobs of it",
                    reason="JOB_TOO_LARGE",
                    metadata={"limit": str(limit)},
                )


def _fresh(new: NewJob, header: bytes, now: float) -> dict[str, Any]:
    return {
        **asdict(new),
        "id": secrets.token_hex(16),
        "state": JobState.OPEN.value,
        "header": header,
        # A synonym graph in the spec, and the note, take as much room as items do.
        "bytes": len(new.spec) + len(new.note.encode()),
        **dict.fromkeys(("items", "scored", "unscored"), 0),
        **dict.fromkeys(("problem", "problem_detail"), ""),
        **dict.fromkeys(("created_at", "touched_at"), now),
    }


def _found(connection: sqlite3.Connection, chosen: str, *values: object) -> Job | None:
    query = f"SELECT {WHOLE} FROM hallujudge_jobs WHERE {chosen}"
    row = connection.execute(query, values).fetchone()
    return None if row is None else job_of(row)


def _owned(connection: sqlite3.Connection, owner: str | None, job_id: str) -> Job:
    job = _found(connection, "id = ?1 AND (?2 IS NULL OR owner = ?2)", job_id, owner)
    if job is None:
        # The same words for a job of another caller: callers do not learn what exists.
        raise NotFoundError(
            f"you have no job {job_id[:40]!r}; list your jobs to see their ids",
            reason="JOB_UNKNOWN",
        )
    return job


def _updated(connection: sqlite3.Connection, job: Job, changed: dict[str, Any]) -> Job:
    names = ", ".join(f"{name} = ?" for name in changed)
    connection.execute(
        f"UPDATE hallujudge_jobs SET {names} WHERE number = ?", (*changed.values(), job.number)
    )
    after = _found(connection, "number = ?", job.number)
    assert after is not None, "a transaction that writes is alone"
    return after


def _check_same(
    connection: sqlite3.Connection, job: Job, position: int, items: Sequence[NewItem]
) -> None:
    """Refuse items that differ from those that a job has at their positions."""
    query = (
        "SELECT position, item FROM hallujudge_job_items"
        " WHERE job = ? AND position >= ? AND position < ?"
    )
    for place, item in connection.execute(query, (job.number, position, position + len(items))):
        if item != items[place - position].content:
            raise _differs(f"job {job.id} has another item at position {place}")


def _keep_ids(
    connection: sqlite3.Connection, job: Job, items: Sequence[NewItem], *, more: bool
) -> None:
    """Refuse new items with the id of an item of an earlier request; keep ids for a later one."""
    places = {_key(item): place for place, item in enumerate(items, job.items)}
    keys = list(places)
    # A job without items has no earlier ids to compare with.
    for at in range(0, len(keys) if job.items else 0, _KEYS):
        some = keys[at : at + _KEYS]
        known = connection.execute(
            'SELECT "key", position FROM hallujudge_job_ids WHERE job = ? AND "key" IN '
            f"{marks(len(some))} LIMIT 1",
            (job.number, *some),
        ).fetchone()
        if known is not None:
            place = places[known["key"]]
            raise repeated_id(items[place - job.items].id, known["position"], place)
    if not more:
        connection.execute("DELETE FROM hallujudge_job_ids WHERE job = ?", (job.number,))
        return
    connection.executemany(
        "INSERT INTO hallujudge_job_ids VALUES (?, ?, ?)",
        [(job.number, key, at) for key, at in places.items()],
    )


def _key(item: NewItem) -> int:
    """Return the key of an item's id; databases have signed integers only."""
    return cluster_key(item.id) - 2**63


def _differs(problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{problem}; choose another request_id for another job", reason="JOB_REQUEST_DIFFERS"
    )


def _unless_more(job: Job, end: int) -> Job:
    """Return a job that takes no more items, if a request repeats what it has."""
    if end <= job.items:
        return job
    raise InvalidInputError(
        f"job {job.id} is {job.state.value} and takes no more items", reason="JOB_NOT_OPEN"
    )
