"""In which order slices of work are served, and what a cancelled call frees."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.fair_queue import CpuScheduler
from hallujudge.judge_service.threads import (
    check_wanted,
    in_thread,
    map_cpu,
    of_each,
    use_scheduler,
)

ANA, BEN = (Caller(id=f"key:{name}", name=name) for name in ("ana", "ben"))


def scripted(step: float) -> Callable[[], float]:
    """Return a clock that goes on by a step whenever it is read."""
    times: Iterator[int] = iter(range(1_000_000))
    return lambda: next(times) * step


async def test_a_small_batch_waits_for_a_slice_and_not_for_a_large_batch() -> None:
    order: list[str] = []
    # Each value is a block that takes half a millisecond, so a slice has two.
    scheduler = CpuScheduler(scripted(0.0005))

    async def work(caller: Caller, count: int) -> None:
        with acting_as(caller):
            use_scheduler(scheduler)
            await map_cpu(of_each(order.append), [caller.name] * count, chars=lambda _: 2_500)

    # Another batch of ana's, or many of them, are no further slices before ben's.
    await asyncio.gather(*(work(ANA, 20) for _ in range(5)), work(BEN, 1))
    assert order.index("ben") <= 4
    assert len(order) == 101


async def test_results_keep_their_order_across_slices_and_threads() -> None:
    use_scheduler(CpuScheduler(scripted(0.0005)))
    values = list(range(40))
    main, places = threading.get_ident(), dict[int, bool]()

    def work(value: int) -> int:
        places[value] = threading.get_ident() == main
        return -value

    results = await map_cpu(
        of_each(work), values, chars=lambda value: 50_000 if value % 10 == 3 else 1
    )
    assert results == [-value for value in values]
    assert [value for value in values if not places[value]] == [3, 13, 23, 33]


async def test_small_values_are_worked_on_in_blocks() -> None:
    use_scheduler(CpuScheduler())
    blocks: list[list[int]] = []

    def work(values: Sequence[int]) -> list[int]:
        blocks.append(list(values))
        return blocks[-1]

    sizes = [1] * 40 + [2_000, 2_000, 9_000, 20_000, 1]
    assert await map_cpu(work, sizes, chars=int) == sizes
    assert blocks == [[1] * 32, [1] * 8 + [2_000], [2_000], [9_000], [20_000], [1]]


async def test_a_thread_keeps_its_place_until_its_work_ends() -> None:
    use_scheduler(CpuScheduler())
    begun, go_on, ended = threading.Semaphore(0), threading.Event(), list[str]()

    def unwanted() -> None:
        begun.release()
        go_on.wait()
        try:
            check_wanted()
        finally:
            ended.append("unwanted")

    tasks = [asyncio.ensure_future(in_thread(unwanted)) for _ in range(2)]
    for _ in tasks:
        await asyncio.to_thread(begun.acquire)
    third = asyncio.ensure_future(in_thread(lambda: ended.append("third")))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not ended
    assert not third.done()
    go_on.set()
    await third
    # Both places were taken until one of the threads was done.
    assert "unwanted" in ended[: ended.index("third")]


async def test_work_in_a_thread_ends_with_its_call() -> None:
    use_scheduler(CpuScheduler())
    begun, stopped = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                check_wanted()
        finally:
            stopped.set()

    task = asyncio.ensure_future(in_thread(endless))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.to_thread(stopped.wait)


async def test_an_error_of_the_work_reaches_the_caller() -> None:
    use_scheduler(CpuScheduler())
    with pytest.raises(ZeroDivisionError):
        await map_cpu(of_each(lambda value: 1 // value), [1, 0], chars=lambda _: 1)
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)
    assert await map_cpu(of_each(lambda value: value), [2], chars=lambda _: 1) == [2]
