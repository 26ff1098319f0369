"""Groups of options: fields of a shared dataclass, or options that a metric declares."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Annotated, ParamSpec, Protocol, TypeVar, get_args, get_origin, get_type_hints

from .declared import DeclaredBy

__all__ = ["grouped"]

P = ParamSpec("P")
T = TypeVar("T")


class _Group(Protocol):
    """Parameters of a command that it gets as one value."""

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters."""
        ...

    def build(self, given: Mapping[str, object]) -> object:
        """Return the value of the given parameters."""
        ...


@dataclass(frozen=True, slots=True)
class _Fields:
    """A group of the fields of a dataclass."""

    value: type

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each field."""
        hints = get_type_hints(self.value, include_extras=True)
        for field in fields(self.value):
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_default(field),
                annotation=hints[field.name],
            )

    def build(self, given: Mapping[str, object]) -> object:
        """Return the dataclass with these fields."""
        return self.value(**given)


def grouped(command: Callable[P, T]) -> Callable[..., T]:
    """Turn each parameter that is a group of options into those options.

    Typer derives options from a command's signature and does not support groups of options. The
    returned wrapper therefore has one parameter for each option, and passes the value built from
    them to the command.

    Args:
        command: The command. A parameter annotated with a dataclass is a group of its fields,
            which are annotated like options. One annotated with :class:`DeclaredBy` is a group
            of the options that a metric declares.
    """
    hints = get_type_hints(command, include_extras=True)
    shown: list[inspect.Parameter] = []
    groups: dict[str, tuple[_Group, list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if group := _group_of(hint):
            options = list(group.parameters())
            groups[parameter.name] = (group, [option.name for option in options])
            shown += options
        else:
            # Keyword-only, so that a field without a default may follow one with a default.
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(parameter.replace(annotation=hint, kind=kind))

    def called(**given: object) -> T:
        built = {
            name: group.build({option: given.pop(option) for option in options})
            for name, (group, options) in groups.items()
        }
        return command(**given, **built)  # type: ignore[arg-type,call-arg]  # what Typer read off the signature

    functools.update_wrapper(called, command)
    # Typer must read the wrapper's signature, not that of the wrapped command.
    del called.__dict__["__wrapped__"]
    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # inspect looks for it
    called.__annotations__ = {option.name: option.annotation for option in shown}
    return called


def _group_of(hint: object) -> _Group | None:
    if get_origin(hint) is Annotated:
        return next((part for part in get_args(hint)[1:] if isinstance(part, DeclaredBy)), None)
    return _Fields(hint) if is_dataclass(hint) and isinstance(hint, type) else None


def _default(field: Field[object]) -> object:
    return inspect.Parameter.empty if field.default is MISSING else field.default
