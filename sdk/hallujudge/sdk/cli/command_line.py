"""The command line as a whole: find the command, call it, print its error."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, TextIO

try:
    from dataclasses import replace

    import click

    from hallujudge.judge_service.command_process import memory_problem, output_problem, run_command
    from hallujudge.judge_service.entry_points import loaded, registered
    from hallujudge.metrics.errors import BenchmarkError, HallujudgeDeprecationWarning
    from hallujudge.metrics.families import declaring_line, has_module
    from hallujudge.sdk import cli

    from ..errors import (
        CancelledError,
        HallujudgeError,
        InvalidInputError,
        NotFoundError,
        UnsupportedError,
    )
    from .app import BENCHMARK, ExitCode, FamilyGroup, app, stop_on_sigterm, stopped_by
    from .commands import ASKED, usage_error
except KeyboardInterrupt:
    # Half of a short command's time is imports, which begin before there is a command to stop.
    sys.exit("error: stopped by Ctrl-C")

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_NEW_OBJECTS = 1_000_000
_READERS = frozenset({"archive", "audit", "compare", "gate", "leaderboard", "report"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Command-line arguments; None for those of this process.

    Returns:
        The exit code.
    """
    # Items are freed by their reference counts. Looking for cycles among them takes a tenth of a
    # run, and finds none; nor does looking again after ten times.
    gc.set_threshold(_NEW_OBJECTS, _NEW_OBJECTS)
    if arguments is None:
        # The process ends with the command, and looks for cycles among all that it has imported
        # once more. That takes 40 ms, an eighth of the time of a short command, and frees nothing.
        atexit.register(gc.freeze)
        typed = tuple(sys.argv[1:])
        return run_command(partial(_run, partial(_execute, typed), typed))
    typed = tuple(arguments)
    return _run(partial(_execute, typed), typed)


_COMMANDS = "hallujudge.commands"
"""The group of entry points that add commands. The name of one is the command's words with dots in
between, and its value is the module that adds the command."""
# Importing a module adds its commands to the tree; families are imported when they are used.
_MODULES = {
    "archive_commands": ("archive", "demo", "new", "score"),
    "info_commands": ("config", "doctor", "metrics"),
    "job_commands": ("batch", "fetch", "jobs", "submit"),
    "run_commands": ("compare", "gate", "merge", "report", "rescore", "view"),
    "server_commands": ("keys", "serve"),
}


def _add_family(family: str) -> None:
    """Add the commands of a family: those that score its metrics, and those of its own module."""
    scored = import_module(".score_commands", __package__).add_commands(family)
    if not scored or has_module(__package__, family):
        import_module(f".{family}", __package__)


# Modules of commands import `app`, which therefore knows none of them.
FamilyGroup.add_family = staticmethod(_add_family)


def command_tree(words: Sequence[str] | None = None) -> click.Group:
    """Return the command line with its commands.

    Args:
        words: The words of the command that is used, which waits for no other one's module; empty
            for those of the root's help page. None for all commands, which are there too if the
            words are not those of a command.

    Raises:
        InvalidInputError: The module of the command can't be loaded.
    """
    own = [name for name, firsts in _MODULES.items() if words and words[0] in firsts]
    _import_own(own)
    if own and not _takes_more(words or ()):
        return app
    # Only here: to read the metadata of all installed packages takes 5 to 20 ms.
    added = registered(_COMMANDS)
    used = [each for each in added if all(map(str.__eq__, each.name.split("."), words or ()))]
    if words is not None and not words:
        # The root's help page lists groups without their commands.
        used = [each for each in used if "." not in each.name]
    if own and not used:
        return app
    if not words or not used:
        _import_own(_MODULES)
    for each in used or added:
        _load(each, each.name.split(".") == list(words or ())[: each.name.count(".") + 1])
    # The error about a command that its module does not add lists all commands.
    return app if not words or all(map(_is_added, used)) else command_tree()


def _takes_more(words: Sequence[str]) -> bool:
    """Return whether another package may have a part in what is typed: a group, or its command."""
    group = app.commands[words[0]]
    # Families add the commands of others; looking for one there would import them all.
    if not isinstance(group, click.Group) or isinstance(group, FamilyGroup):
        return False
    return len(words) == 1 or words[1] not in group.commands


def _is_added(entry: EntryPoint) -> bool:
    """Return whether the commands have the one that an entry point is named by."""
    found: click.Command | None = app
    for word in entry.name.split("."):
        found = found.commands.get(word) if isinstance(found, click.Group) else None
    return found is not None


def _load(entry: EntryPoint, typed: bool) -> None:
    """Load a module of commands; a broken one of another package stops its own command alone."""
    try:
        loaded(entry, "command")
    except InvalidInputError as err:
        if typed:
            raise
        # A shell shows what is written while it asks for completions between the words.
        if ASKED not in os.environ:
            click.echo(f"note: {err}", err=True)


def _import_own(modules: Iterable[str]) -> None:
    for name in modules:
        import_module(f".{name}", __package__)


