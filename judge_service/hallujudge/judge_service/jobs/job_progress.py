"""Jobs of all owners, as their runner sees them. Every method blocks and is atomic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from . import FINISHED, Answer, Job, JobState, Problem
from .database import fitting, job_of
from .tables import LISTED, WHOLE
from .tables import items as items_table
from .tables import jobs as jobs_table

if TYPE_CHECKING:
    from .database import Database

_FINISHED = [state.value for state in FINISHED]

# Of each owner: the runner chooses among them, and no owner's jobs hide those of another.
_CANDIDATES = 32

_SECONDS_OF_DAY = 86_400.0

# A reason of the server's own table, and its words, as long as a status may carry them.
_DETAIL_CHARS = 1000

_STORE_RESULT = items_table.update().where(
    items_table.c.job == sa.bindparam("of_job"), items_table.c.position == sa.bindparam("at")
)


class JobProgress:
    """Progress of the jobs of all owners.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self) -> list[Job]:
        """Return each owner's oldest jobs that are queued or running, without their specs."""
        number, owner = jobs_table.c.number, jobs_table.c.owner
        chosen = jobs_table.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
        rank = sa.func.row_number().over(partition_by=owner, order_by=number).label("rank")
        ranked = sa.select(*LISTED, rank).where(chosen).subquery()
        oldest = sa.select(ranked).where(ranked.c.rank <= _CANDIDATES).order_by(ranked.c.number)
        with self._database.reading() as connection:
            return [job_of(row) for row in connection.execute(oldest)]

    def job(self, number: int) -> Job | None:
        """Return a job with its spec; None if it was deleted."""
        query = sa.select(*WHOLE).where(jobs_table.c.number == number)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else job_of(row)

    def counts(self) -> dict[str, int]:
        """Return how many jobs there are in each state that some have."""
        state = jobs_table.c.state
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(state, sa.func.count()).group_by(state))
            return {row[0]: row[1] for row in rows}

    def header(self, number: int) -> bytes:
        """Return a job's report of no items."""
        query = sa.select(jobs_table.c.header).where(jobs_table.c.number == number)
        with self._database.reading() as connection:
            return bytes(connection.execute(query).scalar_one())

    def begin(self, number: int) -> bool:
        """Note that a job runs; return False if it was cancelled."""
        return self.note(number, Problem())

    def chunk(
        self, number: int, after: int, *, answered: bool, count: int, max_bytes: int
    ) -> list[tuple[int, bytes]]:
        """Return the next items without a result, or the next results, with their positions.

        Args:
            number: The job.
            after: Only items after this position.
            answered: Whether results are returned.
            count: Most rows.
            max_bytes: Most bytes; at least one row is returned anyway.
        """
        order, result = items_table.c.position, items_table.c.result
        content = result if answered else items_table.c.item
        chosen = (
            (items_table.c.job == number)
            & (order > after)
            & (result.is_not(None) if answered else result.is_(None))
        )
        sizes = sa.select(sa.func.length(content)).where(chosen).order_by(order).limit(count)
        rows = sa.select(order, content).where(chosen).order_by(order)
        with self._database.reading() as connection:
            fit = fitting(connection.scalars(sizes), max_bytes)
            return [(row[0], bytes(row[1])) for row in connection.execute(rows.limit(fit))]

    def store(self, number: int, answers: Sequence[Answer]) -> bool:
        """Store results with their outcomes; return whether the job still runs.

        A result that is stored already stays as it is. Results that were paid for are stored even
        if the job was cancelled meanwhile.
        """
        with self._database.writing() as connection:
            mine = jobs_table.c.number == number
            state = connection.scalar(sa.select(jobs_table.c.state).where(mine))
            if state is None:
                return False
            new = _stored(connection, number, answers)
            scored = sum(answer.scored for answer in new)
            connection.execute(
                jobs_table.update()
                .where(mine)
                .values(
                    scored=jobs_table.c.scored + scored,
                    unscored=jobs_table.c.unscored + len(new) - scored,
                )
            )
        return JobState(state) not in FINISHED

    def finish(self, number: int, report: bytes, now: float) -> bool:
        """Note that a job is done; return False if it was cancelled."""
        return self._change(
            number,
            {
                "state": JobState.DONE.value,
                "report": report,
                **_ended(now),
                **_problem_row(Problem()),
            },
        )

    def fail(self, number: int, problem: Problem, now: float) -> bool:
        """Note that a job can't go on."""
        return self._change(
            number, {"state": JobState.FAILED.value, **_ended(now), **_problem_row(problem)}
        )

    def note(self, number: int, problem: Problem) -> bool:
        """Note what slows a running job down; return False if it was cancelled."""
        return self._change(number, {"state": JobState.RUNNING.value, **_problem_row(problem)})

    def wait(self, number: int, problem: Problem) -> bool:
        """Note why a job waits; it is queued again."""
        return self._change(number, {"state": JobState.QUEUED.value, **_problem_row(problem)})

    def delete_old(self, now: float, days: float) -> int:
        """Delete jobs that ended, or that got no more items, so many days ago."""
        ended = jobs_table.c.state.in_([*_FINISHED, JobState.OPEN.value])
        old = jobs_table.c.touched_at < now - days * _SECONDS_OF_DAY
        with self._database.writing() as connection:
            return connection.execute(jobs_table.delete().where(ended & old)).rowcount

    def _change(self, number: int, values: dict[str, object]) -> bool:
        """Change a job that is not finished; return whether there is one."""
        open_still = jobs_table.c.state.not_in(_FINISHED)
        query = jobs_table.update().where(jobs_table.c.number == number, open_still)
        with self._database.writing() as connection:
            return connection.execute(query.values(**values)).rowcount == 1


def _stored(connection: sa.Connection, number: int, answers: Sequence[Answer]) -> list[Answer]:
    """Store the results of items that have none yet, and return these."""
    position = items_table.c.position
    free = sa.select(position).where(
        items_table.c.job == number,
        position.in_([answer.position for answer in answers]),
        items_table.c.result.is_(None),
    )
    unanswered = set(connection.scalars(free))
    new = [answer for answer in answers if answer.position in unanswered]
    if new:
        # One statement for all rows: one for each took half of a job's processor time (CHAIR).
        rows = [
            {
                "of_job": number,
                "at": answer.position,
                "scored": answer.scored,
                "reason": answer.reason,
                "result": answer.result,
            }
            for answer in new
        ]
        connection.execute(_STORE_RESULT, rows)
    return new


def _ended(now: float) -> dict[str, object]:
    return {"touched_at": now, "finished_at": now}


def _problem_row(problem: Problem) -> dict[str, object]:
    return {"problem": problem.reason, "problem_detail": problem.detail[:_DETAIL_CHARS]}
