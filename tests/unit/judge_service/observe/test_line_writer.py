"""Lines for a reader that does not read are dropped and counted; nobody waits for it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from support.threads import PATIENCE

from hallujudge.judge_service.observe.line_writer import LineWriter
from hallujudge.judge_service.server.logs import WritingHandler

_FILLED = b"." * 4096


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that is full."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    with suppress(BlockingIOError):
        while True:
            os.write(ends[1], _FILLED)
    os.set_blocking(ends[1], True)
    yield ends
    os.close(ends[0])


def test_lines_that_nobody_reads_are_dropped_and_counted(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1], "test")
    for number in range(25_000):
        writer.put(str(number))
    # One round may be under way, and another one may wait.
    assert 5_000 <= writer.dropped < 25_000
    kept = 25_000 - writer.dropped
    text = _read_while(pipe[0], writer)
    assert text.lstrip(".").count("\n") == kept


def test_closing_does_not_wait_longer_than_it_may(pipe: tuple[int, int]) -> None:
    handler = WritingHandler(pipe[1])
    handler.emit(logging.LogRecord("n", logging.ERROR, "p", 1, "lost", (), None))
    closing = threading.Thread(target=handler.close)
    closing.start()
    closing.join(PATIENCE)
    assert not closing.is_alive()


def test_a_record_that_cannot_be_formatted_is_a_line(pipe: tuple[int, int]) -> None:
    handler = WritingHandler(pipe[1])
    handler.emit(logging.LogRecord("n", logging.ERROR, "p", 1, "%d", ("x",), None))
    parts: list[bytes] = []

    def read() -> None:
        while b"formatted" not in b"".join(parts):
            parts.append(os.read(pipe[0], 1 << 16))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    handler.close()
    reading.join(PATIENCE)
    assert b"can't be formatted: TypeError" in b"".join(parts)


def test_a_descriptor_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    writer = LineWriter(pipe[1], "test")
    writer.put("after all")
    assert _read_while(pipe[0], writer).endswith("after all\n")
    assert writer.dropped == 0


def _read_while(end: int, writer: LineWriter) -> str:
    """Return all that a pipe has, until its writer is closed."""
    closing = threading.Thread(target=writer.close)
    closing.start()
    found = b"".join(iter(lambda: os.read(end, 1 << 16), b""))
    closing.join()
    return found.decode()
