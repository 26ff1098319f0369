"""Options and arguments of commands, made of the annotated parameters of functions.

A parameter is annotated ``Annotated[TYPE, option("--flag", help="…")]``, or with
:func:`argument`. TYPE is bool, int, float, str, Path, or a list of these.
A parameter annotated with a dataclass is a group of options: its fields, which are annotated alike.
One annotated ``Annotated[TYPE, declared]`` is a group of what a :class:`Declared` declares.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import click

_PLACEHOLDERS = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}
_MISSING = inspect.Parameter.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a command line calls a parameter of a function."""

    flags: tuple[str, ...] = ()
    """Names of an option; without any, the parameter's name is one."""
    help: str = ""
    """One line of the help page."""
    panel: str = "Options"
    """Heading of the help page under which the line is."""
    metavar: str | None = None
    """What the value is called on the help page."""
    min: float | None = None
    """Lowest number that is accepted."""
    max: float | None = None
    """Highest number that is accepted."""
    callback: Callable[[Any], Any] | None = None
    """Returns the value that the function receives."""
    show_default: bool = True
    """Whether the help page shows the default."""
    hidden: bool = False
    """Whether the help page leaves the option out."""
    is_eager: bool = False
    """Whether the option is read before all others."""
    is_argument: bool = False
    """Whether the value has a place in place of a flag."""


def option(*flags: str, **settings: Any) -> Declaration:
    """Return the declaration of an option; the settings are the fields of a declaration."""
    return Declaration(flags=flags, **settings)


def argument(**settings: Any) -> Declaration:
    """Return the declaration of an argument; the settings are the fields of a declaration."""
    return Declaration(is_argument=True, panel="Arguments", **settings)


