"""Jobs and items in the database, as callers see them. Every method blocks and is atomic."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from hallujudge.metrics.framework.tally import cluster_key

from ..engine.streams import repeated_id
from ..errors import InvalidInputError, NotFoundError, OverloadedError
from . import (
    FINISHED,
    Job,
    JobDetails,
    JobLimits,
    JobState,
    NewItem,
    NewJob,
    ResultPage,
    StoredResult,
)
from .database import fitting, job_of
from .tables import LISTED, WHOLE
from .tables import item_ids as ids_table
from .tables import items as items_table
from .tables import jobs as jobs_table

if TYPE_CHECKING:
    from .database import Database


# SQLite takes 32,766 values in one statement.
_KEYS = 1000


class JobStore:
    """Jobs of callers. A job of another caller is absent.

    Args:
        database: The database.
        limits: Limits of jobs.
    """

    def __init__(self, database: Database, limits: JobLimits) -> None:
        self._database = database
        self._limits = limits

    def find(self, owner: str, request_id: str) -> Job | None:
        """Return the job that a request created; None if there is none."""
        with self._database.reading() as connection:
            return _found(
                connection, jobs_table.c.owner == owner, jobs_table.c.request_id == request_id
            )

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
                connection.execute(jobs_table.insert().values(**values))
                job = _owned(connection, new.owner, values["id"])
                return self._added(connection, job, job.items, items, more=more, now=now)
        except IntegrityError:
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
            more = (jobs_table.c.header, jobs_table.c.note)
            row = connection.execute(
                sa.select(*more).where(jobs_table.c.number == job.number)
            ).one()
        return JobDetails(job=job, header=row.header, note=row.note)

    def list(self, owner: str | None, count: int, before: int | None = None) -> list[Job]:
        """Return the newest jobs of a caller, without their specs.

        Args:
            owner: The caller; None for the jobs of all callers.
            count: Most jobs.
            before: Number of the job after the first one; None to start at the newest.
        """
        chosen = _of_owner(owner)
        if before is not None:
            chosen &= jobs_table.c.number < before
        order = jobs_table.c.number.desc()
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(*LISTED).where(chosen).order_by(order).limit(count))
            return [job_of(row) for row in rows]

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
            connection.execute(jobs_table.delete().where(jobs_table.c.number == job.number))

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
        columns = [items_table.c.result, *([items_table.c.item] if with_items else [])]
        # An item without a result has no size: a sum with NULL is NULL.
        size = sum(map(sa.func.length, columns), sa.literal(0))
        with self._database.reading() as connection:
            job = _owned(connection, owner, job_id)
            chosen = (items_table.c.job == job.number) & (items_table.c.position >= position)
            # Sizes first: a page of large items must not fill the memory.
            sizes = sa.select(size).where(chosen).order_by(items_table.c.position).limit(count)
            fit = fitting(connection.scalars(sizes), max_bytes)
            rows = sa.select(*columns).where(chosen).order_by(items_table.c.position).limit(fit)
            found = [
                StoredResult(result=bytes(row.result), item=bytes(row.item) if with_items else None)
                for row in connection.execute(rows)
            ]
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
            query = sa.select(jobs_table.c.report).where(jobs_table.c.number == job.number)
            content = connection.scalar(query)
        if job.state is not JobState.DONE or content is None:
            raise InvalidInputError(
                f"job {job.id} is {job.state.value} and has no report; {job.answered} of "
                f"{job.items} items are answered",
                reason="JOB_NOT_FINISHED",
            )
        return bytes(content)

    def _check_count(self, connection: sa.Connection, owner: str) -> None:
        query = sa.select(sa.func.count()).where(jobs_table.c.owner == owner)
        count = connection.scalar(query) or 0
        if count >= self._limits.jobs_per_owner:
            raise OverloadedError(
                f"the server keeps {count} jobs for you, as many as it may (jobs_per_owner); "
                "delete some that are finished",
                reason="JOB_LIMIT",
                metadata={"limit": str(self._limits.jobs_per_owner)},
            )

    def _added(
        self,
        connection: sa.Connection,
        job: Job,
        position: int,
        items: Sequence[NewItem],
        *,
        more: bool,
        now: float,
    ) -> Job:
        new = items[job.items - position :]
        count, size = job.items + len(new), job.bytes + sum(len(item.content) for item in new)
        self._check_size(count, size)
        _keep_ids(connection, job, new, more=more)
        rows = [
            {"job": job.number, "position": place, "item": item.content}
            for place, item in enumerate(new, job.items)
        ]
        if rows:
            connection.execute(items_table.insert(), rows)
        state = (JobState.OPEN if more else JobState.QUEUED).value
        changed = {"items": count, "bytes": size, "state": state, "touched_at": now}
        return _updated(connection, job, changed)

    def _check_size(self, count: int, size: int) -> None:
        limits = self._limits
        for name, value, limit in (
            ("job_max_items", count, limits.max_items),
            ("job_max_bytes", size, limits.max_bytes),
        ):
            if value > limit:
                unit = "items" if name == "job_max_items" else "bytes of items"
                raise InvalidInputError(
                    f"the job would have {value} {unit}; a job may have {limit} ({name}). "
                    "Make several jobs of it",
                    reason="JOB_TOO_LARGE",
                    metadata={"limit": str(limit)},
                )


def _fresh(new: NewJob, header: bytes, now: float) -> dict[str, Any]:
    return {
        "id": secrets.token_hex(16),
        "owner": new.owner,
        "caller": new.caller,
        "request_id": new.request_id,
        "state": JobState.OPEN.value,
        "spec": new.spec,
        "header": header,
        "note": new.note,
        # A synonym graph in the spec, and the note, take as much room as items do.
        "bytes": len(new.spec) + len(new.note.encode()),
        **dict.fromkeys(("items", "scored", "unscored"), 0),
        **dict.fromkeys(("problem", "problem_detail"), ""),
        **dict.fromkeys(("created_at", "touched_at"), now),
    }


def _found(connection: sa.Connection, *chosen: sa.ColumnElement[bool]) -> Job | None:
    row = connection.execute(sa.select(*WHOLE).where(*chosen)).one_or_none()
    return None if row is None else job_of(row)


def _of_owner(owner: str | None) -> sa.ColumnElement[bool]:
    return sa.true() if owner is None else jobs_table.c.owner == owner


def _owned(connection: sa.Connection, owner: str | None, job_id: str) -> Job:
    job = _found(connection, _of_owner(owner), jobs_table.c.id == job_id)
    if job is None:
        # The same words for a job of another caller: callers do not learn what exists.
        raise NotFoundError(
            f"you have no job {job_id[:40]!r}; list your jobs to see their ids",
            reason="JOB_UNKNOWN",
        )
    return job


def _updated(connection: sa.Connection, job: Job, changed: dict[str, Any]) -> Job:
    mine = jobs_table.c.number == job.number
    connection.execute(jobs_table.update().where(mine).values(**changed))
    after = _found(connection, mine)
    assert after is not None, "a transaction that writes is alone"
    return after


def _check_same(
    connection: sa.Connection, job: Job, position: int, items: Sequence[NewItem]
) -> None:
    """Refuse items that differ from those that a job has at their positions."""
    place = items_table.c.position
    query = sa.select(place, items_table.c.item).where(
        items_table.c.job == job.number, place >= position, place < position + len(items)
    )
    for row in connection.execute(query):
        if row.item != items[row.position - position].content:
            raise _differs(f"job {job.id} has another item at position {row.position}")


def _keep_ids(connection: sa.Connection, job: Job, items: Sequence[NewItem], *, more: bool) -> None:
    """Refuse new items with the id of an item of an earlier request; keep ids for a later one."""
    mine = ids_table.c.job == job.number
    places = {_key(item): place for place, item in enumerate(items, job.items)}
    keys = list(places)
    for at in range(0, len(keys) if job.items else 0, _KEYS):
        some = mine & ids_table.c.key.in_(keys[at : at + _KEYS])
        known = connection.execute(sa.select(ids_table).where(some).limit(1)).one_or_none()
        if known is not None:
            place = places[known.key]
            raise repeated_id(items[place - job.items].id, known.position, place)
    if not more:
        connection.execute(ids_table.delete().where(mine))
    elif places:
        rows = [{"job": job.number, "key": key, "position": at} for key, at in places.items()]
        connection.execute(ids_table.insert(), rows)


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
