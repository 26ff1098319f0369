"""Which items of a job may be what ended the server, and which of them are scored next.

What was in flight at a death is suspect. Suspects are scored before the job's other items, in
groups of half as many as died together. One that was alone at a death is compared with others that
are scored alone, until another death of it would prove that it is the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from functools import partial
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ..suspicion import half, is_proven
from . import Death, JobState, Trial
from .tables import flights as flights_table
from .tables import items as items_table
from .tables import jobs as jobs_table
from .tables import suspicions as suspicions_table

if TYPE_CHECKING:
    from .database import Database

_ITEM = items_table.c
_SUSPICION = suspicions_table.c
_SAME_ITEM = (_SUSPICION.job == _ITEM.job) & (_SUSPICION.position == _ITEM.position)


class JobSuspicions:
    """Items in flight and suspects of the jobs of all owners. Every method blocks and is atomic.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def fly(self, number: int, added: Set[int], left: Set[int]) -> None:
        """Note which items of a job are in flight now, and which no longer."""
        mine = flights_table.c.job == number
        with self._database.writing() as connection:
            # Another server may have noted the same: it took the job over for a moment.
            gone = flights_table.c.position.in_(sorted(left | added))
            connection.execute(flights_table.delete().where(mine, gone))
            if added:
                rows = [{"job": number, "position": position} for position in sorted(added)]
                connection.execute(flights_table.insert(), rows)

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
        left = (jobs_table.c.state == JobState.RUNNING.value) & jobs_table.c.number.not_in(running)
        with self._database.writing() as connection:
            rows = connection.execute(sa.select(jobs_table.c.number, jobs_table.c.id).where(left))
            found = [Death(row.id, _suspect(connection, row.number)) for row in rows.all()]
            connection.execute(jobs_table.update().where(left).values(state=JobState.QUEUED.value))
        return found

    def next_trial(self, number: int) -> Trial | None:
        """Return the suspects that are scored next; None if all have results.

        Items that were alone at a death come last: others go on if the cause is elsewhere.
        """
        with self._database.writing() as connection:
            suspects = connection.execute(_suspects(number)).all()
            if not suspects:
                return None
            first = suspects[0]
            proof = _proof(connection, number, first.deaths)
            if first.deaths and not proof(first.deaths + 1) and _add_control(connection, number):
                suspects = connection.execute(_suspects(number)).all()
                first = suspects[0]
            alike = [one for one in suspects if one.together == first.together]
            chosen = [one.position for one in alike[: first.together]]
            query = sa.select(_ITEM.position, _ITEM.item).where(
                _ITEM.job == number, _ITEM.position.in_(chosen)
            )
            rows = connection.execute(query.order_by(_ITEM.position))
            items = [(row.position, bytes(row.item)) for row in rows]
        return Trial(items, len(suspects), first.deaths > 0 and proof(first.deaths))

    def survived(self, number: int, position: int) -> None:
        """Note that the server scored an item alone, and lives."""
        this = suspicions_table.update().where(
            _SUSPICION.job == number, _SUSPICION.position == position
        )
        with self._database.writing() as connection:
            connection.execute(this.values(survived=True))


def _proof(connection: sa.Connection, number: int, own: int) -> Callable[[int], bool]:
    """Return what tells whether so many deaths of an item prove that it is the cause.

    Args:
        connection: The connection.
        number: The job.
        own: How often the item was alone at a death so far.
    """
    deaths = sa.func.coalesce(sa.func.sum(_SUSPICION.deaths), 0)
    survivors = sa.func.count(sa.case((_SUSPICION.survived, 1)))
    query = sa.select(deaths.label("deaths"), survivors.label("survivors"))
    row = connection.execute(query.where(_SUSPICION.job == number)).one()
    others = int(row.deaths) - own
    return partial(is_proven, other_deaths=others, survivors=int(row.survivors))


def _unanswered(number: int) -> sa.ColumnElement[bool]:
    return (_ITEM.job == number) & _ITEM.result.is_(None)


def _suspects(number: int) -> sa.Select[tuple[int, int, int]]:
    columns = (_SUSPICION.position, _SUSPICION.together, _SUSPICION.deaths)
    query = sa.select(*columns).join_from(suspicions_table, items_table, _SAME_ITEM)
    order = (_SUSPICION.deaths, _SUSPICION.together.desc(), _SUSPICION.position)
    return query.where(_unanswered(number)).order_by(*order)


def _suspect(connection: sa.Connection, number: int) -> int:
    """Suspect the items of a job that were in flight at a death; return how many they were."""
    flown = (flights_table.c.job == _ITEM.job) & (flights_table.c.position == _ITEM.position)
    query = sa.select(_ITEM.position).join_from(flights_table, items_table, flown)
    positions = list(connection.scalars(query.where(_unanswered(number))))
    _forget_flights(connection, number)
    if not positions:
        return 0
    mine = (_SUSPICION.job == number) & _SUSPICION.position.in_(positions)
    known = set(connection.scalars(sa.select(_SUSPICION.position).where(mine)))
    new = [one for one in positions if one not in known]
    most, alone = half(len(positions)), int(len(positions) == 1)
    if new:
        row = {"job": number, "together": most, "deaths": 0, "survived": False}
        connection.execute(
            suspicions_table.insert(), [row | {"position": position} for position in new]
        )
    smaller = sa.case((_SUSPICION.together < most, _SUSPICION.together), else_=most)
    connection.execute(
        suspicions_table.update()
        .where(mine)
        .values(together=smaller, deaths=_SUSPICION.deaths + alone)
    )
    return len(positions)


def _add_control(connection: sa.Connection, number: int) -> bool:
    """Suspect an item that never was in flight at a death; return whether there was one."""
    known = sa.select(_SUSPICION.position).where(_SUSPICION.job == number)
    free = sa.select(_ITEM.position).where(_unanswered(number), _ITEM.position.not_in(known))
    position = connection.scalar(free.order_by(_ITEM.position).limit(1))
    if position is None:
        return False
    connection.execute(
        suspicions_table.insert().values(
            job=number, position=position, together=1, deaths=0, survived=False
        )
    )
    return True


def _forget_flights(connection: sa.Connection, number: int) -> None:
    connection.execute(flights_table.delete().where(flights_table.c.job == number))
