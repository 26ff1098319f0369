"""Groups of options: their fields are the command's options, and it gets the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import click
from click.testing import CliRunner

from hallujudge.sdk.cli.commands import command_of
from hallujudge.sdk.cli.parameters import option, parameters_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Options that commands share."""

    out: Annotated[str, option("--out", help="Where to.")]
    """Required."""
    seed: Annotated[int, option("--seed")] = 3
    """With a default."""


def command(*, name: Annotated[str, option("--name")] = "n", common: Common) -> None:
    """Says what it got."""
    click.echo(f"{name} {common}")


def test_fields_replace_the_group_in_place() -> None:
    parameters, _ = parameters_of(command)
    assert [each.name for each in parameters] == ["name", "out", "seed"]
    assert [each.required for each in parameters] == [False, True, False]
    assert parameters[2].default == 3
    assert command_of(command).help == "Says what it got."


def test_they_are_parsed_and_the_command_gets_its_group() -> None:
    app = command_of(command)
    ran = CliRunner().invoke(app, ["--out", "here", "--seed", "7"])
    assert (ran.exit_code, ran.output) == (0, f"n {Common(out='here', seed=7)}\n")
    assert "--out" in CliRunner().invoke(app, ["--help"]).output


def test_a_required_option_of_a_group_is_missed() -> None:
    assert CliRunner().invoke(command_of(command), []).exit_code == 2
