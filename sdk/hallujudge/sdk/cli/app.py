"""The root command and its groups, to which the other modules add commands.

Also what every command needs: strict parsing, panels of help pages, exit codes and signals.
"""

from __future__ import annotations

import enum
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import click

from hallujudge import sdk
from hallujudge.metrics.errors import BenchmarkError
from hallujudge.metrics.families import FAMILIES, add_benchmarks, broken_benchmarks, families

from ..errors import CancelledError, InvalidInputError
from .commands import Group, completion_script, group_of, install_completion, users_shell
from .parameters import Declaration, option

BENCHMARK = "--benchmark"
"""The option that names a file of declarations, of every command."""

input_option = partial(option, panel="Input")
metric_option = partial(option, panel="Metric")
judge_option = partial(option, panel="Judge")
budget_option = partial(option, panel="Budget")
statistics_option = partial(option, panel="Statistics")
output_option = partial(option, panel="Output")
server_option = partial(option, panel="Server")
access_option = partial(option, panel="Access")


def examples(*lines: str) -> str:
    """Return the end of a command's help page: one command line in one or more lines.

    Args:
        lines: The command line; every line but the last ends in a backslash.
    """
    # Click breaks the lines of other paragraphs itself.
    return "\n".join(["\b", "Example:", *lines])


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
# As the root's page lists the metrics that they are for.
_BUILT = (
    "references", "infact", "infact-questions", "infact-audit", "pope", "seen-probes", "tri-he",
    "vidhal", "vidhal-votes", "vidhal-best",
)  # fmt: skip
# Lines after the commands of the help page: its example, and the shell's prompt.
_BELOW = 4
# The heading of commands that other packages add.
_FURTHER = "Further commands"


def _module_of(command: click.Command) -> str:
    """Return the module that has added a command; groups are this module's."""
    return getattr(command.callback, "__module__", __name__)


class _KeepingGroup(Group):
    """A group whose commands no other package replaces."""

    order: Sequence[str] = ()
    """Names of the commands that come first on the help page."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of the help page."""
        listed = [name for name in self.order if name in self.commands]
        # Others, such as those of other packages, come by name: their order of loading varies.
        return [*listed, *sorted(self.commands.keys() - listed)]

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command.

        Raises:
            InvalidInputError: Another module has added one of this name.
        """
        before = self.commands.get(name or cmd.name or "")
        if before and _module_of(before) != _module_of(cmd):
            raise InvalidInputError(
                f"the command {name or cmd.name} of {_module_of(cmd)} is one of "
                f"{_module_of(before)} already; rename one, or uninstall its package"
            )
        super().add_command(cmd, name)


class _RootGroup(_KeepingGroup):
    """The root command, whose help page lists the commands by task."""

    order = tuple(name for names in _TASKS.values() for name in names)

    def heading_of(self, name: str) -> str:
        """Return the task of a command."""
        return next((task for task, names in _TASKS.items() if name in names), _FURTHER)

    def write_commands(
        self, shown: Mapping[str, Sequence[tuple[str, str]]], formatter: click.HelpFormatter
    ) -> None:
        """Write the commands, of which a terminal that is too low for all lines gets the names."""
        lines = formatter.getvalue().count("\n") + len(shown) + sum(map(len, shown.values()))
        # What is not read in a terminal has no end of its screen.
        if not sys.stdout.isatty() or lines + _BELOW <= shutil.get_terminal_size().lines:
            super().write_commands(shown, formatter)
            return
        formatter.write_heading("Commands, each with --help of its own")
        with formatter.indentation():
            for heading, rows in shown.items():
                formatter.write_text(f"{heading}: {', '.join(name for name, _ in rows)}")

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """Return the context of a command line; an interrupt is an error."""
        with _interrupts():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command of a context; an interrupt is an error."""
        with _interrupts():
            return super().invoke(ctx)


@contextmanager
def _interrupts() -> Iterator[None]:
    """Raise an error in place of an interrupt, for which click only says that it aborted."""
    try:
        yield
    except KeyboardInterrupt as err:
        raise CancelledError(f"stopped by {stopped_by(err)}") from err


