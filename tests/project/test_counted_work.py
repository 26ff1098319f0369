"""Tests that count work count that work alone."""

from __future__ import annotations

from support.work import calls_of


class _Left:
    """Garbage that only the collector finds, and whose end calls a function."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        str(self)


def test_what_other_tests_left_is_not_counted() -> None:
    def work() -> None:
        held = [[number] for number in range(5_000)]
        held.clear()

    alone = calls_of(work)
    for _ in range(500):
        _Left()
    assert calls_of(work) == alone
