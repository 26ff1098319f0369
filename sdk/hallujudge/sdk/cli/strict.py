"""Commands that refuse options whose value would otherwise be lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand

from ..errors import InvalidInputError

__all__ = ["StrictCommand"]

_FILES = ("Input", "Output")
"""Panels of options that name files and their keys."""


class StrictCommand(TyperCommand):
    """A command that takes a file once, and no empty name of one.

    Without it the last of two files counts and the first is ignored. An empty name, which an unset
    variable of a shell leaves, means the current folder to Python.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            InvalidInputError: An option for one file is given twice, or without a name.
        """
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(parameter.name for parameter in order)
        for parameter in {parameter.name: parameter for parameter in order}.values():
            if getattr(parameter, "rich_help_panel", None) not in _FILES:
                continue
            value, option = given.get(parameter.name or ""), parameter.opts[0]
            if value == "" or (isinstance(value, list) and "" in value):
                raise InvalidInputError(f"{option} is empty; give a value")
            single = not (getattr(parameter, "multiple", False) or value is True)
            if single and counts[parameter.name] > 1:
                raise InvalidInputError(f"{option} is given more than once; give one value")
        return super().parse_args(ctx, args)