class FamilyGroup(_KeepingGroup):
    """A group to which families add commands.

    The modules of families are imported when the group is used: their options come from the
    metrics' declarations, and the other commands should not wait for those. A command whose name
    begins with a family's waits for that family alone.
    """

    add_family: Callable[[str], None]
    """Adds the commands of a family; the package sets it, since it alone knows all modules."""
    _built: MutableMapping[str, click.Command]

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        """All commands by name."""
        return self._with(families())

    @commands.setter
    def commands(self, built: MutableMapping[str, click.Command]) -> None:
        self._built = built

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        """Return the names of the commands in the order of their families."""
        # Which family was imported first depends on the commands that a process ran before.
        return sorted(self.commands, key=self._place)

    def _place(self, name: str) -> int:
        """Return the place of a command's family; commands of no family come first."""
        called = self.commands[name].callback
        family = called.__module__.rpartition(".")[2] if called else ""
        return FAMILIES.index(family) if family in FAMILIES else -1

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command; one that a family had before stays."""
        self._built.setdefault(name or cmd.name or "", cmd)

    def forget(self, name: str) -> None:
        """Remove a command, so that another one of its name can be added."""
        self._built.pop(name, None)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name; None if there is no such command."""
        # All families are imported, which takes long, only where none of these has it.
        own = [family for family in FAMILIES if cmd_name.startswith(family.replace("_", "-"))]
        return self._with(own).get(cmd_name) or super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that arguments begin with.

        Raises:
            UsageError: There is none; the error names installed benchmarks that can't be used.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as err:
            why = f". A benchmark of your own is read from the file that {BENCHMARK} names"
            why += "".join(f". Not usable: {fault}" for fault in broken_benchmarks().values())
            raise click.UsageError(f"{err.message}{why}", err.ctx) from err

    def _with(self, families: Iterable[str]) -> MutableMapping[str, click.Command]:
        """Return the commands by name, those of some families among them."""
        for family in families:
            FamilyGroup.add_family(family)
        return self._built


def _instead(flag: str, text: Callable[[], str], help_text: str) -> Declaration:
    """Return a switch by which a text is printed in place of any command's work."""

    def printed(asked: bool) -> None:
        if asked:
            click.echo(text(), nl=False)
            raise click.exceptions.Exit

    return option(flag, callback=printed, is_eager=True, help=help_text)


def _version() -> str:
    return f"hallujudge {sdk.__version__}\n"


def _script() -> str:
    return completion_script(app, users_shell())


def _installed() -> str:
    name = users_shell()
    return f"{name} reads {install_completion(app, name)} when it is started the next time\n"


def _root(
    version: Annotated[  # noqa: ARG001 - its callback ends the process
        bool, _instead("--version", _version, "Print the version, then exit.")
    ] = False,
    benchmark: Annotated[
        list[str] | None,
        option(BENCHMARK, metavar="FILE", help="Python file that declares benchmarks; repeatable."),
    ] = None,
    install_completion: Annotated[  # noqa: ARG001 - as that of --version
        bool,
        _instead(
            "--install-completion", _installed, "Make this shell complete commands, then exit."
        ),
    ] = False,
    show_completion: Annotated[  # noqa: ARG001 - as that of --version
        bool, _instead("--show-completion", _script, "Print the script for that, then exit.")
    ] = False,
) -> None:
    """Hallucination scores for vision and video language models."""
    try:
        add_benchmarks(benchmark or ())
    except BenchmarkError as err:
        raise InvalidInputError(f"{BENCHMARK}: {err}") from err


app = group_of(
    _root,
    _RootGroup,
    "hallujudge",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("hallujudge score chair -r captions.jsonl -R objects.json -o results"),
)


def command_group(
    name: str,
    help_text: str,
    example: str,
    cls: type[_KeepingGroup] = _KeepingGroup,
    order: Sequence[str] = (),
) -> Group:
    """Add a group of commands.

    Args:
        name: Its name.
        help_text: What it is for.
        example: A command of it.
        cls: How its commands are found.
        order: Names of the commands that come first on its help page.
    """
    group = cls(name=name, help=help_text, no_args_is_help=True, epilog=examples(example))
    group.order = order
    app.add_command(group)
    return group


score_app = command_group(
    "score",
    "Score responses that a model wrote.",
    "hallujudge score pope -r answers.jsonl -R questions.json -o results",
    cls=FamilyGroup,
)
build_app = command_group(
    "build",
    "Build questions to ask a model, and references.",
    "hallujudge build pope --objects objects.json -o questions.jsonl",
    order=_BUILT,
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
