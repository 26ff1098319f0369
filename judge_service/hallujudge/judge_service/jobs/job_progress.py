"""The progress of jobs: in the database, who waits for it, and items that may end the server."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from typing import cast

from ..flights import half, is_proven
from ..observe import JobsActivity
from . import FINISHED, Answer, Death, Job, JobState, Problem, Trial
from .database import LISTED, WHOLE, Database, fitting, job_of, marks

_FINISHED = [state.value for state in FINISHED]

# Of each owner: the runner chooses among them, and no owner's jobs hide those of another.
_CANDIDATES = 32

_SECONDS_OF_DAY = 86_400.0

_UNDER_WAY = (JobState.QUEUED, JobState.RUNNING)

# Counting reads an index of all jobs; metrics are fetched every 15 seconds or so.
_COUNT_SECONDS = 2.0

# A reason of the server's own table, and its words, as long as a status may carry them.
_DETAIL_CHARS = 1000
_SUSPECTS = """
SELECT s.position, s.together, s.deaths FROM hallujudge_job_suspicions s
JOIN hallujudge_job_items i ON i.job = s.job AND i.position = s.position
WHERE i.job = ? AND i.result IS NULL ORDER BY s.deaths, s.together DESC, s.position
"""
_FLOWN = """
SELECT i.position FROM hallujudge_job_flights f
JOIN hallujudge_job_items i ON i.job = f.job AND i.position = f.position
WHERE i.job = ? AND i.result IS NULL
"""
_ADD_SUSPECT = """
INSERT INTO hallujudge_job_suspicions (job, position, together, deaths, survived)
VALUES (?, ?, ?, 0, FALSE)
"""


class JobProgress:
    """Jobs of all owners, as their runner sees them. Every method blocks and is atomic.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self) -> list[Job]:
        """Return each owner's oldest jobs that are queued or running, without their specs."""
        query = (
            f"SELECT {LISTED} FROM (SELECT {LISTED}, row_number() OVER"
            " (PARTITION BY owner ORDER BY number) AS place FROM hallujudge_jobs"
            " WHERE state IN (?, ?)) WHERE place <= ? ORDER BY number"
        )
        values = (JobState.QUEUED.value, JobState.RUNNING.value, _CANDIDATES)
        with self._database.reading() as connection:
            return list(map(job_of, connection.execute(query, values)))

    def job(self, number: int) -> Job | None:
        """Return a job with its spec; None if it was deleted."""
        query = f"SELECT {WHOLE} FROM hallujudge_jobs WHERE number = ?"
        with self._database.reading() as connection:
            row = connection.execute(query, (number,)).fetchone()
        return None if row is None else job_of(row)

    def counts(self) -> dict[str, int]:
        """Return how many jobs there are in each state that some have."""
        query = "SELECT state, count(*) FROM hallujudge_jobs GROUP BY state"
        with self._database.reading() as connection:
            return dict(connection.execute(query).fetchall())

    def header(self, number: int) -> bytes:
        """Return a job's report of no items."""
        query = "SELECT header FROM hallujudge_jobs WHERE number = ?"
        with self._database.reading() as connection:
            return cast(bytes, connection.execute(query, (number,)).fetchone()[0])

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
        content, chosen = ("result", "IS NOT NULL") if answered else ("item", "IS NULL")
        page = (
            f"SELECT {{}} FROM hallujudge_job_items WHERE job = ? AND position > ?"
            f" AND result {chosen} ORDER BY position LIMIT ?"
        )
        with self._database.reading() as connection:
            sizes = connection.execute(page.format(f"length({content})"), (number, after, count))
            fit = fitting((row[0] for row in sizes), max_bytes)
            rows = connection.execute(page.format(f"position, {content}"), (number, after, fit))
            return [(position, content) for position, content in rows]

    def store(self, number: int, answers: Sequence[Answer]) -> bool:
        """Store results with their outcomes; return whether the job still runs.

        A result that is stored already stays as it is. Results that were paid for are stored even
        if the job was cancelled meanwhile.
        """
        with self._database.writing() as connection:
            row = connection.execute(
                "SELECT state FROM hallujudge_jobs WHERE number = ?", (number,)
            ).fetchone()
            if row is None:
                return False
            new = _stored(connection, number, answers)
            scored = sum(answer.scored for answer in new)
            connection.execute(
                "UPDATE hallujudge_jobs SET scored = scored + ?, unscored = unscored + ?"
                " WHERE number = ?",
                (scored, len(new) - scored, number),
            )
        return JobState(row["state"]) not in FINISHED

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
        states = (*_FINISHED, JobState.OPEN.value)
        query = (
            f"DELETE FROM hallujudge_jobs WHERE state IN {marks(len(states))} AND touched_at < ?"
        )
        with self._database.writing() as connection:
            return connection.execute(query, (*states, now - days * _SECONDS_OF_DAY)).rowcount

    def _change(self, number: int, values: dict[str, object]) -> bool:
        """Change a job that is not finished; return whether there is one."""
        query = (
            f"UPDATE hallujudge_jobs SET {', '.join(f'{name} = ?' for name in values)}"
            f" WHERE number = ? AND state NOT IN {marks(len(_FINISHED))}"
        )
        with self._database.writing() as connection:
            return connection.execute(query, (*values.values(), number, *_FINISHED)).rowcount == 1


