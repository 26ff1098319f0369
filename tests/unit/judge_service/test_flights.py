"""Items in flight: written down before they are worked on, and gone when they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Set

import pytest

from hallujudge.judge_service.errors import UnavailableError
from hallujudge.judge_service.flights import FlightLog, Flights, half, is_proven
from hallujudge.judge_service.tenancy import Flight, tenancy


class Disk:
    """What is written down, as far as it can be written."""

    def __init__(self) -> None:
        self.kept: set[int] = set()
        self.writes = 0
        self.is_away = False
        self.slept = 0

    async def write(self, added: Set[int], left: Set[int]) -> None:
        await asyncio.sleep(0)
        self.writes += 1
        if self.is_away:
            raise UnavailableError("locked")
        self.kept = (self.kept | added) - left

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        await asyncio.sleep(0.001)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_item_is_written_down_before_it_is_worked_on_and_before_a_call() -> None:
    disk = Disk()
    log = FlightLog(disk.write)
    async with Flights(log, [7]).one(0).work():
        assert disk.kept == {7}
        item = tenancy().flight
        item.waits()
        await settled()
        assert disk.kept == set(), "a call that waits for a place is not in flight"
        assert await item.takes_off()
        assert disk.kept == {7}
        assert await item.takes_off()
        item.lands()
        item.waits()
        await settled()
        assert disk.kept == {7}, "another call of the item is sent"
        item.lands()
        item.waits()
        await settled()
        assert disk.kept == set()
    assert type(tenancy().flight) is Flight


async def test_items_that_take_off_together_are_written_down_together() -> None:
    disk = Disk()
    flights = Flights(FlightLog(disk.write), list(range(50)))
    async with flights.all():
        assert disk.kept == set(range(50))
        assert disk.writes == 1
    await settled()
    assert (disk.kept, disk.writes) == (set(), 2)


async def test_few_items_are_worked_on_at_once_and_many_wait() -> None:
    disk, end = Disk(), asyncio.Event()
    flights = Flights(FlightLog(disk.write), list(range(20)))
    waiting: list[int] = []

    async def work(index: int) -> None:
        async with flights.one(index).work():
            await settled()
            assert len(disk.kept) <= 8
            tenancy().flight.waits()
            waiting.append(index)
            await end.wait()

    tasks = [asyncio.ensure_future(work(index)) for index in range(20)]
    while len(waiting) < 20:
        await asyncio.sleep(0)
    await settled()
    assert disk.kept == set()
    end.set()
    await asyncio.gather(*tasks)


async def test_no_call_is_sent_while_nothing_can_be_written_down() -> None:
    disk = Disk()
    log = FlightLog(disk.write, disk.sleep)
    async with Flights(log, [7]).one(0).work():
        item = tenancy().flight
        item.waits()
        await settled()
        disk.is_away = True
        assert not await item.takes_off()
        disk.is_away = False
        assert await item.ready()
        assert await item.takes_off()
        assert disk.kept == {7}
    assert disk.slept > 0
    await log.close()


def test_groups_are_halved_until_an_item_is_alone() -> None:
    assert [half(count) for count in (1, 2, 3, 16, 63)] == [1, 1, 2, 8, 32]


@pytest.mark.parametrize(
    ("deaths", "other_deaths", "survivors", "proven"),
    [
        (1, 0, 1000, False),
        (1, 0, 6, False),
        (2, 0, 5, False),
        (2, 0, 6, True),
        (5, 0, 0, False),
        (6, 0, 0, True),
        (2, 2, 6, False),
        (9, 9, 0, False),
    ],
)
def test_deaths_prove_what_the_others_deaths_do_not_explain(
    deaths: int, other_deaths: int, survivors: int, *, proven: bool
) -> None:
    assert is_proven(deaths, other_deaths=other_deaths, survivors=survivors) is proven
