"""Commands made of annotated functions: strict parsing, help pages in panels, completion."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import (
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from hallujudge.metrics.errors import choose_from, meant

from ..errors import InvalidInputError, OutputError
from .parameters import parameters_of, shown_name

ASKED = "_HALLUJUDGE_COMPLETE"
"""The variable by which a shell asks for completions."""
_F = TypeVar("_F", bound=Callable[..., Any])


class _WholeWords(click.HelpFormatter):
    """Writes help pages whose lines break at blanks alone, so that flags and names stay whole."""

    # No place to break a line for textwrap, which click uses.
    _HYPHEN = "\u2011"

    def write(self, string: str) -> None:
        """Write a text as it is."""
        super().write(string.replace(self._HYPHEN, "-"))

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line that shows how a command is used."""
        super().write_usage(prog, args.replace("-", self._HYPHEN), prefix)

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(text.replace("-", self._HYPHEN))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names with what they mean."""
        whole = [(name, text.replace("-", self._HYPHEN)) for name, text in rows]
        super().write_dl(whole, col_max, col_spacing)


class _Context(click.Context):
    formatter_class = _WholeWords


class PanelCommand(click.Command):
    """A command whose help page lists arguments and options by panel."""

    context_class = _Context

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: arguments are a panel."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the panels, in the order of their first parameters."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panel = getattr(parameter, "panel", "Options")
                panels.setdefault(panel, []).append(record)
        for panel in sorted(panels, key=lambda name: name != "Arguments"):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


class StrictCommand(PanelCommand):
    """A command that takes single values once, and no empty value.

    Without it the last of two files counts and the first is ignored. An empty value, which an unset
    variable of a shell leaves, means the current folder, this process or the default.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            InvalidInputError: A value is empty, or an option for one value is given twice.
        """
        # Parsed twice: click keeps the last of two values, and forgets that there was a first.
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(parameter.name for parameter in order)
        for parameter in {parameter.name: parameter for parameter in order}.values():
            value, shown = given.get(parameter.name or ""), shown_name(parameter)
            parts = [*value] if isinstance(value, list | tuple) else [value]
            if "" in parts:
                # The words of another command have its options among them.
                before = parts[: parts.index("")][-1:]
                flags = [flag for flag in map(str, before) if flag.startswith("--")]
                raise InvalidInputError(f"{[*flags, shown][0]} is empty; give a value")
            # A switch may be given twice, since its meaning stays the same.
            single = not (getattr(parameter, "multiple", False) or isinstance(value, bool))
            if single and counts[parameter.name] > 1:
                raise InvalidInputError(_twice(shown, parameter.opts, args))
        return super().parse_args(ctx, args)


class Group(PanelCommand, click.Group):
    """A group of commands."""

    # A function stays a function, which others may call; with click it becomes the command.
    def command(  # type: ignore[override]
        self, name: str = "", **settings: Any
    ) -> Callable[[_F], _F]:
        """Return a decorator that adds a function as a command.

        Args:
            name: The command's name; empty for the function's.
            settings: Further settings of the command.
        """

        def added(function: _F) -> _F:
            self.add_command(command_of(function, name, **settings))
            return function

        return added

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the commands under their headings."""
        super().format_options(ctx, formatter)
        shown: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                shown.setdefault(self.heading_of(name), []).append((name, _line_of(command)))
        formatter.write_paragraph()
        self.write_commands(shown, formatter)

    def write_commands(
        self, shown: Mapping[str, Sequence[tuple[str, str]]], formatter: click.HelpFormatter
    ) -> None:
        """Write heading -> names and lines of commands."""
        # No blank line between headings: all commands are to be seen on one screen.
        for heading, rows in shown.items():
            formatter.write_heading(heading)
            with formatter.indentation():
                formatter.write_dl(rows)

    def heading_of(self, name: str) -> str:  # noqa: ARG002
        """Return the heading of the help page under which a command is."""
        return "Commands"

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that arguments begin with.

        Raises:
            UsageError: There is none; the error names those that exist.
        """
        # A shell that asks for completions may be given anything.
        named = ctx.resilient_parsing or args[0].startswith("-")
        if not named and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            raise click.UsageError(
                f"No such command {args[0]!r}; {choose_from(args[0], names)}", ctx
            )
        return super().resolve_command(ctx, args)


def command_of(
    function: Callable[..., Any],
    name: str = "",
    cls: type[StrictCommand] = StrictCommand,
    **settings: Any,
) -> StrictCommand:
    """Return the command of an annotated function.

    Args:
        function: The function; its docstring is the help.
        name: The command's name; empty for the function's.
        cls: The class of the command.
        settings: Further settings of the command.
    """
    parameters, called = parameters_of(function)
    return cls(
        name=name or function.__name__.replace("_", "-"),
        callback=called,
        params=parameters,
        help=inspect.getdoc(function),
        **settings,
    )


def group_of(function: Callable[..., Any], cls: type[Group], name: str, **settings: Any) -> Group:
    """Return a group whose own options are those of a function, which is called before a command.

    Args:
        function: The function; its docstring is the help.
        cls: The class of the group.
        name: The group's name.
        settings: Further settings of the group.
    """
    parameters, _ = parameters_of(function)
    text = inspect.getdoc(function)
    return cls(name=name, callback=function, params=parameters, help=text, **settings)


def _line_of(command: click.Command) -> str:
    """Return the first paragraph of a command's help."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _twice(shown: str, flags: Iterable[str], args: Iterable[str]) -> str:
    """Return the error about an option for one value that is given twice."""
    typed = dict.fromkeys(part.partition("=")[0] for part in args)
    if len(names := [name for name in typed if name in flags]) > 1:
        return f"{' and '.join(names)} are one option; give one of them"
    return f"{shown} is given more than once; give one value"


