"""The file of what keys spend: locked, deleted, replaced and set back while a server uses it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from support.clocks import Clock
from support.database_mishaps import copied, deleted, log_deleted, replaced, set_back
from support.messages import expected_message
from support.threads import until

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.access.spending import Ledger, Spent
from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.llm.budget import Budget, Prices
from hallujudge.judge_service.tenancy import Hold, Limits


def caller(key_id: str = "k1", **limits: int) -> Caller:
    return Caller(id=f"key:{key_id}", name=f"key {key_id}", key_id=key_id, limits=Limits(**limits))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file's lock, as another program does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spending.sqlite"


async def test_a_locked_file_is_waited_for_by_those_whom_it_limits(path: Path) -> None:
    ledger = Ledger(path)
    limited, free = caller("k1", judge_calls_per_day=1), caller("k2")
    with locked(path):
        waiting = asyncio.create_task(ledger.take(limited, 0.0, priced=False))
        # The call of a key without a daily limit is made, and counted.
        hold = await ledger.take(free, 2.0, priced=False)
        assert isinstance(hold, Hold)
        ledger.settle(hold, 0.5)
        await until(lambda: ledger.spent("k2").cost == 0.5)
        assert not waiting.done()
    assert isinstance(await waiting, Hold)
    assert isinstance(await ledger.take(limited, 0.0, priced=False), str)
    ledger.close()
    again = Ledger(path)
    assert (again.spent("k1"), again.spent("k2")) == (Spent(calls=1), Spent(calls=1, cost=0.5))
    again.close()


async def test_a_file_that_stays_locked_lets_no_call_pass(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(path, busy_seconds=0.0)
    with locked(path):
        # Once it is known to stay locked, calls of keys without a daily limit do not pass either.
        for one in [caller(judge_calls_per_day=9)] * 3 + [caller("k2")] * 2:
            with pytest.raises(UnavailableError) as caught:
                await ledger.take(one, 0.0, priced=False)
            assert caught.value.reason == "SPENDING_UNAVAILABLE"
            assert caught.value.retry_after
    assert caplog.text.count("database is locked") == 1
    assert isinstance(await ledger.take(caller(judge_calls_per_day=9), 0.0, priced=False), Hold)
    assert ledger.spent("k1") == Spent(calls=1)
    ledger.close()


async def test_a_call_that_is_cancelled_while_it_waits_spends_nothing(path: Path) -> None:
    ledger = Ledger(path)
    ana = caller(judge_calls_per_day=1)
    with locked(path):
        waiting = asyncio.create_task(ledger.take(ana, 3.0, priced=False))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await until(lambda: ledger.spent("k1") == Spent())
    assert isinstance(await ledger.take(ana, 3.0, priced=False), Hold)
    ledger.close()


async def test_concurrent_calls_exceed_neither_the_keys_nor_the_judges_budget(path: Path) -> None:
    ledgers = [Ledger(path), Ledger(path)]  # as two servers with one file
    budgets = [
        Budget(max_calls=4, prices=Prices(prompt=0, completion=0), ledger=one) for one in ledgers
    ]

    async def call(budget: Budget, one: Caller) -> bool:
        with acting_as(one):
            reservation = await budget.reserve(1, 1)
            if reservation is not None:
                await asyncio.sleep(0)
                budget.settle(reservation, 0.0)
            return reservation is not None

    limited = caller("k1", judge_calls_per_day=3)
    made = await asyncio.gather(
        *(
            call(budget, one)
            for _ in range(10)
            for budget in budgets
            for one in (limited, caller("k2"))
        )
    )
    for ledger in ledgers:
        ledger.close()
    again = Ledger(path)
    assert again.spent("k1").calls <= 3
    assert again.spent("k1").calls + again.spent("k2").calls == made.count(True) == 8
    again.close()


def emptied(path: Path, _old: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE hallujudge_state")
        file.execute("DELETE FROM spending")
        file.commit()


@pytest.mark.parametrize("mishap", [deleted, replaced, set_back, emptied, log_deleted])
async def test_a_file_that_is_another_now_pays_no_budget_again(
    path: Path, mishap: Callable[[Path, Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    ledger, ana = Ledger(path), caller(judge_calls_per_day=2)
    old = copied(path)
    for _ in range(2):
        assert isinstance(await ledger.take(ana, 0.0, priced=False), Hold)
    mishap(path, old)
    # A key without a daily limit is let pass until the mishap is noticed.
    await ledger.take(caller("k2"), 0.0, priced=False)
    for one in (ana, caller("k2")):
        said = expected_message("judge_service.access.spending:cant-be-written-down")
        with pytest.raises(UnavailableError, match=said):
            await ledger.take(one, 0.0, priced=False)
    assert str(path) in caplog.text
    ledger.close()


async def test_a_file_that_is_put_back_is_used_again(path: Path) -> None:
    ledger, ana = Ledger(path), caller(judge_calls_per_day=2)
    assert isinstance(await ledger.take(ana, 0.0, priced=False), Hold)
    aside = path.with_name("aside.sqlite")
    path.rename(aside)
    with pytest.raises(UnavailableError):
        await ledger.take(ana, 0.0, priced=False)
    aside.rename(path)
    assert isinstance(await ledger.take(ana, 0.0, priced=False), Hold)
    assert ledger.spent("k1") == Spent(calls=2)
    ledger.close()


async def test_what_waits_for_a_lock_can_be_waited_for(path: Path) -> None:
    ledger = Ledger(path)
    await ledger.written()
    with locked(path):
        await ledger.take(caller(), 2.0, priced=False)
        waiting = asyncio.create_task(ledger.written())
        await asyncio.sleep(0)
        # The ledger's thread does one thing after the other, so it has answered the first look.
        assert ledger.spent("k1") == Spent(calls=1, cost=2.0)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert written(path) == []
    await waiting
    assert written(path) == [(1, 2.0)]
    ledger.close()


@contextmanager
def moved_away(path: Path) -> Iterator[None]:
    aside = path.with_name("aside.sqlite")
    path.rename(aside)
    yield
    aside.rename(path)


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Let every write of the file fail, as a broken disk does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON spending "
            "BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END"
        )
        yield
        other.execute("DROP TRIGGER refuse")


def written(path: Path) -> list[tuple[int, float]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT calls, cost FROM spending").fetchall()


@pytest.mark.parametrize("failing", [refusing, moved_away, locked])
async def test_what_could_not_be_written_is_written_later_without_another_call(
    path: Path,
    failing: Callable[[Path], AbstractContextManager[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()

    def is_written_later() -> bool:
        clock.now += 60
        return written(path) == [(1, 2.0)]

    ledger = Ledger(path, clock=clock)
    with failing(path):
        assert isinstance(await ledger.take(caller(), 2.0, priced=False), Hold)
        await until(lambda: str(path) in caplog.text)
    await until(is_written_later)
    ledger.close()
