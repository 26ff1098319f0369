"""Declarations of options, arguments and examples, for uniform help pages."""

from __future__ import annotations

from functools import partial

import typer

__all__ = [
    "access_option",
    "budget_option",
    "examples",
    "input_option",
    "judge_option",
    "metric_option",
    "output_option",
    "server_option",
    "statistics_option",
]

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
    # Two line feeds stand for one line break on a help page.
    return "\n\n".join(["Example:", *lines])
