"""Log lines have a bounded length, and callers can't forge them."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from hallujudge.judge_service.server.logs import ShortFormatter, is_news


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
