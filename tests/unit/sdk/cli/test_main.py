"""The entry point of the command line."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hallujudge.sdk.cli import main
from hallujudge.sdk.cli.app import app


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


def test_another_package_adds_a_command_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shouting.py").write_text(
        "import click\n"
        "from hallujudge.sdk.cli.app import app\n"
        "@app.command()\n"
        "def shout() -> None:\n"
        '    """Print a word."""\n'
        "    click.echo('HALLO')\n"
    )
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[hallujudge.commands]\nshout = shouting\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(app, "commands", dict(app.commands))

    assert main(["shout"]) == 0
    assert capsys.readouterr().out == "HALLO\n"

    assert main(["--help"]) == 0
    assert "Further commands:\n  shout  " in capsys.readouterr().out


def test_a_command_that_is_called_in_a_process_leaves_its_end_alone(
    registered: list[Callable[[], object]],
) -> None:
    assert main(["--version"]) == 0

    assert gc.freeze not in registered
