"""Generate the command-line reference from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

INTRODUCTION = """# Command line

This page is generated from the program itself. `hallujudge COMMAND --help` prints the same text.
Exit codes are listed in [Exit codes and errors](exit-codes-and-errors.md).
"""


def cli_page() -> str:
    """Return the page: one section per command, one table per group of options."""
    return "\n".join([INTRODUCTION, *_sections(_root(), ("hallujudge",))])


def _root() -> Any:
    """Return the click command behind ``hallujudge``, with every subcommand registered."""
    from hallujudge.sdk.cli import command_tree

    return command_tree()


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    children: dict[str, Any] = getattr(command, "commands", {})
    if len(path) > 1:
        yield _section(command, path)
    for name, child in children.items():
        yield from _sections(child, (*path, name))


def _section(command: Any, path: tuple[str, ...]) -> str:
    level = "#" * len(path)
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    usage = " ".join([" ".join(path), *command.collect_usage_pieces(context)])
    more = getattr(command, "more_help", str)()
    prose = _prose(f"{command.help}\n\n{more}")
    parts = [f"{level} `{' '.join(path)}`", "", *prose, f"    {usage}", ""]
    parts += _example(command.epilog or "")
    for panel, rows in _panels(command, context).items():
        head = "argument" if panel == "Arguments" else "option"
        parts += [f"**{panel}**", "", f"| {head} | meaning |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def _example(epilog: str) -> list[str]:
    """Return the command that ends a help page."""
    commands = epilog.partition("Example:\n")[2].splitlines()
    return ["**Example**", "", *(f"    {command}" for command in commands), ""] if commands else []


def _prose(text: str | None) -> list[str]:
    """Return help text as Markdown; click's no-rewrap mark starts a literal block."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", (text or "").strip()):
        if block.startswith("\b"):
            lines += [f"    {line}" for line in block.lstrip("\b\n").splitlines()]
        else:
            lines += [_escape(block)]
        lines.append("")
    return lines


def _panels(command: Any, context: Any) -> dict[str, list[str]]:
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or parameter.name == "help":
            continue
        row = f"| `{record[0].strip()}` | {_escape(record[1])} |"
        panels.setdefault(parameter.panel, []).append(row)
    return panels


def _escape(text: str) -> str:
    """Escape what Markdown would read as markup inside a table cell."""
    text = " ".join(text.split())
    return re.sub(r"([|<>*_\[\]])", r"\\\1", text)