def usage_error(error: click.ClickException) -> str:
    """Return an error of click's as one sentence, without the full stop at its end."""
    if isinstance(error, click.NoSuchOption):
        name, known = error.option_name, error.possibilities or ()
        # Without their hyphens, which are alike in all names.
        flags = {each.strip("-"): each for each in known}
        near = meant(name.strip("-"), flags)
        return f"No such option {name!r}{f'; did you mean {flags[near]!r}?' if near else ''}"
    problem = error.format_message().removesuffix(".")
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        return f"{problem}, as in: {example_of(error.ctx.command)}"
    return problem


def example_of(command: click.Command) -> str:
    """Return the example of a command's help page in one line."""
    # The first two lines are the mark that stops click from breaking lines, and the heading.
    lines = (command.epilog or "").splitlines()[2:]
    return " ".join(line.rstrip("\\").strip() for line in lines)


_NAME = "hallujudge"
_SHELLS = ("bash", "zsh", "fish", "powershell")


@add_completion_class
class PowerShellComplete(ShellComplete):
    """Completion by PowerShell, which click has no script for."""

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $cursor)
    $env:%(complete_var)s = "powershell_complete"
    $env:COMP_WORDS = "$line"
    $env:COMP_WORD = $word
    %(prog_name)s
    Remove-Item Env:%(complete_var)s, Env:COMP_WORDS, Env:COMP_WORD -ErrorAction Ignore
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is completed, and that one."""
        words, word = split_arg_string(os.environ["COMP_WORDS"]), os.environ.get("COMP_WORD", "")
        return words[1 : -1 if word else None], word

    def format_completion(self, item: click.shell_completion.CompletionItem) -> str:
        """Return the text that the shell inserts."""
        return str(item.value)


def users_shell() -> str:
    """Return the user's shell.

    Raises:
        InvalidInputError: There is no completion for it.
    """
    name = Path(os.environ.get("SHELL", "powershell" if os.name == "nt" else "")).stem
    name = "powershell" if name == "pwsh" else name
    if name not in _SHELLS:
        named = f"SHELL is {name!r}" if name else "SHELL is not set"
        raise InvalidInputError(f"{named}; completion works in {', '.join(_SHELLS)}")
    return name


def completion_script(command: click.Command, name: str) -> str:
    """Return the script of a shell."""
    kind = get_completion_class(name)
    assert kind is not None, "click knows the others"
    return kind(command, {}, _NAME, ASKED).source()


def install_completion(command: click.Command, name: str) -> Path:
    """Write the script of a shell where the shell reads it, and return that file.

    Raises:
        OutputError: A file can't be written.
    """
    settings = Path.home() / ".config"
    if name == "fish":
        file, start = settings / f"fish/completions/{_NAME}.fish", None
    else:
        file, start = settings / f"{_NAME}/completion.{name}", _start_file(name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(completion_script(command, name), encoding="utf-8")
        if start is not None:
            _add_line(start, _READ[name].format(file=file))
    except OSError as err:
        raise OutputError.of(file, err, "use --show-completion and save the script") from err
    return file


# Zsh completes nothing before compinit.
_READ = {
    "bash": ". '{file}'",
    "zsh": "autoload -Uz compinit && compinit; . '{file}'",
    "powershell": ". '{file}'",
}


def _start_file(name: str) -> Path:
    """Return the file that a shell reads at its start."""
    if name == "powershell":
        folder = "Documents/PowerShell" if os.name == "nt" else ".config/powershell"
        return Path.home() / folder / "Microsoft.PowerShell_profile.ps1"
    return Path.home() / f".{name}rc"


def _add_line(file: Path, line: str) -> None:
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    # Asking for completion twice must not add the line twice.
    if line not in before.splitlines():
        file.parent.mkdir(parents=True, exist_ok=True)
        end = "" if before.endswith("\n") or not before else "\n"
        file.write_text(f"{before}{end}{line}\n", encoding="utf-8")
