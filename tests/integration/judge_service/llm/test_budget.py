"""Budgets of calls and money, kept by a chat client."""

from __future__ import annotations

import asyncio

import pytest
from support import scripted_llm as llm
from support.chat_clients import REQUEST, client_of, failure_of

from hallujudge.judge_service.llm.budget import Budget, Prices
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind


async def test_a_budget_of_zero_sends_nothing() -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        failure = await failure_of(client_of(server, budget=Budget(max_calls=0)))
    assert failure.kind is FailureKind.BUDGET
    assert server.chats == 0


async def test_retries_count_as_calls() -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(500))) as server:
        failure = await failure_of(client_of(server, budget=Budget(max_calls=2)))
    assert failure.kind is FailureKind.BUDGET
    assert server.chats == 2


async def test_money_is_held_before_a_call_so_that_calls_in_flight_cannot_pass_the_limit() -> None:
    # "hello" is 5 bytes and 16 for the message: 21 prompt tokens at most, and 8 generated.
    prices = Prices(prompt=1_000_000, completion=1_000_000)
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    async with llm.ScriptedLlm(llm.saying("ok", usage=usage)) as server:
        budget = Budget(max_cost=100, prices=prices)
        client = client_of(server, budget=budget)
        outcomes = await asyncio.gather(
            *(client.ask(REQUEST) for _ in range(50)), return_exceptions=True
        )
        while not isinstance(outcomes[-1], CallFailedError):
            outcomes += await asyncio.gather(client.ask(REQUEST), return_exceptions=True)
        await client.close()
    assert budget.spent <= 100
    assert server.chats == budget.spent / 12
    assert budget.spent > 100 - 29


@pytest.mark.parametrize(
    "usage",
    [
        {"total_tokens": 12},
        {"prompt_tokens": 10},
        {"completion_tokens": 2},
        {"prompt_tokens": -10, "completion_tokens": 2},
        {"prompt_tokens": 10, "completion_tokens": "2"},
        {"prompt_tokens": 1e300, "completion_tokens": 2},
    ],
)
async def test_a_call_whose_tokens_the_server_does_not_count_costs_what_was_reserved(
    usage: llm.Body,
) -> None:
    prices = Prices(prompt=1_000_000, completion=1_000_000)
    async with llm.ScriptedLlm(llm.saying("ok", usage=usage)) as server:
        budget = Budget(max_cost=60, prices=prices)
        client = client_of(server, budget=budget)
        outcomes = await asyncio.gather(
            *(client.ask(REQUEST) for _ in range(5)), return_exceptions=True
        )
        await client.close()
    assert (budget.spent, server.chats) == (58, 2)
    assert sum(isinstance(outcome, CallFailedError) for outcome in outcomes) == 3


async def test_what_broke_off_counts_as_spent() -> None:
    prices = Prices(prompt=1_000_000, completion=1_000_000)
    async with llm.ScriptedLlm(llm.always(llm.Reply(reset=True))) as server:
        budget = Budget(prices=prices)
        await failure_of(
            client_of(server, budget=budget, retry=RetryPolicy(attempts=1, outage_seconds=0))
        )
    assert budget.spent == 29
    async with llm.ScriptedLlm(llm.always(llm.error(500))) as server:
        budget = Budget(prices=prices)
        await failure_of(
            client_of(server, budget=budget, retry=RetryPolicy(attempts=1, outage_seconds=0))
        )
    assert budget.spent == 0


async def test_a_budget_within_another_counts_in_both() -> None:
    async with llm.ScriptedLlm(llm.saying("ok")) as server:
        shared = Budget(max_calls=3)
        one = client_of(server, budget=Budget(max_calls=2, within=shared))
        two = client_of(server, budget=Budget(within=shared))
        outcomes: list[object] = []
        for client in (one, one, one, two, two):
            outcomes += await asyncio.gather(client.ask(REQUEST), return_exceptions=True)
        await one.close()
        await two.close()
    assert [isinstance(o, CallFailedError) for o in outcomes] == [False, False, True, False, True]
    assert (server.chats, shared.calls) == (3, 3)
    assert "3 of 3 calls made" in str(outcomes[-1])
