"""Tasks of worker processes, which import them by name."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hallujudge.judge_service.forked_workers import head_of
from hallujudge.metrics import Item
from hallujudge.sdk.archives.json_lines import Mark
from hallujudge.sdk.errors import InvalidInputError


def given(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what does the tasks of a process: what the settings are."""
    return do


def refused(_settings: None) -> Callable[[Any], Any]:
    """Find a mistake of the user before the first task."""
    raise InvalidInputError("a mistake of the user")


def nothing(_task: None) -> None:
    """Do nothing."""


def die_while_writing(marker: Path) -> str:
    """Write a part of a result and die; return the whole result when called again."""
    if marker.exists():
        return "whole"
    marker.touch()
    for end in (each for each in gc.get_objects() if isinstance(each, socket.socket)):
        # The head of a reply, and less than its length.
        end.sendall(head_of(bytes(100)) + b"a part")
    os._exit(9)


def die(_task: None) -> None:
    """End the process."""
    os._exit(9)


def wait_forever(ready: Path) -> None:
    """Tell that the process is at work, and never end."""
    ready.touch()
    while True:
        os.read(os.pipe()[0], 1)


class DeadlyReader:
    """A reader of an archive that ends the process."""

    def items(self, _start: Mark, _size: int = 0) -> Iterator[Item]:
        """Yield nothing."""
        yield from ()

    def check(self, _start: Mark, _size: int) -> None:
        """End the process."""
        os._exit(9)


def refuse(_task: None) -> None:
    """Find a mistake of the user."""
    raise InvalidInputError("a mistake of the user")


def fail(_task: None) -> None:
    """Find a defect."""
    raise ZeroDivisionError("a defect")


def workers_of(caller: int) -> list[int]:
    """Return the process ids of the workers of a process, whose forkers are its children."""
    return [
        worker
        for forker in _children(caller)
        if b"hallujudge.judge_service.forked_workers" in _command(forker)
        for worker in _children(forker)
    ]


def _children(process: int) -> list[int]:
    found: list[int] = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += map(int, tasks.read_text().split())
    return found


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""
