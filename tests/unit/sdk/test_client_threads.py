"""Clients that several threads share, that are never closed, or closed during a call."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.threads import PATIENCE, busy_switching, eventually, run_in_threads

from hallujudge.judge_service.engine.session import ScoringSession
from hallujudge.metrics import Item, ItemResult
from hallujudge.sdk import Client
from hallujudge.sdk.errors import CancelledError

RESPONSES = {str(n): "A dog and a cat." for n in range(300)}
REFERENCES = {str(n): ["dog"] for n in range(300)}
ROUNDS = 8


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def loop_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "hallujudge-client"}


def test_one_client_in_many_threads_starts_one_thread() -> None:
    before = loop_threads()

    def score() -> float | None:
        report = client.score("chair", responses=RESPONSES, references=REFERENCES)
        return report.chair_i

    with busy_switching(), Client.embedded() as client:
        assert run_in_threads(score, ROUNDS) == [0.5] * ROUNDS
        (own,) = loop_threads() - before
    assert not own.is_alive()


def test_clients_that_are_not_closed_end_when_they_are_dropped() -> None:
    before, files = loop_threads(), open_files()
    for _ in range(ROUNDS):
        assert Client.embedded().server_info().version

    def ended() -> bool:
        gc.collect()
        return not loop_threads() - before and open_files() <= files

    assert eventually(ended)


def test_closing_ends_what_another_thread_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    async def forever(_: ScoringSession, items: Sequence[Item]) -> list[ItemResult]:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError(f"{len(items)} items were scored")

    monkeypatch.setattr(ScoringSession, "evaluate", forever)
    client = Client.embedded()
    caught: list[BaseException] = []

    def slow() -> None:
        try:
            client.score("chair", responses=RESPONSES, references=REFERENCES)
        except CancelledError as err:
            caught.append(err)

    thread = threading.Thread(target=slow, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE)
    client.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert "closed" in str(caught[0])
