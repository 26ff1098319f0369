"""A judge that counts what it is paid for."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

from support import scripted_llm as llm

__all__ = ["Toll", "verdicts"]


class Toll:
    """Replies to so many calls of a judge, and leaves the further ones without a reply.

    Calls with a reply are those that are paid.
    """

    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()
        self.allowed = 0
        self.held: list[asyncio.Event] = []
        self.changed = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None

    def step(self, number: int, body: llm.Body) -> llm.Reply:
        self.loop = asyncio.get_running_loop()
        if not self.allowed:
            self.held.append(asyncio.Event())
            return llm.Reply(reset=True, hold=self.held[-1])
        self.allowed -= 1
        self.paid[llm.prompt_of(body)] += 1
        return llm.by_scene_graph(number, body)

    def drop(self) -> None:
        """Close the connections of the calls without a reply."""
        held, self.held = self.held, []
        for event in held:
            assert self.loop is not None
            self.loop.call_soon_threadsafe(event.set)


def verdicts(folder: Path) -> int:
    """Return the number of verdicts on the disk."""
    with closing(sqlite3.connect(folder / "verdicts.sqlite")) as file:
        return int(file.execute("SELECT count(*) FROM answers").fetchone()[0])
