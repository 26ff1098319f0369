"""Rates, concurrency and daily budgets of callers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from support.clocks import Clock
from support.messages import expected_message

from hallujudge.judge_service.access import (
    Caller,
    CallerLimits,
    acting_as,
    begin_call,
    current_caller,
    stream_pause,
)
from hallujudge.judge_service.access.spending import Ledger, Spent
from hallujudge.judge_service.errors import OutputError, OverloadedError, UnavailableError
from hallujudge.judge_service.llm.budget import Budget, Prices
from hallujudge.judge_service.tenancy import Hold, Limits


def caller(key_id: str = "k1", **limits: float) -> Caller:
    return Caller(id=f"key:{key_id}", name=f"key {key_id}", key_id=key_id, limits=Limits(**limits))  # type: ignore[arg-type]  # whole numbers


def test_a_minutes_calls_come_back_evenly() -> None:
    clock = Clock()
    limits = CallerLimits(clock)
    ana = caller(calls_per_minute=6)
    for _ in range(6):
        with limits.call(ana):
            pass
    with pytest.raises(
        OverloadedError,
        match=expected_message("judge_service.access:may-make-calls-in-minute"),
    ) as caught:
        limits.call(ana).__enter__()
    assert caught.value.retry_after == pytest.approx(10.0)
    with limits.call(caller("k2", calls_per_minute=6)):
        pass
    clock.now = 10.0
    with limits.call(ana):
        pass


def test_a_call_that_ends_makes_room() -> None:
    limits = CallerLimits()
    ana = caller(max_concurrency=1)
    with limits.call(ana), pytest.raises(OverloadedError, match="may have 1"):
        limits.call(ana).__enter__()
    with limits.call(ana):
        pass


async def test_a_stream_knows_which_quota_it_waits_for() -> None:
    limits, ana = CallerLimits(), replace(caller(calls_per_minute=1), key_name="ana")
    begin_call(ana, lambda caller: caller)
    await limits.message(ana)
    assert stream_pause() == ""
    waiting = asyncio.ensure_future(limits.message(ana))
    await asyncio.sleep(0)
    assert stream_pause() == "key ana, 1 call a minute"
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert stream_pause() == ""


def test_the_caller_of_a_job_is_the_one_it_acts_for() -> None:
    assert current_caller().id == "local"
    with acting_as(caller()):
        assert current_caller().id == "key:k1"
    assert current_caller().id == "local"


async def test_a_budget_of_calls_is_per_key_and_survives_a_restart(tmp_path: Path) -> None:
    ana, ben = caller("k1", judge_calls_per_day=2), caller("k2", judge_calls_per_day=2)
    ledger = Ledger(tmp_path / "spending.sqlite")
    budget = Budget(ledger=ledger)
    with acting_as(ana):
        for _ in range(2):
            assert await budget.reserve(1, 1) is not None
        assert await budget.reserve(1, 1) is None
        assert (
            expected_message("judge_service.access.spending:of-judge-calls-made-today")
            in budget.exhausted_detail()
        )
    with acting_as(ben):
        assert await budget.reserve(1, 1) is not None
    ledger.close()
    ledger = Ledger(tmp_path / "spending.sqlite")
    with acting_as(ana):
        assert await Budget(ledger=ledger).reserve(1, 1) is None
    assert ledger.spent("k2") == Spent(calls=1)
    ledger.close()


PRICES = Prices(prompt=1e6, completion=1e6)


async def test_a_call_waits_for_what_running_calls_of_its_key_hold(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.sqlite")
    budget = Budget(prices=PRICES, ledger=ledger)
    with acting_as(caller(cost_per_day=10.0)):
        first = await budget.reserve(4, 4)
        assert first is not None
        second = asyncio.create_task(budget.reserve(2, 2))
        await asyncio.sleep(0)
        assert not second.done()
        budget.settle(first, 3.0)
        assert await second is not None
    assert ledger.spent("k1") == Spent(calls=2, cost=7.0)
    ledger.close()


async def test_a_call_that_no_running_call_makes_room_for_is_refused_at_once(
    tmp_path: Path,
) -> None:
    ledger = Ledger(tmp_path / "spending.sqlite")
    budget = Budget(prices=PRICES, ledger=ledger)
    with acting_as(caller(cost_per_day=10.0)):
        first = await budget.reserve(4, 4)
        assert first is not None
        assert await budget.reserve(6, 6) is None
        budget.settle(first, 7.0)
        held = await budget.reserve(1, 1)
        assert held is not None
        assert await budget.reserve(2, 2) is None
        assert (
            expected_message("judge_service.access.spending:of-spent-or-reserved-today")
            in budget.exhausted_detail()
        )
        budget.keep(held)
    with acting_as(caller("k2", cost_per_day=10.0, judge_calls_per_day=1)):
        assert await budget.reserve(4, 4) is not None
        # Its calls are spent, whatever the running one costs.
        assert await budget.reserve(2, 2) is None
    ledger.close()


async def test_all_of_a_keys_money_is_spent_before_a_call_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.sqlite")
    # Two budgets, as those of the judge and of its fallback.
    budgets = [Budget(prices=PRICES, ledger=ledger) for _ in range(2)]

    async def call(budget: Budget) -> bool:
        reservation = await budget.reserve(15, 15)
        if reservation is None:
            return False
        await asyncio.sleep(0)
        budget.settle(reservation, 10.0)
        return True

    with acting_as(caller(cost_per_day=100.0)):
        made = await asyncio.gather(*(call(budget) for budget in budgets * 10))
    # After seven calls, 30 is left: one more call may cost that much, and after it none.
    assert made.count(True) == 8
    assert ledger.spent("k1") == Spent(calls=8, cost=80.0)
    ledger.close()


async def test_a_budget_ends_with_the_day(tmp_path: Path) -> None:
    days = ["2026-01-01"]
    ledger = Ledger(tmp_path / "spending.sqlite", day=lambda: days[-1])
    ana = caller(judge_calls_per_day=1)
    hold = await ledger.take(ana, 0.0, priced=False)
    assert isinstance(hold, Hold)
    assert isinstance(await ledger.take(ana, 0.0, priced=False), str)
    days.append("2026-01-02")
    assert isinstance(await ledger.take(ana, 0.0, priced=False), Hold)
    ledger.close()


async def test_a_budget_in_money_needs_prices(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.sqlite")
    said = await ledger.take(caller(cost_per_day=1.0), 0.0, priced=False)
    assert "has no prices" in str(said)
    ledger.close()


async def test_a_ledger_that_is_gone_lets_nothing_pass(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(tmp_path / "spending.sqlite")
    ledger.close()
    said = expected_message("judge_service.access.spending:cant-be-written-down")
    for one in (caller(), caller(judge_calls_per_day=1)):
        with pytest.raises(UnavailableError, match=said) as caught:
            await ledger.take(one, 0.0, priced=True)
        assert caught.value.reason == "SPENDING_UNAVAILABLE"
    assert "closed database" in caplog.text
    with pytest.raises(OutputError, match="can't be used"):
        Ledger(tmp_path)
