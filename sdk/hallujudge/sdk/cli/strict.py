"""Commands that refuse options and arguments whose value would otherwise be lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from ..errors import InvalidInputError

__all__ = ["StrictCommand", "StrictTyper"]


class StrictTyper(typer.Typer):
    """A group whose commands are strict."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Return a decorator that makes a function a strict command."""
        return super().command(name, **{"cls": StrictCommand, **settings})


class StrictCommand(TyperCommand):
    """A command that takes single values once, and no empty value.

    Without it the last of two files counts and the first is ignored. An empty value, which an unset
    variable of a shell leaves, means the current folder, this process or the default.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            InvalidInputError: A value is empty, or an option for one value is given twice.
        """
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(parameter.name for parameter in order)
        for parameter in {parameter.name: parameter for parameter in order}.values():
            value, shown = given.get(parameter.name or ""), _shown(parameter)
            if any(part == "" for part in _parts(value)):
                raise InvalidInputError(f"{shown} is empty; give a value")
            # A switch that is given twice says the same.
            single = not (getattr(parameter, "multiple", False) or isinstance(value, bool))
            if single and counts[parameter.name] > 1:
                raise InvalidInputError(f"{shown} is given more than once; give one value")
        return super().parse_args(ctx, args)


def _parts(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _shown(parameter: Any) -> str:
    """Return how other errors name an option or an argument."""
    name = str(parameter.opts[0])
    return name if name.startswith("-") else f"argument {name!r}"
