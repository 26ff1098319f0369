"""The entry point of the command line."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable

import pytest

from hallujudge.sdk.cli import main


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Return what is registered for the end of the process; nothing else is changed."""
    at_end: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_end.append)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    return at_end


def test_a_process_of_the_command_ends_without_another_search_for_cycles(
    registered: list[Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["hallujudge", "--version"])

    assert main() == 0

    assert gc.freeze in registered


def test_a_command_that_is_called_in_a_process_leaves_its_end_alone(
    registered: list[Callable[[], object]],
) -> None:
    assert main(["--version"]) == 0

    assert gc.freeze not in registered
