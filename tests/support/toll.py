"""A judge that counts what it is paid for."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from support import scripted_llm as llm

__all__ = ["Toll", "verdicts"]


class Toll:
    """Replies to so many calls of a judge, and leaves the further ones without a reply.

    Calls with a reply are those that are paid.

    Args:
        reply: Replies to a call.
        key: Returns what makes two calls the same.
    """

    def __init__(
        self,
        reply: llm.Step = llm.by_scene_graph,
        key: Callable[[llm.Body], str] = llm.prompt_of,
    ) -> None:
        self._reply, self._key = reply, key
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
        self.paid[self._key(body)] += 1
        return self._reply(number, body)

    def drop(self) -> None:
        """Close the connections of the calls without a reply."""
        held, self.held = self.held, []
        for event in held:
            assert self.loop is not None
            self.loop.call_soon_threadsafe(event.set)


def verdicts(folder: Path, name: str = "verdicts.sqlite") -> int:
    """Return the number of replies on the disk."""
    with closing(sqlite3.connect(folder / name)) as file:
        return int(file.execute("SELECT count(*) FROM answers").fetchone()[0])
