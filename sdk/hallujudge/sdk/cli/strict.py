"""Commands that refuse options and arguments whose value would otherwise be lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from ..errors import InvalidInputError

__all__ = ["PlainGroup", "StrictCommand", "StrictTyper"]


# Typer's own placeholders are names of Python types, and a switch would seem to take a value.
_PLACEHOLDERS = {bool: "", int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}


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
            if any(part == "" for part in _parts(value)):
                raise InvalidInputError(f"{shown} is empty; give a value")
            # A switch that is given twice says the same.
            single = not (getattr(parameter, "multiple", False) or isinstance(value, bool))
            if single and counts[parameter.name] > 1:
                raise InvalidInputError(_twice(shown, parameter.opts, args))
        return super().parse_args(ctx, args)


def _with_placeholders(parameters: list[Any]) -> list[Any]:
    """Return parameters whose values have names on help pages."""
    for option in parameters:
        if isinstance(option, TyperOption) and option.metavar is None:
            option.metavar = _placeholder(option.type_descriptor.annotation)
    return parameters


def _placeholder(kind: object) -> str | None:
    """Return what stands for an option's value on help pages; None: Typer's own."""
    of_list = get_args(kind)
    one = of_list[0] if of_list else kind
    return _PLACEHOLDERS.get(one) if isinstance(one, type) else None


def _twice(shown: str, flags: Iterable[str], args: Iterable[str]) -> str:
    """Return what to say of an option for one value that is given twice."""
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