def _stored(connection: sqlite3.Connection, number: int, answers: Sequence[Answer]) -> list[Answer]:
    """Store the results of items that have none yet, and return these."""
    free = connection.execute(
        "SELECT position FROM hallujudge_job_items WHERE job = ? AND result IS NULL"
        f" AND position IN {marks(len(answers))}",
        (number, *(answer.position for answer in answers)),
    )
    unanswered = {row[0] for row in free}
    new = [answer for answer in answers if answer.position in unanswered]
    # One statement for all rows: one for each took half of a job's processor time (CHAIR).
    connection.executemany(
        "UPDATE hallujudge_job_items SET scored = ?, reason = ?, result = ?"
        " WHERE job = ? AND position = ?",
        [(one.scored, one.reason, one.result, number, one.position) for one in new],
    )
    return new


def _ended(now: float) -> dict[str, object]:
    return {"touched_at": now, "finished_at": now}


def _problem_row(problem: Problem) -> dict[str, object]:
    return {"problem": problem.reason, "problem_detail": problem.detail[:_DETAIL_CHARS]}


class Activity:
    """Follows the jobs of a database. It may be read from another thread.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: Mapping[str, int] = {}
        self._counted_at = float("-inf")
        self._moved_at: float | None = None

    @property
    def state(self) -> JobsActivity:
        """What metrics show."""
        moved_at = self._moved_at
        still = 0.0 if moved_at is None else self._clock() - moved_at
        return JobsActivity(counts=self._counts, still_seconds=still)

    @property
    def count_is_due(self) -> bool:
        """Whether the jobs were last counted some time ago."""
        return self._clock() - self._counted_at >= _COUNT_SECONDS

    def begin(self) -> None:
        """Note that there may be jobs under way; whether they move shows from now on."""
        if self._moved_at is None:
            self.moved()

    def moved(self) -> None:
        """Note that a job got results or ended, or that another server runs the jobs."""
        self._moved_at = self._clock()

    def counted(self, counts: Mapping[str, int]) -> None:
        """Note how many jobs there are.

        Args:
            counts: State -> number of jobs, without the states that no job has.
        """
        self._counts = {state.value: counts.get(state.value, 0) for state in JobState}
        self._counted_at = self._clock()
        if not any(self._counts[state.value] for state in _UNDER_WAY):
            self.moved()


class Changes:
    """Wakes the tasks that wait for a change of any job in this process."""

    def __init__(self) -> None:
        self.next = asyncio.Event()
        """The event of the next change; take it before looking at what may change."""

    def notify(self) -> None:
        """Wake all tasks that wait."""
        self.next.set()
        self.next = asyncio.Event()

    async def wait(self, change: asyncio.Event, seconds: float) -> None:
        """Wait for a change, but no longer than this: changes by another server are not notified.

        Args:
            change: From :attr:`next`.
            seconds: The longest wait.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(change.wait(), seconds)


