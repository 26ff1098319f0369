"""The root command and its groups; the other modules add commands to them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command_from_info

from hallujudge.metrics.families import FAMILIES

from .panels import examples
from .strict import PlainGroup, StrictTyper

__all__ = [
    "ExitCode",
    "app",
    "batch_app",
    "build_app",
    "config_app",
    "jobs_app",
    "keys_app",
    "label_app",
    "score_app",
]


class ExitCode(enum.IntEnum):
    """Process exit codes."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    UNSCORED = 3


# The help page lists commands in this order: scoring first, maintenance last.
_COMMANDS = (
    "score",
    "archive",
    "audit",
    "report",
    "view",
    "merge",
    "rescore",
    "label",
    "calibrate",
    "judge",
    "compare",
    "gate",
    "leaderboard",
    "metrics",
    "analyze",
    "build",
    "graph",
    "serve",
    "top",
    "keys",
    "submit",
    "jobs",
    "fetch",
    "batch",
    "doctor",
    "config",
)


class _RootGroup(PlainGroup):
    """The root command, whose help page lists the commands by use."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of the help page."""
        return sorted(self.commands, key=_COMMANDS.index)


class _FamilyGroup(PlainGroup):
    """A group to which families add commands.

    The modules of families are imported when the group is used: their options come from the
    metrics' declarations, and the other commands should not wait for those. A command of a family's
    name waits for that family alone.
    """

    _built: MutableMapping[str, Any]
    _families: int
    """Number of commands of families that are built."""

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All commands by name."""
        return self._with(FAMILIES)

    @commands.setter
    def commands(self, built: MutableMapping[str, Any]) -> None:
        self._built = built
        self._families = 0

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name; None: there is no such command."""
        family = cmd_name.replace("-", "_")
        own = self._with([family]).get(cmd_name) if family in FAMILIES else None
        return own or super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of their families."""
        # Which family was imported first depends on the commands that a process ran before.
        return sorted(self.commands, key=self._place)

    def _place(self, name: str) -> int:
        """Return the place of a command's family; commands of no family come first."""
        family = self._built[name].callback.__module__.rpartition(".")[2]
        return FAMILIES.index(family) if family in FAMILIES else -1

    def _with(self, families: Iterable[str]) -> MutableMapping[str, Any]:
        """Return the commands by name, those of some families among them."""
        for family in families:
            import_module(f".{family}", __package__)
        infos = _FAMILY_APPS[self.name or ""].registered_commands
        # Building a command takes milliseconds, and this is read several times in a run.
        for info in infos[self._families :]:
            command = get_command_from_info(
                info, pretty_exceptions_short=True, rich_markup_mode="rich"
            )
            self._built.setdefault(command.name or "", command)
        self._families = len(infos)
        return self._built


app = StrictTyper(
    name="hallujudge",
    cls=_RootGroup,
    help="Hallucination scores for vision and video language models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("hallujudge score chair -r captions.jsonl -R objects.json -o results"),
)


def _group(
    name: str, help_text: str, example: str, cls: type[PlainGroup] = PlainGroup
) -> typer.Typer:
    group = StrictTyper(cls=cls, help=help_text, no_args_is_help=True, epilog=examples(example))
    app.add_typer(group, name=name)
    return group


score_app = _group(
    "score",
    "Score responses that a model wrote.",
    "hallujudge score pope -r answers.jsonl -R questions.json -o results",
    cls=_FamilyGroup,
)
build_app = _group(
    "build",
    "Build questions to ask a model, and references.",
    "hallujudge build pope --objects objects.json -o questions.jsonl",
    cls=_FamilyGroup,
)
batch_app = _group(
    "batch",
    "Language models that are run offline, by batch files.",
    "hallujudge batch export requests.jsonl score tri-he -r a.jsonl -o run",
)
keys_app = _group(
    "keys",
    "API keys of the server: who may call, what for, and how much.",
    "hallujudge keys create ana --scope score --file keys.json",
)
label_app = _group(
    "label",
    "Human labels of claims: what to label next, and files of labels.",
    "hallujudge label plan results -n 100",
)
jobs_app = _group(
    "jobs",
    "Runs that a server keeps.",
    "hallujudge jobs list --server localhost:50051",
)
config_app = _group("config", "Settings of the server.", "hallujudge config show")
_FAMILY_APPS = {"score": score_app, "build": build_app}


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(f"hallujudge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version, then exit."
        ),
    ] = False,
) -> None:
    """Hallucination scores for vision and video language models."""