class _Number(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 alone
    """A number within bounds, whose error says what to give."""

    name = "number"

    def __init__(self, kind: type[int] | type[float], declared: Declaration) -> None:
        self._kind, self._low, self._high = kind, declared.min, declared.max

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of a text; a default is a number already."""
        try:
            number = self._kind(value)
        except ValueError:
            needed = "give a whole number" if self._kind is int else "give a number"
        else:
            needed = self._needed(number)
            if not needed:
                return number
        shown = shown_name(param) if param is not None else self.name
        raise click.UsageError(f"{shown} is {value!r:.80}; {needed}", ctx)

    def _needed(self, number: float) -> str:
        """Return what to give in place of a number; empty if it is accepted."""
        # NaN is beyond no bound, since it compares as false with each.
        if math.isnan(number):
            return "give a number"
        if self._low is not None and number < self._low:
            return f"give {_plain(self._low)} or more"
        if self._high is not None and number > self._high:
            return f"give {_plain(self._high)} or less"
        return ""

    @property
    def range(self) -> str:
        """The bounds, as a help page shows them."""
        low, high = (None if b is None else _plain(b) for b in (self._low, self._high))
        if low is not None and high is not None:
            return f"{low}<=x<={high}"
        return f"x>={low}" if low is not None else f"x<={high}" if high is not None else ""


class _Option(click.Option):
    """An option with a panel."""

    def __init__(self, *settings: Any, panel: str, **more: Any) -> None:
        super().__init__(*settings, **more)
        self.panel = panel

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what follows the help in brackets."""
        extra: dict[str, Any] = {**super().get_help_extra(ctx)}
        if isinstance(self.type, _Number) and self.type.range:
            extra["range"] = self.type.range
        return extra


class _Argument(click.Argument):
    """An argument with a line on the help page."""

    def __init__(self, *settings: Any, help: str, panel: str, **more: Any) -> None:
        super().__init__(*settings, **more)
        # Click before 8.5 takes no help of arguments.
        self.help = help
        self.panel = panel
        self.hidden = False

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the name and the line."""
        required = "  [required]" if self.required else ""
        return self.make_metavar(ctx), f"{self.help}{required}"


def _parameter(parameter: inspect.Parameter, hint: object) -> click.Parameter:
    """Return the option or argument of a function's parameter."""
    kind, declared = _declared(hint)
    single, several = _single(kind)
    settings: dict[str, Any] = {
        "type": _type(single, declared),
        "required": parameter.default is _MISSING,
        "callback": _received(several, parameter.default, declared),
        "is_eager": declared.is_eager,
    }
    # Several values get theirs in _received: without any, click has an empty tuple.
    if parameter.default is not _MISSING and not several:
        settings["default"] = parameter.default
    if declared.is_argument:
        settings["nargs"] = -1 if several else 1
        settings["metavar"] = _place_of(parameter, declared, several)
        return _Argument([parameter.name], help=declared.help, panel=declared.panel, **settings)
    if single is bool:
        settings |= {"is_flag": True, "type": None}
    elif isinstance(placeholder := _PLACEHOLDERS.get(single), str):
        settings["metavar"] = declared.metavar or placeholder
    # An empty or false default says nothing that the help does not.
    shows = declared.show_default and parameter.default is not False and parameter.default != ""
    flags = declared.flags or (_usual_flag(parameter.name, is_switch=single is bool),)
    return _Option(
        [parameter.name, *flags],
        help=declared.help,
        panel=declared.panel,
        multiple=several,
        show_default=shows,
        hidden=declared.hidden,
        **settings,
    )


def flag_of(name: str) -> str:
    """Return the flag of the name of an argument, a parameter or an option."""
    return f"--{name.replace('_', '-')}"


def _usual_flag(name: str, *, is_switch: bool) -> str:
    """Return the flag of a parameter; one that may be on by default has its contrary."""
    return f"{flag_of(name)}/{flag_of(f'no_{name}')}" if is_switch else flag_of(name)


def _declared(hint: object) -> tuple[object, Declaration]:
    if get_origin(hint) is not Annotated:
        return hint, Declaration()
    kind, *notes = get_args(hint)
    return kind, next((note for note in notes if isinstance(note, Declaration)), Declaration())


def _single(kind: object) -> tuple[Any, bool]:
    """Return the type of one value, and whether there may be several."""
    some = [part for part in get_args(kind) if part is not NoneType]
    if get_origin(kind) is list:
        return some[0], True
    return _single(some[0]) if some else (kind, False)


def _type(single: Any, declared: Declaration) -> click.ParamType[Any] | None:
    if single in (int, float):
        return _Number(single, declared)
    if single is Path:
        return click.Path(path_type=Path)
    return click.STRING


def _received(
    several: bool, default: object, declared: Declaration
) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return what makes the value that a function receives of the value that click has read."""

    def received(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        if several:
            usual = list(default) if isinstance(default, list) else None
            value = list(value) if value else usual
        return declared.callback(value) if declared.callback else value

    return received


def _place_of(parameter: inspect.Parameter, declared: Declaration, several: bool) -> str:
    """Return how a usage line shows an argument."""
    metavar = declared.metavar or parameter.name.upper()
    if metavar.startswith("[") or metavar.endswith("..."):
        return metavar
    shown = metavar if parameter.default is _MISSING else f"[{metavar}]"
    return f"{shown}{'...' if several else ''}"


class Declared(ABC):
    """Makes options of a command from a declaration, in the annotation of its parameter."""

    @abstractmethod
    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters."""

    @abstractmethod
    def build(self, given: Mapping[str, object]) -> object:
        """Return the value of the given parameters."""


class Some(Declared):
    """Options that only some commands of a kind have, as a mapping of their values by name.

    Args:
        options: Name of a parameter -> its annotation and its default.
    """

    def __init__(self, **options: tuple[object, object]) -> None:
        self._options = options

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters."""
        return (parameter_of(name, *each) for name, each in self._options.items())

    def build(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """Return the values of the given parameters."""
        return given


@dataclass(frozen=True, slots=True)
class _Fields(Declared):
    """A group of the fields of a dataclass."""

    value: type

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each field, and for each field of a group among them."""
        for declared, hint in self._hints():
            if group := _group_of(hint):
                yield from group.parameters()
            else:
                default = _MISSING if declared.default is MISSING else declared.default
                yield parameter_of(declared.name, hint, default)

    def build(self, given: Mapping[str, object]) -> object:
        """Return the dataclass with these fields."""
        values = {
            declared.name: given[declared.name]
            if (group := _group_of(hint)) is None
            else group.build({option.name: given[option.name] for option in group.parameters()})
            for declared, hint in self._hints()
        }
        return self.value(**values)

    def _hints(self) -> Iterator[tuple[Field[object], object]]:
        # Without extras, the annotations that hold the declarations are dropped.
        hints = get_type_hints(self.value, include_extras=True)
        return ((declared, hints[declared.name]) for declared in fields(self.value))


def given_of(options: Any) -> dict[str, Any]:
    """Return the options of a group that were given, by name: its fields that are not None."""
    found = ((entry.name, getattr(options, entry.name)) for entry in fields(options))
    return {name: value for name, value in found if value is not None}


def _group_of(hint: object) -> Declared | None:
    if get_origin(hint) is Annotated:
        return next((part for part in get_args(hint)[1:] if isinstance(part, Declared)), None)
    return _Fields(hint) if is_dataclass(hint) and isinstance(hint, type) else None


def parameter_of(name: str, annotation: object, default: object) -> inspect.Parameter:
    """Return a parameter of a command."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def parameters_of(
    function: Callable[..., Any],
) -> tuple[list[click.Parameter], Callable[..., Any]]:
    """Return the options and arguments of a command, and what is called with their values.

    Args:
        function: The command's function, which is given the values of its groups and, where it has
            a parameter of this type, the context of its command line.
    """
    hints = get_type_hints(function, include_extras=True)
    shown: list[inspect.Parameter] = []
    groups: dict[str, tuple[Declared, list[str]]] = {}
    contexts = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if hint is click.Context:
            contexts.append(parameter.name)
        elif group := _group_of(hint):
            options = list(group.parameters())
            groups[parameter.name] = (group, [option.name for option in options])
            shown += options
        else:
            shown.append(parameter.replace(annotation=hint))

    def called(**given: Any) -> Any:
        built = {
            name: group.build({option: given.pop(option) for option in options})
            for name, (group, options) in groups.items()
        }
        built |= {name: click.get_current_context() for name in contexts}
        return function(**given, **built)

    # Families' commands differ by the module of their function.
    called.__module__ = function.__module__
    return [_parameter(each, each.annotation) for each in shown], called


def _plain(bound: float) -> str:
    """Return a bound of an option as people write it: 0 instead of 0.0."""
    return str(int(bound) if float(bound).is_integer() else bound)


def shown_name(parameter: click.Parameter) -> str:
    """Return how other errors name an option or an argument."""
    name = str(parameter.opts[0])
    return name if name.startswith("-") else f"argument {name!r}"
