"""Which items of a job may be what ended the server, and which of them are scored next.

What was in flight at a death is suspect. Suspects are scored before the job's other items, in
groups of half as many as died together. One that was alone at a death is compared with others that
are scored alone, until another death of it would prove that it is the cause.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Set
from functools import partial
from typing import TYPE_CHECKING

from ..suspicion import half, is_proven
from . import Death, JobState, Trial
from .database import marks

if TYPE_CHECKING:
    from .database import Database

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


class JobSuspicions:
    """Items in flight and suspects of the jobs of all owners. Every method blocks and is atomic.

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
