"""Lines for a reader that does not read are dropped and counted; no call waits for it."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from support.threads import PATIENCE

from hallujudge.judge_service.observe import CallRecord
from hallujudge.judge_service.server.logs import LineWriter, ShortFormatter, WritingHandler, is_news
from hallujudge.judge_service.server.observation import AccessLog

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
    handler, access = WritingHandler(pipe[1]), AccessLog(f"/dev/fd/{pipe[1]}")
    handler.emit(logging.LogRecord("n", logging.ERROR, "p", 1, "lost", (), None))
    access.call_ended(CallRecord(method="Score"))
    for log in (handler, access):
        closing = threading.Thread(target=log.close, daemon=True)
        closing.start()
        closing.join(PATIENCE)
        assert not closing.is_alive(), log


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


def test_a_descriptor_with_a_large_number_is_waited_for_too(pipe: tuple[int, int]) -> None:
    """As a process has that serves more than a thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        large = fcntl.fcntl(pipe[1], fcntl.F_DUPFD_CLOEXEC, 2_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    os.close(pipe[1])
    test_a_descriptor_that_does_not_block_is_waited_for((pipe[0], large))


def _read_while(end: int, writer: LineWriter) -> str:
    """Return all that a pipe has, until its writer is closed."""
    closing = threading.Thread(target=writer.close)
    closing.start()
    found = b"".join(iter(lambda: os.read(end, 1 << 16), b""))
    closing.join()
    return found.decode()


def line(message: str, *arguments: object, error: BaseException | None = None) -> str:
    exc_info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("n", logging.ERROR, "p", 1, message, arguments, exc_info)
    return ShortFormatter("%(levelname)s %(message)s").format(record)


def test_a_long_value_is_cut() -> None:
    text = line("model %s", "x" * 20_000_000)
    assert text.endswith("x… (20000006 characters)")
    assert len(text) < 2_100


def test_line_breaks_and_escape_sequences_are_shown_as_text() -> None:
    assert line("name %s", "a\nERROR forged\x1b[2J\u2028") == (
        r"ERROR name a\nERROR forged\x1b[2J\u2028"
    )


def test_the_middle_of_a_long_traceback_is_left_out() -> None:
    try:
        raise ValueError("y" * 1_000_000 + "\x1b[2Jend")
    except ValueError:
        error = sys.exc_info()[1]
    text = line("error %s", "id", error=error)
    assert text.startswith("ERROR error id\nTraceback")
    assert text.endswith(r"\x1b[2Jend")
    assert "characters …" in text
    assert len(text) < 21_000


def test_headers_of_callers_that_are_not_utf_8_are_no_news() -> None:
    def record(name: str, message: str) -> logging.LogRecord:
        return logging.LogRecord(name, logging.ERROR, "p", 1, message, (b"\x81",), None)

    assert not is_news(record("grpc._cython.cygrpc", "Invalid encoding on %s"))
    assert is_news(record("grpc._cython.cygrpc", "Unexpected [%s]"))
    assert is_news(record("hallujudge.judge_service", "Invalid encoding on %s"))


@pytest.mark.parametrize(
    ("logger", "error", "news"),
    [
        ("grpc._cython.cygrpc", asyncio.CancelledError, False),
        ("grpc._cython.cygrpc", ValueError, True),
        ("hallujudge.judge_service", asyncio.CancelledError, True),
    ],
)
def test_a_call_that_grpc_cancelled_is_no_news(
    logger: str, error: type[BaseException], news: bool
) -> None:
    record = logging.LogRecord(
        logger, logging.ERROR, "p", 1, "Exception not handled", (), (error, error(), None)
    )
    assert is_news(record) is news
