"""Values that a command would otherwise lose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from support.running import assert_refused, here
from typer.exceptions import TyperException

from hallujudge.sdk.cli import command_tree
from hallujudge.sdk.cli.app import StrictCommand, StrictTyper


def commands(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        yield from commands(command) if hasattr(command, "commands") else (command,)


_DAMAGED = "a\udcff"


@pytest.mark.parametrize(
    "given",
    [
        *(
            ["--number", text]
            for text in ("1", "007", "0", "101", "-1", " 5", "5.0", "x", "9" * 20)
        ),
        ["--number", "9" * 5000],
        *(["--path", text] for text in (".", "/dev/null", "absent", "a//b", _DAMAGED)),
        *(["--text", text] for text in ("plain", "é", _DAMAGED, "1")),
        ["--several", "a", "--several", "é"],
        ["--several", "a", "--several", _DAMAGED],
        ["--share", "0.5"],
        ["--share", "2"],
        [],
    ],
)
def test_plain_values_are_converted_as_typer_converts_them(given: list[str]) -> None:
    assert converted(StrictTyper(), given) == converted(typer.Typer(), given)


def converted(app: typer.Typer, given: list[str]) -> object:
    """Return the values that a command receives, with their types, or the error."""
    received: list[object] = []

    @app.command()
    def command(
        number: Annotated[int, typer.Option(min=0, max=100)] = 3,
        path: Path = Path("default"),
        text: str = "default",
        several: list[str] | None = None,
        share: Annotated[float, typer.Option(max=1)] = 0.25,
    ) -> None:
        received.extend((number, path, text, list(several or ()), share))

    try:
        typer.main.get_command(app).main(given, standalone_mode=False)
    except TyperException as err:
        return type(err), str(err)
    return [(type(value), value) for value in received]


def test_every_command_is_strict() -> None:
    found = list(commands(typer.main.get_command(command_tree())))
    assert len(found) > 50
    assert [command.name for command in found if not isinstance(command, StrictCommand)] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["report", ""], "argument 'runs' is empty; give a value"),
        (["compare", "runs/a", ""], "argument 'runs' is empty; give a value"),
        (["merge", "a", "b", "--out", ""], "--out is empty; give a value"),
        (["calibrate", "a", "--labels", ""], "--labels is empty; give a value"),
        (["gate", "a", "--max", "chair_i=0.2", "--max", ""], "--max is empty; give a value"),
        (["serve", "--port", "1", "--port", "2"], "--port is given more than once; give one value"),
        (["rescore", "a", "-o", "b", "-o", "c"], "--out is given more than once"),
        (["judge", "card", "--on", "a", "--on", "b"], "--on is given more than once"),
        (["archive", "inspect", ""], "is empty; give a value"),
        (["keys", "create", ""], "argument 'name' is empty; give a value"),
        (["submit", "chair", "--request-id", ""], "--request-id is empty; give a value"),
        (["submit", "", "--request-id"], "argument 'command' is empty; give a value"),
    ],
)
def test_no_value_is_empty_and_no_single_one_is_lost(given: list[str], said: str) -> None:
    assert_refused(here(*given), said)


def test_a_switch_may_be_given_twice(tmp_path: Path) -> None:
    run = here("analyze", tmp_path / "nowhere", "--html", "--html")
    assert_refused(run, "nowhere")
    assert "more than once" not in run.stderr
