"""Which caller is next, and what a cancelled request frees."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from support.threads import PATIENCE, until

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.fair_queue import FairQueue
from hallujudge.judge_service.llm.chat import ChatRequest
from hallujudge.judge_service.llm.rate_limits import AdaptiveLimiter
from hallujudge.judge_service.tenancy import Limits

ANA, BEN = (Caller(id=f"key:{name}", name=name) for name in ("ana", "ben"))


async def served(
    queue: FairQueue, requests: list[tuple[str, float]], weights: Mapping[str, float] | None = None
) -> str:
    """Let requests wait at once behind another one; return the callers in order of service."""
    order: list[str] = []

    async def request(caller: str, cost: float) -> None:
        await queue.enter(caller, cost=cost, weight=(weights or {}).get(caller, 1.0))
        order.append(caller)
        queue.leave(caller)

    await queue.enter("first")
    tasks = [asyncio.ensure_future(request(*one)) for one in requests]
    await until(lambda: queue.waiting == len(requests))
    queue.leave("first")
    await asyncio.gather(*tasks)
    return "".join(order)


async def test_callers_take_turns_whatever_they_wait_with() -> None:
    assert await served(FairQueue(), [("a", 1.0)] * 6 + [("b", 1.0)] * 2) == "ababaaaa"


async def test_a_cheap_request_is_served_before_the_second_costly_one() -> None:
    assert await served(FairQueue(), [("a", 9.0)] * 2 + [("b", 1.0)] * 4) == "abbbba"


async def test_a_caller_of_twice_the_weight_is_served_twice_as_often() -> None:
    requests = [("a", 1.0)] * 6 + [("b", 1.0)] * 2
    assert await served(FairQueue(), requests, {"a": 2.0}) == "abaabaaa"


async def test_requests_that_never_end_stop_no_other_caller() -> None:
    queue = FairQueue(2, each=True)
    stuck = [asyncio.ensure_future(queue.enter("a")) for _ in range(4)]
    await until(lambda: queue.waiting == 2)
    for caller in "bcb":
        async with asyncio.timeout(PATIENCE):
            await queue.enter(caller)
        if caller == "b":
            # A second one of the same caller waits until the first one has ended.
            second = asyncio.ensure_future(queue.enter("b"))
            await until(lambda: queue.waiting == 3)
            queue.leave("b")
            await second
            queue.leave("b")
    # Two of a and the one of c have places.
    assert (queue.inside, queue.waiting) == (3, 2)
    queue.leave("c")
    queue.leave("a")
    await until(lambda: queue.waiting == 1)
    for task in stuck:
        task.cancel()


async def order_of_judge_calls(callers: Sequence[Caller]) -> list[str]:
    """Return the names of callers in the order in which calls that wait at once are let in."""
    limiter, order = AdaptiveLimiter(1, lambda: 0.0), list[str]()

    request = ChatRequest(messages=[], max_tokens=1)

    async def call(caller: Caller) -> None:
        with acting_as(caller):
            async with limiter.place(request, asyncio.sleep):
                order.append(caller.name)

    async with limiter.place(request, asyncio.sleep):
        calls = [asyncio.ensure_future(call(caller)) for caller in callers]
        await until(lambda: limiter.waiting == len(calls))
    await asyncio.gather(*calls)
    return order


async def test_the_weight_of_a_key_holds_for_judge_calls() -> None:
    heavy = Caller(id="key:cat", name="cat", limits=Limits(weight=2))
    order = await order_of_judge_calls([heavy] * 4 + [BEN] * 2)
    assert order == ["cat", "ben", "cat", "cat", "ben", "cat"]


async def test_time_away_is_no_credit() -> None:
    queue = FairQueue()
    for _ in range(50):
        await queue.enter("a", cost=1.0)
        queue.leave("a")
    # Caller b was never here, and has no claim to fifty turns.
    assert await served(queue, [("a", 1.0)] * 3 + [("b", 1.0)] * 3) == "ababab"


async def test_a_cost_told_afterwards_counts() -> None:
    queue, order = FairQueue(), ""
    await queue.enter("a")
    waiting = {caller: asyncio.ensure_future(queue.enter(caller)) for caller in "ab"}
    await until(lambda: queue.waiting == 2)
    queue.leave("a", cost=5.0)
    while waiting:
        done, _ = await asyncio.wait(waiting.values(), return_when=asyncio.FIRST_COMPLETED)
        order += next(caller for caller, task in waiting.items() if task in done)
        del waiting[order[-1]]
        queue.leave(order[-1])
    assert order == "ba"


async def test_a_cancelled_request_leaves_no_place_behind() -> None:
    queue = FairQueue()
    await queue.enter("a")
    first, second = (asyncio.ensure_future(queue.enter("b")) for _ in range(2))
    await until(lambda: queue.waiting == 2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert queue.waiting == 1
    # This one gets the place and is cancelled before it runs on.
    queue.leave("a")
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert (queue.inside, queue.waiting) == (0, 0)


async def test_more_places_admit_those_who_wait() -> None:
    queue = FairQueue(1)
    await queue.enter("a")
    waiting = asyncio.ensure_future(queue.enter("b"))
    await until(lambda: queue.waiting == 1)
    queue.resize(2)
    await waiting
    assert (queue.inside, queue.waiting) == (2, 0)


async def test_judge_calls_of_callers_take_turns() -> None:
    order = await order_of_judge_calls([ANA] * 5 + [BEN] * 2)
    assert order == ["ana", "ben", "ana", "ben", "ana", "ana", "ana"]
