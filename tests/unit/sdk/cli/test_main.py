"""The entry point of the command line."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from support.packages import install

from hallujudge.sdk.cli import command_tree, main
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
    # Modules add their commands once in a process, which must not be to the copy.
    command_tree()
    install(tmp_path, monkeypatch, "hallujudge.commands", "shout = shouting")
    monkeypatch.setattr(app, "commands", dict(app.commands))

    assert main(["shout"]) == 0
    assert capsys.readouterr().out == "HALLO\n"

    assert main(["--help"]) == 0
    assert "Further commands:\n  shout  " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import missing_of_tests", "No module named 'missing_of_tests'"),
        ("raise SystemExit('no licence')", "no licence"),
        ("1 / 0", "division by zero"),
    ],
)
def test_a_command_that_cannot_be_loaded_stops_no_other_one(
    code: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "whispering.py").write_text(code)
    install(tmp_path, monkeypatch, "hallujudge.commands", "whisper = whispering")
    problem = (
        f"the command whisper (whispering) can't be loaded: {why}. Update or uninstall the package "
        "that registers it\n"
    )

    assert main(["whisper"]) == 2
    assert capsys.readouterr().err == f"error: {problem}"

    assert main(["--help"]) == 0
    shown = capsys.readouterr()
    assert shown.err == f"note: {problem}"
    assert "\n  serve " in shown.out

    assert main(["serv"]) == 2
    assert "did you mean 'serve'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["serve", "ask"])
def test_another_package_does_not_replace_a_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "replacing.py").write_text(
        f"from hallujudge.sdk.cli.app import app\n@app.command()\ndef {name}() -> None: ...\n"
    )
    command_tree()
    before = app.commands[name]
    install(tmp_path, monkeypatch, "hallujudge.commands", f"{name} = replacing")

    assert main(["--help"]) == 0
    assert f"note: the command {name} of replacing is one of " in capsys.readouterr().err
    assert app.commands[name] is before


def test_another_package_adds_a_command_to_a_group_of_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command_tree()
    archives = app.commands["archive"]
    assert isinstance(archives, click.Group)
    monkeypatch.setattr(archives, "commands", dict(archives.commands))
    (tmp_path / "added_mine.py").write_text(
        "import click\n"
        "from hallujudge.sdk.cli.app import app\n"
        "@app.commands['archive'].command()\n"
        "def mine() -> None:\n"
        '    """Print a word."""\n'
        "    click.echo('MINE')\n"
    )
    install(tmp_path, monkeypatch, "hallujudge.commands", "archive.mine = added_mine")

    assert main(["archive", "mine"]) == 0
    assert capsys.readouterr().out == "MINE\n"

    assert main(["archive", "--help"]) == 0
    assert "\n  mine " in capsys.readouterr().out


def test_a_command_that_its_module_does_not_add_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "silent.py").touch()
    install(tmp_path, monkeypatch, "hallujudge.commands", "calm = silent", "build.calm = silent")

    assert main(["build", "calm"]) == 2
    assert "No such command 'calm'; choose from references, infact, " in capsys.readouterr().err

    assert main(["calm"]) == 2
    assert "No such command 'calm'; choose from demo, new, score, " in capsys.readouterr().err


def test_completions_say_nothing_of_a_command_that_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "whispering.py").write_text("1 / 0")
    install(tmp_path, monkeypatch, "hallujudge.commands", "whisper = whispering")
    monkeypatch.setenv("_HALLUJUDGE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "hallujudge serv")
    monkeypatch.setenv("COMP_CWORD", "1")

    with pytest.raises(SystemExit):
        main([])

    shown = capsys.readouterr()
    assert shown.out == "plain,serve\n"
    assert shown.err == ""


def test_a_command_that_is_called_in_a_process_leaves_its_end_alone(
    registered: list[Callable[[], object]],
) -> None:
    assert main(["--version"]) == 0

    assert gc.freeze not in registered
