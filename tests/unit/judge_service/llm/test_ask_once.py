"""Calls that are claimed for all processes, and stay claimed while they take long."""

from __future__ import annotations

import asyncio
from typing import cast

from support.chat_clients import REQUEST
from support.threads import unseen_errors

from hallujudge.judge_service.llm.ask_once import AskOnce, Reading
from hallujudge.judge_service.llm.budget import VerdictStore
from hallujudge.judge_service.llm.cache_file import Record
from hallujudge.judge_service.llm.chat import ChatRequest
from hallujudge.judge_service.llm.client import Answer, ChatClient, Turn
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind

READING: Reading[str] = Reading(
    read=lambda _answer: "yes", to_record=lambda value: {"v": value}, from_record=lambda _: "kept"
)


class Store:
    """What is done with a claim, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def claim(self, _key: str) -> Record | None:
        self.done.append("claim")
        return None

    async def renew(self, _key: str) -> None:
        self.done.append("renew")

    async def put(self, _key: str, _judge: str, _record: Record) -> None:
        self.done.append("put")

    async def release(self, _key: str) -> None:
        self.done.append("release")


class SlowClient:
    """Answers when the claim was renewed twice, or after a thousand turns of the loop."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def ask(self, _request: ChatRequest, *, has_fallback: bool, turn: Turn) -> Answer:
        for _ in range(1000):
            if self.store.done.count("renew") >= 2:
                break
            await asyncio.sleep(0.001)
        with turn:
            return cast("Answer", has_fallback)


async def test_the_claim_of_a_long_call_is_renewed() -> None:
    store = Store()
    asking = AskOnce[str](
        cast("ChatClient", SlowClient(store)), cast("VerdictStore", store), renew_seconds=0.001
    )
    assert await asking.ask("key", REQUEST, READING, label="m") == "yes"
    assert store.done[:3] == ["claim", "renew", "renew"]
    assert store.done[-1] == "put"
    assert "release" not in store.done


class LeftClient:
    """Fails at the moment at which its caller leaves."""

    caller: asyncio.Task[str]

    async def ask(self, _request: ChatRequest, *, has_fallback: bool, turn: Turn) -> Answer:
        self.caller.cancel()
        # The caller hears of it in the turn of the loop in which this call ends.
        await asyncio.sleep(0)
        raise CallFailedError(FailureKind.SERVER, "out of memory")


async def test_a_call_that_fails_while_its_caller_leaves_is_looked_at() -> None:
    client, store = LeftClient(), Store()
    asking = AskOnce[str](cast("ChatClient", client), cast("VerdictStore", store))
    with unseen_errors() as unseen:
        client.caller = asyncio.create_task(asking.ask("key", REQUEST, READING, label="m"))
        await asyncio.wait({client.caller})
        assert client.caller.cancelled()
        while "release" not in store.done:
            await asyncio.sleep(0)
        del client, asking
    assert unseen == []
