"""Groups of options that several commands share, each declared once as a dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import ParamSpec, TypeVar, get_type_hints

__all__ = ["grouped"]

P = ParamSpec("P")
T = TypeVar("T")


def grouped(command: Callable[P, T]) -> Callable[..., T]:
    """Turn each field of a dataclass parameter into an option of the command.

    Typer derives options from a command's signature and does not support groups of options. The
    returned wrapper therefore has one parameter for each field, and passes the dataclass built
    from them to the command.

    Args:
        command: The command; a parameter annotated with a dataclass is a group of options, whose
            fields are annotated like options.
    """
    hints = get_type_hints(command, include_extras=True)
    shown: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., object], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            options = list(_options(hint))
            groups[parameter.name] = (hint, [option.name for option in options])
            shown += options
        else:
            # Keyword-only, so that a field without a default may follow one with a default.
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(parameter.replace(annotation=hint, kind=kind))

    def called(**given: object) -> T:
        built = {
            name: group(**{option: given.pop(option) for option in options})
            for name, (group, options) in groups.items()
        }
        return command(**given, **built)  # type: ignore[arg-type,call-arg]  # what Typer read off the signature

    functools.update_wrapper(called, command)
    # Typer must read the wrapper's signature, not that of the wrapped command.
    del called.__dict__["__wrapped__"]
    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # inspect looks for it
    called.__annotations__ = {option.name: option.annotation for option in shown}
    return called


def _options(group: type) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=hints[field.name],
        )


def _default(field: Field[object]) -> object:
    return inspect.Parameter.empty if field.default is MISSING else field.default