def _execute(typed: tuple[str, ...]) -> object:
    """Execute the command of the arguments, and return its exit code."""
    first = _with_pairs_joined(_with_benchmarks_first(typed))
    words = None if ASKED in os.environ else _words_of_command(first)
    # The version is asked for by scripts, and needs no module of a command.
    tree = app if first == ["--version"] else command_tree(words)
    with _shown_deprecations(), _shown_reading(first):
        # click would print errors and end the process itself, with exit codes of its own.
        result = tree(first, prog_name="hallujudge", standalone_mode=False, obj=typed)
    # Other commands return an exit code or nothing, and need no module of the score commands.
    if isinstance(result, int | None) or not isinstance(result, cli.ScoreCommand):
        return result
    return cli.ScoreExecution(replace(result, typed=typed)).execute()


def _words_of_command(arguments: Sequence[str]) -> list[str]:
    """Return the words before the first option, those of benchmarks apart, which come first."""
    place = 0
    while place < len(arguments) and arguments[place].partition("=")[0] == BENCHMARK:
        place += 1 if "=" in arguments[place] else 2
    return [*takewhile(lambda word: not word.startswith("-"), arguments[place:])]


def _with_pairs_joined(arguments: list[str]) -> list[str]:
    """Return the arguments with the two marks of ``--thought-marks OPEN CLOSE`` as one value.

    Within quotes they are one value already.
    """
    joined = list(arguments)
    for at in reversed([n for n, text in enumerate(arguments) if text == "--thought-marks"]):
        if len(joined[at + 1 : at + 3]) == 2 and " " not in joined[at + 1]:
            joined[at + 1 : at + 3] = [" ".join(joined[at + 1 : at + 3])]
    return joined


@contextmanager
def _shown_deprecations() -> Iterator[None]:
    """Print what is deprecated as notes, without the line of code that Python names."""
    with warnings.catch_warnings():
        # Python shows a deprecation once a place, and by default only in __main__.
        warnings.simplefilter("always", HallujudgeDeprecationWarning)
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, HallujudgeDeprecationWarning):
                click.echo(f"note: {message}", err=True)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _shown_reading(arguments: Sequence[str]) -> AbstractContextManager[None]:
    """Return what shows how far a command has read its files, if it reads large ones itself."""
    # `score METRIC` shows it while it prepares its run, and after that how far the run is.
    if not _READERS.intersection(arguments[:1]) and tuple(arguments[:2]) != ("score", "all"):
        return nullcontext()
    return cli.shown_reading()


def _with_benchmarks_first(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the benchmarks from outside first: commands are made of them."""
    first: list[str] = []
    rest = list(arguments)
    # What follows two hyphens is not an option.
    end = rest.index("--") if "--" in rest else len(rest)
    flags = [word.partition("=")[0] for word in rest[:end]]
    while BENCHMARK in flags:
        place = flags.index(BENCHMARK)
        count = 1 if "=" in rest[place] else 2
        first += rest[place : place + count]
        del rest[place : place + count], flags[place : place + count]
    return [*first, *rest]


def _run(command: Callable[[], object], typed: tuple[str, ...]) -> int:
    """Run a command; print an expected error as one line on standard error.

    Args:
        command: The command.
        typed: The arguments that an error names.

    Returns:
        The exit code.
    """
    fail = partial(_fail, typed)
    try:
        # A server follows signals itself.
        with nullcontext() if typed[:1] == ("serve",) else stop_on_sigterm():
            code = command()
    except click.Abort:
        return fail("stopped", ExitCode.FAILED)
    except KeyboardInterrupt as err:
        # It may have stopped an import: the names of inputs would import the same again, in part.
        click.echo(f"error: stopped by {stopped_by(err)}", err=True)
        return ExitCode.FAILED
    except CancelledError as err:
        # A server's error may hold what a terminal would obey.
        if not isinstance(err.__cause__, KeyboardInterrupt):
            return fail(str(err), ExitCode.FAILED)
        # So may an interrupt within a command have done.
        click.echo(f"error: {err}", err=True)
        return ExitCode.FAILED
    except (InvalidInputError, NotFoundError, UnsupportedError) as err:
        return fail(str(err), ExitCode.BAD_INPUT)
    except HallujudgeError as err:
        return fail(str(err), ExitCode.FAILED)
    except click.exceptions.NoArgsIsHelpError as err:
        click.echo(err.format_message())
        return int(ExitCode.BAD_INPUT)
    except click.ClickException as err:
        return fail(f"{usage_error(err)} (--help shows the options)", ExitCode.BAD_INPUT)
    except BrokenPipeError:
        # The process that reads our output has ended, as `head` does.
        return ExitCode.FAILED
    except Exception as err:
        if problem := memory_problem(err):
            return fail(problem, ExitCode.FAILED)
        # The code of a user's own benchmark may raise anything, such as an OSError.
        place, known = declaring_line(err), isinstance(err, BenchmarkError)
        if place:
            problem = str(err) if known else f"{type(err).__name__}: {err}"
            return fail(f"{place}: {problem}. Correct the benchmark there", ExitCode.BAD_INPUT)
        if known:
            return fail(str(err), ExitCode.BAD_INPUT)
        if not isinstance(err, OSError):
            raise
        return fail(output_problem(err), ExitCode.FAILED)
    return int(code) if isinstance(code, int) else ExitCode.OK


def _fail(typed: tuple[str, ...], message: str, code: ExitCode) -> int:
    click.echo(f"error: {cli.in_flags(message, typed)}", err=True)
    return int(code)
