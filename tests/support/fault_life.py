"""Server processes for fault schedules, forked from a warm one: a life starts in milliseconds.

Run as a program it is the nursery: it imports the server once, and forks a life for every message
that it gets. A life is ``serve`` itself, with three differences: its clocks run ``SPEED`` times as
fast, its wall clock jumps on request, and the pages of its databases are limited on request, which
is how SQLite sees a full disk. It is killed by a real ``kill -9``.
"""

from __future__ import annotations

import array
import asyncio
import gc
import json
import logging
import os
import selectors
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["SPEED", "Nursery"]

SPEED = 50.0
"""Seconds of a life in one real second: a pause of 5 s takes 0.1 s."""

_MAX_BYTES = 1 << 16
# SQLite's own largest number of pages.
_NO_LIMIT = 2**32 - 2
_real_monotonic, _real_connect = time.monotonic, sqlite3.connect


class _Clock:
    """The clocks of all lives. The wall clock also jumps."""

    def __init__(self) -> None:
        self._began, self._wall = _real_monotonic(), time.time()
        self.jumped = 0.0

    def monotonic(self) -> float:
        return self._began + (_real_monotonic() - self._began) * SPEED

    def time(self) -> float:
        return self._wall + self.monotonic() - self._began + self.jumped


_CLOCK = _Clock()


class _Datetime(datetime):
    """Shows the day of the lives' wall clock."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _Datetime:
        return cls.fromtimestamp(_CLOCK.time(), tz or UTC)


class _Selector(selectors.DefaultSelector):
    """Waits as long as the event loop means by its fast clock."""

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout / SPEED if timeout and timeout > 0 else timeout)


class _Connection(sqlite3.Connection):
    """A connection that can be told that the disk is full; SQLite's own can't be found again."""


class _Disk:
    """The databases of a life."""

    def __init__(self) -> None:
        self._connections: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._full = False

    def connect(self, database: Any, timeout: float = 5.0, **more: Any) -> sqlite3.Connection:
        """Connect as :func:`sqlite3.connect` does, waiting for locks by the fast clock."""
        made = _real_connect(database, timeout / SPEED, factory=_Connection, **more)
        self._connections.add(made)
        if self._full:
            self._limit(made)
        return made

    def fill(self, full: bool) -> None:
        """Let no database grow, or let them grow again."""
        self._full = full
        for connection in list(self._connections):
            self._limit(connection)

    def _limit(self, connection: sqlite3.Connection) -> None:
        # A limit below the size means the size: no new page.
        try:
            connection.execute(f"PRAGMA max_page_count = {1 if self._full else _NO_LIMIT}")
        except sqlite3.Error:  # closed, or locked by another fault: its pages are not limited
            return


def _warm() -> None:
    """Import what a server imports, by the fast clocks."""
    time.monotonic, time.time = _CLOCK.monotonic, _CLOCK.time
    import aiohttp  # noqa: F401
    import prometheus_client  # noqa: F401

    import hallujudge.judge_service.access.spending as spending
    import hallujudge.judge_service.engine.families.chair
    import hallujudge.judge_service.engine.families.tri_he
    import hallujudge.judge_service.engine.judge_factory
    import hallujudge.judge_service.jobs.database
    import hallujudge.judge_service.jobs.job_progress
    import hallujudge.judge_service.jobs.job_store
    import hallujudge.judge_service.observe.prometheus
    import hallujudge.judge_service.server.logs
    import hallujudge.judge_service.server.server  # noqa: F401
    from hallujudge.judge_service.extractors.rules.rule_extractors import lemma_key

    vars(spending)["datetime"] = _Datetime  # the day of the budgets
    lemma_key("cat")  # reads the lexicon
    asyncio.run(_score())
    assert threading.active_count() == 1, "a fork would lose the other threads"


async def _score() -> None:
    """Score an item, which builds what all lives share."""
    from hallujudge.judge_service.engine import Engine, ScoreSpec
    from hallujudge.judge_service.wire.convert import item_to_proto, result_to_proto
    from hallujudge.metrics.chair import ChairItem

    item = ChairItem(id="1", response="A dog and a cat.", reference_objects=("dog",))
    item_to_proto(item)
    session = await Engine().open(ScoreSpec(metric="chair"))
    for result in await session.score([item]):
        result_to_proto(result)


class _Reins:
    """The socket to the test. A life ends when the test is gone."""

    def __init__(self, end: socket.socket, disk: _Disk) -> None:
        self._end = end
        self._disk = disk

    def say(self, **values: Any) -> None:
        """Send a message to the test."""
        self._end.sendall(json.dumps(values).encode() + b"\n")

    def follow(self) -> None:
        """Do what the test asks for, in a thread of its own."""
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for line in self._end.makefile("rb"):
            asked = json.loads(line)
            _CLOCK.jumped = asked.get("jumped", _CLOCK.jumped)
            if "full" in asked:
                self._disk.fill(asked["full"])
            if "collect" in asked:
                gc.collect()
            self.say(done=True)
        os._exit(1)


def _live(settings: dict[str, Any], log: int, reins: int) -> int:
    """Serve until SIGTERM, as the command does."""
    from hallujudge.judge_service.errors import HallujudgeError
    from hallujudge.judge_service.server.logs import set_up_logging
    from hallujudge.judge_service.server.server import serve
    from hallujudge.judge_service.settings.loading import load_settings

    os.dup2(log, 2)
    os.close(log)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    disk = _Disk()
    sqlite3.connect = disk.connect  # type: ignore[assignment]  # every call names its options
    _CLOCK.jumped = settings.pop("jumped")
    disk.fill(settings.pop("full"))
    test = _Reins(socket.socket(fileno=reins), disk)
    test.say(pid=os.getpid())
    test.follow()
    resolved = load_settings(settings, environ={})
    set_up_logging(resolved.server.log.level)
    try:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(serve(resolved, lambda address: test.say(address=address)))
    except HallujudgeError as err:  # as the command: one sentence, and the service manager waits
        logging.getLogger(__name__).error("%s", err)
        return 2
    finally:
        logging.shutdown()
    test.say(ended=True)
    return 0


def _new_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(_Selector())


def main(descriptor: int) -> None:
    """Fork a life for each message, until the test is gone."""
    _warm()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as test:
        while True:
            message, given, _, _ = socket.recv_fds(test, _MAX_BYTES, 2)
            if not message:
                return
            if not os.fork():
                test.close()
                code = 1
                try:
                    code = _live(json.loads(message), *given)
                finally:
                    os._exit(code)
            for one in given:
                os.close(one)


class Nursery:
    """The process from which lives are forked; a context manager."""

    def __enter__(self) -> Nursery:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        tests = str(Path(__file__).resolve().parents[1])
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": tests, "HALLUJUDGE_WORKERS": "1"},
        )
        theirs.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._socket.close()
        assert self._process.wait(60) == 0

    def launch(self, settings: dict[str, Any], log: int) -> socket.socket:
        """Start a life, and return the socket to it.

        Args:
            settings: The settings of the server, ``jumped`` (how far its wall clock is off), and
                ``full`` (whether its disk is full).
            log: The descriptor for its standard error, which stays open here.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = array.array("i", [log, theirs.fileno()])
            socket.send_fds(self._socket, [json.dumps(settings).encode()], list(descriptors))
        return ours


if __name__ == "__main__":
    main(int(sys.argv[1]))
