"""Values that a command would otherwise lose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
from support.running import assert_refused, here

from hallujudge.sdk.cli import command_tree
from hallujudge.sdk.cli.commands import StrictCommand, command_of
from hallujudge.sdk.cli.parameters import option
from hallujudge.sdk.errors import InvalidInputError


def commands(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        yield from commands(command) if hasattr(command, "commands") else (command,)


_DAMAGED = "a\udcff"


@pytest.mark.parametrize(
    ("given", "received"),
    [
        ([], (3, Path("default"), "default", [], 0.25)),
        (["--number", "007"], (7, Path("default"), "default", [], 0.25)),
        (["--number", " 5", "--share", "1"], (5, Path("default"), "default", [], 1.0)),
        (["--path", "a//b", "--text", "é"], (3, Path("a/b"), "é", [], 0.25)),
        (["--path", _DAMAGED, "--text", _DAMAGED], (3, Path(_DAMAGED), _DAMAGED, [], 0.25)),
        (["--several", "a", "--several", "1"], (3, Path("default"), "default", ["a", "1"], 0.25)),
    ],
)
def test_values_have_the_types_of_their_parameters(
    given: list[str], received: tuple[object, ...]
) -> None:
    made = converted(given)
    assert made == received
    assert [type(value) for value in made] == [type(value) for value in received]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--number", "101"], "--number is '101'; give 100 or less"),
        (["--number", "-1"], "--number is '-1'; give 0 or more"),
        (["--number", "5.0"], "--number is '5.0'; give a whole number"),
        (["--number", ""], "--number is empty; give a value"),
        # Python refuses to read a number of thousands of digits.
        (["--number", "9" * 5000], "999; give a whole number"),
        (["--share", "2"], "--share is '2'; give 1 or less"),
        (["--share", "nan"], "--share is 'nan'; give a number"),
        (["--share", "high"], "--share is 'high'; give a number"),
    ],
)
def test_other_values_are_refused_by_name(given: list[str], said: str) -> None:
    with pytest.raises((click.UsageError, InvalidInputError)) as caught:
        converted(given)
    assert said in str(caught.value)


def converted(given: list[str]) -> tuple[Any, ...]:
    """Return the values that a command receives."""

    def command(
        number: Annotated[int, option(min=0, max=100)] = 3,
        path: Path = Path("default"),
        text: str = "default",
        several: list[str] | None = None,
        share: Annotated[float, option(max=1)] = 0.25,
    ) -> tuple[Any, ...]:
        return number, path, text, list(several or ()), share

    received: tuple[Any, ...] = command_of(command).main(given, standalone_mode=False)
    return received


def test_every_command_is_strict() -> None:
    found = list(commands(command_tree()))
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
        (["judge", "panel", "a", "--out", "b", "-o", "c"], "--out and -o are one option; give one"),
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
