"""What the runner of jobs reads from the database and writes to it. Every method blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from .pages import fitting
from .rows import WHOLE, job_of
from .tables import items as items_table
from .tables import jobs as jobs_table
from .values import FINISHED, Answer, Job, JobState, Problem

if TYPE_CHECKING:
    from .database import Database

__all__ = ["JobProgress"]

_FINISHED = [state.value for state in FINISHED]
_CANDIDATES = 1000
_SECONDS_OF_DAY = 86_400.0
_PAGE = 500
# A reason of the server's own table, and its words, as long as a status may carry them.
_DETAIL_CHARS = 1000


class JobProgress:
    """Progress of the jobs of all owners.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self) -> list[Job]:
        """Return the jobs that are queued, or were running when a server stopped."""
        chosen = jobs_table.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
        query = sa.select(*WHOLE).where(chosen).order_by(jobs_table.c.number).limit(_CANDIDATES)
        with self._database.reading() as connection:
            return [job_of(row) for row in connection.execute(query)]

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
        return self._change(number, {"state": JobState.RUNNING.value, **_told(Problem())})

    def unanswered(
        self, number: int, after: int, *, count: int, max_bytes: int
    ) -> list[tuple[int, bytes]]:
        """Return items without a result, with their positions.

        Args:
            number: The job.
            after: Only items after this position.
            count: Most items.
            max_bytes: Most bytes; at least one item is returned anyway.
        """
        chosen = (
            (items_table.c.job == number)
            & (items_table.c.position > after)
            & items_table.c.result.is_(None)
        )
        order = items_table.c.position
        size = sa.func.length(items_table.c.item)
        sizes = sa.select(size).where(chosen).order_by(order).limit(count)
        rows = sa.select(order, items_table.c.item).where(chosen).order_by(order)
        with self._database.reading() as connection:
            fit = fitting(connection.scalars(sizes), max_bytes)
            return [(row.position, bytes(row.item)) for row in connection.execute(rows.limit(fit))]

    def store(self, number: int, answers: Sequence[Answer]) -> bool:
        """Store results with their outcomes; return whether the job still runs.

        A result that is stored already stays as it is. Results that were paid for are stored even
        if the job was cancelled meanwhile.
        """
        with self._database.writing() as connection:
            mine = jobs_table.c.number == number
            state = connection.scalar(sa.select(jobs_table.c.state).where(mine).with_for_update())
            if state is None:
                return False
            new = [answer for answer in answers if _stored(connection, number, answer)]
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

    def results(self, number: int) -> Iterator[list[bytes]]:
        """Yield all results of a job in pages, in the order of its items."""
        after = -1
        while page := self._results(number, after):
            yield [bytes(row.result) for row in page]
            after = page[-1].position

    def finish(self, number: int, report: bytes, now: float) -> bool:
        """Note that a job is done; return False if it was cancelled."""
        return self._change(
            number,
            {"state": JobState.DONE.value, "report": report, **_ended(now), **_told(Problem())},
        )

    def fail(self, number: int, problem: Problem, now: float) -> bool:
        """Note that a job can't go on."""
        return self._change(
            number, {"state": JobState.FAILED.value, **_ended(now), **_told(problem)}
        )

    def wait(self, number: int, problem: Problem) -> bool:
        """Note why a job waits; it is queued again."""
        return self._change(number, {"state": JobState.QUEUED.value, **_told(problem)})

    def delete_old(self, now: float, days: float) -> int:
        """Delete jobs that ended, or that got no more items, so many days ago."""
        ended = jobs_table.c.state.in_([*_FINISHED, JobState.OPEN.value])
        old = jobs_table.c.touched_at < now - days * _SECONDS_OF_DAY
        with self._database.writing() as connection:
            return connection.execute(jobs_table.delete().where(ended & old)).rowcount

    def _results(self, number: int, after: int) -> list[sa.Row[tuple[int, bytes]]]:
        chosen = (items_table.c.job == number) & (items_table.c.position > after)
        columns = (items_table.c.position, items_table.c.result)
        query = sa.select(*columns).where(chosen).order_by(items_table.c.position).limit(_PAGE)
        with self._database.reading() as connection:
            return list(connection.execute(query))

    def _change(self, number: int, values: dict[str, object]) -> bool:
        """Change a job that is not finished; return whether there is one."""
        open_still = jobs_table.c.state.not_in(_FINISHED)
        query = jobs_table.update().where(jobs_table.c.number == number, open_still)
        with self._database.writing() as connection:
            return connection.execute(query.values(**values)).rowcount == 1


def _stored(connection: sa.Connection, number: int, answer: Answer) -> bool:
    """Store one result, unless there is one."""
    chosen: Iterable[sa.ColumnElement[bool]] = (
        items_table.c.job == number,
        items_table.c.position == answer.position,
        items_table.c.result.is_(None),
    )
    values = {"scored": answer.scored, "reason": answer.reason, "result": answer.result}
    return connection.execute(items_table.update().where(*chosen).values(**values)).rowcount == 1


def _ended(now: float) -> dict[str, object]:
    return {"touched_at": now, "finished_at": now}


def _told(problem: Problem) -> dict[str, object]:
    # PostgreSQL keeps no zero characters in texts.
    detail = problem.detail.replace("\0", " ")[:_DETAIL_CHARS]
    return {"problem": problem.reason, "problem_detail": detail}
