"""Every command's help: panels, short noun phrases, one example that parses, 80 columns."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from hallujudge.sdk.cli import command_tree, main

PANELS = {"Input", "Metric", "Judge", "Model", "Budget", "Output", "Statistics", "Server", "Access"}


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from walk(inner, (*path, name))


ROOT: Any = command_tree()
COMMANDS = dict(walk(ROOT))
LEAVES = {path: command for path, command in COMMANDS.items() if not hasattr(command, "commands")}
IDS = [" ".join(path) or "hallujudge" for path in COMMANDS]


def _needs(command: Any) -> bool:
    return any(parameter.required for parameter in command.params)


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@cache
def help_of(path: tuple[str, ...], lines: int = 0) -> str:
    """Return a help page as a pipe gets it, or a terminal of so many lines."""
    shown = Terminal() if lines else io.StringIO()
    with contextlib.redirect_stdout(shown), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setenv("LINES", f"{lines}")
        ROOT.main([*path, "--help"], prog_name="hallujudge", standalone_mode=False)
    return shown.getvalue()


def test_the_root_lists_every_command_once_by_task_on_a_line_each() -> None:
    tasks: dict[str, list[str]] = {}
    for line in help_of(()).splitlines():
        if heading := re.fullmatch("([A-Z].*):", line):
            tasks[heading[1]] = []
        elif name := re.match("  ([a-z]+)  ", line):
            tasks[[*tasks][-1]].append(name[1])
        elif tasks and [*tasks][-1] not in ("Options", "Installation"):
            assert not line.startswith("   "), "the help of a command goes on in a second line"
    assert len(tasks) > 5
    assert "score" in tasks["Score"]
    assert {"compare", "gate", "leaderboard"} <= {*tasks["Look and compare"]}
    shown = [name for names in tasks.values() for name in names]
    assert sorted(shown) == sorted(path[0] for path in COMMANDS if len(path) == 1)


def test_the_root_fits_a_screen_of_50_lines() -> None:
    assert len(help_of(()).splitlines()) < 50
    assert help_of((), 50) == help_of(())


@pytest.mark.parametrize("lines", [24, 40, 49])
def test_a_lower_terminal_shows_the_names_of_all_commands_by_task(lines: int) -> None:
    page = help_of((), lines)
    assert len(page.splitlines()) < 24
    listed = re.findall("^  ([A-Z][^:]+): (.+)$", page, re.MULTILINE)
    assert "score" in dict(listed)["Score"].split(", ")
    names = [name for _, found in listed for name in found.split(", ")]
    assert sorted(names) == sorted(path[0] for path in COMMANDS if len(path) == 1)


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_no_line_is_longer_than_80_columns(path: tuple[str, ...]) -> None:
    lines = help_of(path).splitlines()
    assert max(map(len, lines)) <= 80
    # Lines also break after a hyphen.
    shown = "".join(help_of(path).split())
    for name, inner in getattr(COMMANDS[path], "commands", {}).items():
        first = inner.help.partition("\n\n")[0]
        assert f"{name}{''.join(first.split())}" in shown, "the help of a command is cut"


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_help_ends_with_an_example_that_parses(path: tuple[str, ...]) -> None:
    epilog = COMMANDS[path].epilog or ""
    mark, head, *lines = epilog.splitlines()
    # The mark keeps click from breaking the lines again.
    assert (mark, head) == ("\b", "Example:")
    # The page shows it as it is written: no line is wrapped.
    shown = [line.strip() for line in help_of(path).splitlines()]
    assert all(line.strip() in shown for line in lines)
    name, *words = shlex.split("\n".join(lines).replace("\\\n", " "))
    assert name == "hallujudge"
    target = [part for part in COMMANDS if part and words[: len(part)] == list(part)]
    leaf = max(target, key=len)
    assert leaf in LEAVES
    assert leaf[: len(path)] == path
    LEAVES[leaf].make_context(leaf[-1], words[len(leaf) :])


@pytest.mark.parametrize("path", [path for path, of in LEAVES.items() if _needs(of)], ids=" ".join)
def test_an_error_about_what_is_missing_has_the_example(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(path)) == 2
    example = " ".join(LEAVES[path].epilog.split()[2:]).replace("\\ ", "")
    assert f"', as in: {example} (--help shows" in capsys.readouterr().err


@pytest.mark.parametrize("path", LEAVES, ids=[" ".join(path) for path in LEAVES])
def test_options_have_short_help_in_panels(path: tuple[str, ...]) -> None:
    for parameter in LEAVES[path].params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        text = parameter.help or ""
        assert 0 < len(text) <= 60, (path, parameter.name, text)
        if parameter.param_type_name == "option":
            assert parameter.panel in PANELS, (path, parameter.name)


@pytest.mark.parametrize("path", COMMANDS, ids=IDS)
def test_values_of_options_are_named_in_words_and_switches_take_none(path: tuple[str, ...]) -> None:
    context = COMMANDS[path].make_context("", [], resilient_parsing=True)
    for option in COMMANDS[path].get_params(context):
        if option.param_type_name == "option":
            shown = option.make_metavar(context)
            # An option with choices shows these: [text|toml].
            named = shown in (option.metavar, "N", "NUMBER", "TEXT", "PATH") or "|" in shown
            assert option.is_flag or named, (path, option.name, shown)
            record = option.get_help_record(context)
            assert record is None or record[0].endswith(shown) != option.is_flag, record


def test_the_same_option_means_the_same_everywhere() -> None:
    names: dict[str, set[str]] = {}
    for path, command in LEAVES.items():
        if path[0] == "score":
            for parameter in command.params:
                short = {name for name in parameter.opts if not name.startswith("--")}
                names.setdefault(parameter.name, set()).add(",".join(sorted(short)))
    assert all(len(found) == 1 for found in names.values()), names
    assert [names[name] for name in ("responses", "references", "out")] == [{"-r"}, {"-R"}, {"-o"}]
