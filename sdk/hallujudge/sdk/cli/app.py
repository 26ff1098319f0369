"""The root command and its groups, to which the other modules add commands.

Also what every command needs: strict parsing, panels of help pages, exit codes and signals.
"""

from __future__ import annotations

import enum
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command_from_info

from hallujudge.metrics.errors import BenchmarkError
from hallujudge.metrics.families import (
    FAMILIES,
    add_benchmarks,
    benchmarks_of,
    families,
    has_module,
)

from ..errors import CancelledError, InvalidInputError

# Typer's own placeholders are names of Python types, and a switch would seem to take a value.
BENCHMARK = "--benchmark"
"""The option that names a file of declarations, of every command."""
_PLACEHOLDERS = {bool: "", int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}
# Python refuses to read a number of thousands of digits; Typer says so.
_PLAIN_DIGITS = 9


class PlainGroup(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with the option for help."""
        return _with_placeholders(super().get_params(ctx))


class StrictTyper(typer.Typer):
    """A group whose commands are strict."""

    def __init__(self, *, cls: type[PlainGroup] = PlainGroup, **settings: Any) -> None:
        super().__init__(cls=cls, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Return a decorator that makes a function a strict command."""
        return super().command(name, **{"cls": StrictCommand, **settings})


class StrictCommand(TyperCommand):
    """A command that takes single values once, and no empty value.

    Without it the last of two files counts and the first is ignored. An empty value, which an unset
    variable of a shell leaves, means the current folder, this process or the default.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with the option for help."""
        return _with_placeholders(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            InvalidInputError: A value is empty, or an option for one value is given twice.
        """
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(parameter.name for parameter in order)
        for parameter in {parameter.name: parameter for parameter in order}.values():
            value, shown = given.get(parameter.name or ""), _shown(parameter)
            if "" in (parts := [*_parts(value)]):
                # The words of another command have its options among them.
                before = parts[: parts.index("")][-1:]
                flags = [flag for flag in map(str, before) if flag.startswith("--")]
                raise InvalidInputError(f"{[*flags, shown][0]} is empty; give a value")
            # A switch may be given twice, since its meaning stays the same.
            single = not (getattr(parameter, "multiple", False) or isinstance(value, bool))
            if single and counts[parameter.name] > 1:
                raise InvalidInputError(_twice(shown, parameter.opts, args))
        return super().parse_args(ctx, args)


class _Option(TyperOption):
    """An option whose default and plain values are not converted by Typer.

    Typer imports pydantic for that, which takes a fifth of the time of a short command.
    """

    def process_value(self, ctx: Any, value: Any) -> Any:
        """Return the converted value, or what the callback makes of it."""
        if value is None and not self.required:
            made = () if self.multiple or self.nargs == -1 else None
        elif (made := _plain_value(self.type_descriptor, value)) is None:
            return super().process_value(ctx, value)
        return self.callback(ctx, self, made) if self.callback else made


def _plain_value(wanted: Any, value: Any) -> Any:
    """Return a value as Typer would convert it; None if Typer has to decide.

    Args:
        wanted: Typer's description of the option's type.
        value: The default, one text, or several texts.
    """
    kind, info = wanted.annotation, wanted.parameter_info
    if info.parser is not None:
        return None
    if get_origin(kind) is list and isinstance(value, (list, tuple)):
        [single] = get_args(kind)
        made = [_plain_single(single, info, each) for each in value]
        return None if None in made else made
    return _plain_single(kind, info, value)


def _plain_single(kind: object, info: Any, value: Any) -> Any:
    """Return a single value as Typer would convert it; None if Typer has to decide."""
    if kind in _PLACEHOLDERS and not isinstance(value, str):
        return value if type(value) is kind else None
    # Bytes that are not UTF-8 arrive as half surrogate pairs, which Typer refuses.
    if not (isinstance(value, str) and value.isascii() and value.isprintable()):
        return None
    if kind is str:
        return value
    if kind is int and value.isdecimal() and len(value) <= _PLAIN_DIGITS:
        low, high = info.min, info.max
        number = int(value)
        within = (low is None or number >= low) and (high is None or number <= high)
        return number if within else None
    if kind is Path and (not os.path.lexists(value) or os.access(value, os.R_OK)):
        return Path(value)
    return None


def _with_placeholders(parameters: list[Any]) -> list[Any]:
    """Return parameters whose values have names on help pages."""
    for option in parameters:
        if isinstance(option, TyperOption):
            # Typer has no way to choose the class of an option.
            option.__class__ = _Option
            if option.metavar is None:
                option.metavar = _placeholder(option.type_descriptor.annotation)
    return parameters


def _placeholder(kind: object) -> str | None:
    """Return the placeholder of an option's value on help pages; None keeps Typer's."""
    of_list = get_args(kind)
    one = of_list[0] if of_list else kind
    return _PLACEHOLDERS.get(one) if isinstance(one, type) else None


def _twice(shown: str, flags: Iterable[str], args: Iterable[str]) -> str:
    """Return the error about an option for one value that is given twice."""
    typed = dict.fromkeys(part.partition("=")[0] for part in args)
    if len(names := [name for name in typed if name in flags]) > 1:
        return f"{' and '.join(names)} are one option; give one of them"
    return f"{shown} is given more than once; give one value"


def _parts(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _shown(parameter: Any) -> str:
    """Return how other errors name an option or an argument."""
    name = str(parameter.opts[0])
    return name if name.startswith("-") else f"argument {name!r}"


input_option = partial(typer.Option, rich_help_panel="Input")
metric_option = partial(typer.Option, rich_help_panel="Metric")
judge_option = partial(typer.Option, rich_help_panel="Judge")
budget_option = partial(typer.Option, rich_help_panel="Budget")
statistics_option = partial(typer.Option, rich_help_panel="Statistics")
output_option = partial(typer.Option, rich_help_panel="Output")
server_option = partial(typer.Option, rich_help_panel="Server")
access_option = partial(typer.Option, rich_help_panel="Access")


def examples(*lines: str) -> str:
    """Return the end of a command's help page: one command line in one or more lines.

    Args:
        lines: The command line; every line but the last ends in a backslash.
    """
    # Typer shows two line feeds as one line break.
    return "\n\n".join(["Example:", *lines])


class ExitCode(enum.IntEnum):
    """Process exit codes."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    UNSCORED = 3


# The help page lists commands by task, in this order.
_TASKS = {
    "Score": ("demo", "new", "score", "archive", "rescore", "merge", "metrics", "audit"),
    "Look and compare": (
        "report", "view", "compare", "gate", "leaderboard", "table", "analyze",
    ),
    "Judges, labels and words": ("judge", "label", "calibrate", "batch", "graph"),
    "Ask a model": ("build", "ask"),
    "Server": ("serve", "keys", "submit", "jobs", "fetch"),
    "Installation": ("doctor", "config"),
}  # fmt: skip


class _RootGroup(PlainGroup):
    """The root command, whose help page lists the commands by task."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of the help page."""
        commands: Mapping[str, Any] = self.commands
        for task, names in _TASKS.items():
            for name in names:
                commands[name].rich_help_panel = task
        return [name for names in _TASKS.values() for name in names]

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Return the context of a command line; an interrupt is an error."""
        with _interrupts():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Call the command of a context; an interrupt is an error."""
        with _interrupts():
            return super().invoke(ctx)


@contextmanager
def _interrupts() -> Iterator[None]:
    """Raise an error in place of an interrupt, for which Typer exits with 130 and says nothing."""
    try:
        yield
    except KeyboardInterrupt as err:
        raise CancelledError(f"stopped by {stopped_by(err)}") from err


def _add_commands(family: str) -> None:
    """Add the commands of a family: those of its declarations, and those of its own module."""
    declared = benchmarks_of(family)
    if declared:
        import_module(".answers_command", __package__).add_commands(family)
    if not declared or has_module(__package__, family):
        import_module(f".{family}", __package__)


class _FamilyGroup(PlainGroup):
    """A group to which families add commands.

    The modules of families are imported when the group is used: their options come from the
    metrics' declarations, and the other commands should not wait for those. A command whose name
    begins with a family's waits for that family alone.
    """

    _built: MutableMapping[str, Any]
    _families: int
    """Number of commands of families that are built."""

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """All commands by name."""
        return self._with(families())

    @commands.setter
    def commands(self, built: MutableMapping[str, Any]) -> None:
        self._built = built
        self._families = 0

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name; None if there is no such command."""
        own = [family for family in FAMILIES if cmd_name.startswith(family.replace("_", "-"))]
        return self._with(own).get(cmd_name) or super().get_command(ctx, cmd_name)

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
            _add_commands(family)
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


def command_group(
    name: str, help_text: str, example: str, cls: type[PlainGroup] = PlainGroup
) -> typer.Typer:
    """Add a group of commands.

    Args:
        name: Its name.
        help_text: What it is for.
        example: A command of it.
        cls: How its commands are found.
    """
    group = StrictTyper(cls=cls, help=help_text, no_args_is_help=True, epilog=examples(example))
    app.add_typer(group, name=name)
    return group


score_app = command_group(
    "score",
    "Score responses that a model wrote.",
    "hallujudge score pope -r answers.jsonl -R questions.json -o results",
    cls=_FamilyGroup,
)
build_app = command_group(
    "build",
    "Build questions to ask a model, and references.",
    "hallujudge build pope --objects objects.json -o questions.jsonl",
    cls=_FamilyGroup,
)
batch_app = command_group(
    "batch",
    "Language models that are run offline, by batch files.",
    "hallujudge batch export requests.jsonl score tri-he -r a.jsonl -o run",
)
keys_app = command_group(
    "keys",
    "API keys of the server: who may call, and how much.",
    "hallujudge keys create ana --scope score --file keys.json",
)
label_app = command_group(
    "label",
    "Human labels of claims: what to label next, and files.",
    "hallujudge label plan results -n 100",
)
jobs_app = command_group(
    "jobs",
    "Runs that a server keeps.",
    "hallujudge jobs list --server localhost:50051",
)
config_app = command_group("config", "Settings of the server.", "hallujudge config show")
_FAMILY_APPS = {"score": score_app, "build": build_app}


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(f"hallujudge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: ARG001 - its callback ends the process
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version, then exit."
        ),
    ] = False,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            BENCHMARK,
            metavar="FILE",
            help="Python file that declares benchmarks; anywhere in a command line; repeatable.",
        ),
    ] = None,
) -> None:
    """Hallucination scores for vision and video language models."""
    try:
        add_benchmarks(benchmark or ())
    except BenchmarkError as err:
        raise InvalidInputError(f"{BENCHMARK}: {err}") from err


class TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM."""


def stopped_by(err: KeyboardInterrupt) -> str:
    """Return what stopped a command: ``Ctrl-C`` or ``SIGTERM``."""
    return "SIGTERM" if isinstance(err, TerminatedError) else "Ctrl-C"


@contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise :class:`TerminatedError`, as Ctrl-C raises ``KeyboardInterrupt``."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set handlers.
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        # A server that ends ignores the signal until its process is gone.
        if signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, before)