class JobSuspicions:
    """Items in flight and suspects of the jobs of all owners. Every method blocks and is atomic.

    What was in flight at a death of the server is suspect. Suspects are scored before the job's
    other items, in groups of half as many as died together. One that was alone at a death is
    compared with others that are scored alone, until another death of it would prove that it is
    the cause.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def fly(self, number: int, added: Set[int], left: Set[int]) -> None:
        """Note which items of a job are in flight now, and which no longer."""
        with self._database.writing() as connection:
            # Another server may have noted the same: it took the job over for a moment.
            connection.executemany(
                "DELETE FROM hallujudge_job_flights WHERE job = ? AND position = ?",
                [(number, position) for position in sorted(left | added)],
            )
            connection.executemany(
                "INSERT INTO hallujudge_job_flights (job, position) VALUES (?, ?)",
                [(number, position) for position in sorted(added)],
            )

    def land(self, number: int) -> None:
        """Note that no item of a job is in flight: this server begins to score it."""
        with self._database.writing() as connection:
            _forget_flights(connection, number)

    def recover(self, running: Collection[int]) -> list[Death]:
        """Note that a server died while it ran jobs, which are queued again.

        Args:
            running: Jobs that this server runs itself.

        Returns:
            The jobs that it left.
        """
        left = f"state = ? AND number NOT IN {marks(len(running))}"
        values = (JobState.RUNNING.value, *running)
        with self._database.writing() as connection:
            rows = connection.execute(
                f"SELECT number, id FROM hallujudge_jobs WHERE {left}", values
            ).fetchall()
            found = [Death(job_id, _suspect(connection, number)) for number, job_id in rows]
            connection.execute(
                f"UPDATE hallujudge_jobs SET state = ? WHERE {left}",
                (JobState.QUEUED.value, *values),
            )
        return found

    def next_trial(self, number: int) -> Trial | None:
        """Return the suspects that are scored next; None if all have results.

        Items that were alone at a death come last: others go on if the cause is elsewhere.
        """
        with self._database.writing() as connection:
            suspects = connection.execute(_SUSPECTS, (number,)).fetchall()
            if not suspects:
                return None
            first = suspects[0]
            deaths = first["deaths"]
            proof = _proof(connection, number, deaths)
            if deaths and not proof(deaths + 1) and _add_control(connection, number):
                suspects = connection.execute(_SUSPECTS, (number,)).fetchall()
                first = suspects[0]
            alike = [one for one in suspects if one["together"] == first["together"]]
            chosen = [one["position"] for one in alike[: first["together"]]]
            rows = connection.execute(
                "SELECT position, item FROM hallujudge_job_items WHERE job = ?"
                f" AND position IN {marks(len(chosen))} ORDER BY position",
                (number, *chosen),
            )
            items = [(position, item) for position, item in rows]
        return Trial(items, len(suspects), first["deaths"] > 0 and proof(first["deaths"]))

    def survived(self, number: int, position: int) -> None:
        """Note that the server scored an item alone, and lives."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE hallujudge_job_suspicions SET survived = TRUE"
                " WHERE job = ? AND position = ?",
                (number, position),
            )


def _proof(connection: sqlite3.Connection, number: int, own: int) -> Callable[[int], bool]:
    """Return what tells whether so many deaths of an item prove that it is the cause.

    Args:
        connection: The connection.
        number: The job.
        own: How often the item was alone at a death so far.
    """
    deaths, survivors = connection.execute(
        "SELECT coalesce(sum(deaths), 0), count(CASE WHEN survived THEN 1 END)"
        " FROM hallujudge_job_suspicions WHERE job = ?",
        (number,),
    ).fetchone()
    return partial(is_proven, other_deaths=deaths - own, survivors=survivors)


def _suspect(connection: sqlite3.Connection, number: int) -> int:
    """Suspect the items of a job that were in flight at a death; return how many they were."""
    positions = [row[0] for row in connection.execute(_FLOWN, (number,))]
    _forget_flights(connection, number)
    most, alone = half(len(positions)), int(len(positions) == 1)
    connection.executemany(
        f"{_ADD_SUSPECT} ON CONFLICT DO NOTHING",
        [(number, position, most) for position in positions],
    )
    connection.executemany(
        "UPDATE hallujudge_job_suspicions SET together = min(together, ?), deaths = deaths + ?"
        " WHERE job = ? AND position = ?",
        [(most, alone, number, position) for position in positions],
    )
    return len(positions)


def _add_control(connection: sqlite3.Connection, number: int) -> bool:
    """Suspect an item that never was in flight at a death; return whether there was one."""
    free = connection.execute(
        "SELECT position FROM hallujudge_job_items WHERE job = ?1 AND result IS NULL AND position"
        " NOT IN (SELECT position FROM hallujudge_job_suspicions WHERE job = ?1)"
        " ORDER BY position LIMIT 1",
        (number,),
    ).fetchone()
    if free is None:
        return False
    connection.execute(_ADD_SUSPECT, (number, free["position"], 1))
    return True


def _forget_flights(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("DELETE FROM hallujudge_job_flights WHERE job = ?", (number,))
