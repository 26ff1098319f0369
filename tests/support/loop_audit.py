"""Records which thread opens files, uses databases, resolves names, sleeps and writes to logs."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, wraps
from types import FrameType
from typing import Any

import pytest

# https://docs.python.org/3/library/audit_events.html; reading the status of a file has none.
_EVENTS = frozenset({"open", "sqlite3.connect", "time.sleep", "subprocess.Popen", "fcntl.flock"})
_PREFIXES = ("os.", "shutil.", "socket.get", "glob.")
# They ask the system for what it has in memory.
_IN_MEMORY = frozenset({"socket.gethostname", "os.putenv", "os.unsetenv"})
# Functions without an event: the status of a file, and what logs are written with.
_FUNCTIONS = ("stat", "lstat", "write", "fsync")


@dataclass
class IoAudit:
    """What did I/O: in the thread of a running event loop, and in other threads."""

    in_loop: list[str] = field(default_factory=list)
    """What ran in the thread of an event loop, with the code that did it."""
    elsewhere: list[str] = field(default_factory=list)
    """What ran in other threads."""
    package: Counter[str] = field(default_factory=Counter)
    """Files of the package itself that were read in the thread of an event loop."""

    def note(self, what: str) -> None:
        """Record an access in this thread."""
        if not _runs_a_loop():
            self.elsewhere.append(what)
        elif (place := _place(sys._getframe(1))) is None:
            return
        elif "/hallujudge/" in what and what.startswith(("open ", "os.listdir ")):
            self.package[what] += 1
        else:
            self.in_loop.append(f"{what} at {place}")


_running: list[IoAudit] = []


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _place(frame: FrameType | None) -> str | None:
    """Return the code of the library that caused an access; None if it was no such code.

    The first use of a module reads its code, once in the life of a process. The first call of each
    file makes coverage look up its path.
    """
    found = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib") or "/coverage/" in name:
            return None
        if found is None and "/hallujudge/" in name and "/tests/" not in name:
            found = f"{name.rpartition('/hallujudge/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return found


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    watched = event in _EVENTS or event.startswith(_PREFIXES)
    if _running and watched and event not in _IN_MEMORY:
        _note(f"{event} {arguments[0] if arguments else ''}")


def _note(what: str) -> None:
    if _running:
        _running[-1].note(what[:200])


# A hook can't be removed, and every later event of the process calls it: added on first use.
_add_hook = cache(lambda: sys.addaudithook(_hook))


@contextmanager
def io_audit(monkeypatch: pytest.MonkeyPatch) -> Iterator[IoAudit]:
    """Provide the record of what does I/O until the end of the block."""
    audit, connect = IoAudit(), sqlite3.connect
    _add_hook()

    def noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def noted(*arguments: Any, **named: Any) -> Any:
            _note(f"os.{name} {arguments[0]}")
            return function(*arguments, **named)

        return noted

    def traced(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        # Called for each statement, in the thread that runs it.
        connection.set_trace_callback(lambda statement: _note(f"sqlite {statement}"))
        return connection

    with monkeypatch.context() as patch:
        for name in _FUNCTIONS:
            patch.setattr(os, name, noting(name, getattr(os, name)))
        for module in (sqlite3, sqlite3.dbapi2):
            patch.setattr(module, "connect", traced)
        _running.append(audit)
        try:
            yield audit
        finally:
            _running.pop()
