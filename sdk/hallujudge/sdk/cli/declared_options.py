"""Options made from the declarations of metrics and of their archive readers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import click

from hallujudge.judge_service.engine.responses import RESPONSE_OPTIONS
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.metric import LONGEST_HELP, InputOption, OptionDefinition
from hallujudge.sdk import cli

from ..archives import InputOptions
from ..archives.inputs import declared_inputs
from ..errors import InvalidInputError
from ..runs.score_run import ScoreRun
from .app import input_option, judge_option, metric_option
from .options import file_text
from .parameters import Declared, flag_of, parameter_of

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.registry import MetricEntry

    from ..archives import References, Responses

BOTH = "both"
"""Name of the variants published and corrected, side by side."""
VARIANTS = ("published", "corrected")
"""What it stands for."""


def compares_variants(entry: MetricEntry) -> bool:
    """Return whether ``--variant both`` works for a metric."""
    return set(VARIANTS) <= set(entry.variants)


# An option with these choices is a switch.
_NO_YES = ("no", "yes")
_PANELS = {"input": input_option, "metric": metric_option, "judge": judge_option}
_RESPONSE_OPTIONS = {option.name: option for option in RESPONSE_OPTIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions:
    """The variant and the metric's own options, as given on the command line."""

    metric: str
    """The metric's name."""
    variant: str
    """The variant, or ``both``."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options that were given, by name."""

    def scoring(
        self,
        responses: Responses,
        references: References | None = None,
        *,
        inputs: InputOptions,
        graph: str | Path | Mapping[str, str] | None = None,
    ) -> ScoreRun:
        """Return a run with these options.

        Args:
            responses: The archive of responses.
            references: What they are compared with, if it is apart.
            inputs: How both are read.
            graph: The synonym graph; None for the metric's own.
        """
        return ScoreRun(
            self.metric,
            responses=responses,
            references=references,
            variant=self.variant,
            graph=graph,
            options=self.options,
            inputs=inputs,
        )


class DeclaredBy(Declared):
    """Makes the options of a command from a metric's declaration.

    A parameter of a command is annotated ``Annotated[MetricOptions, DeclaredBy("chair")]``.

    Args:
        metric: The metric's name.
        variant_flags: Further names of ``--variant``.
    """

    def __init__(self, metric: str, *variant_flags: str) -> None:
        self._entry = cli.metric_entry(metric)
        self._flags = variant_flags

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for the variant, and one for each option of the metric."""
        help_text = _variant_help(self._entry)
        flag = metric_option("--variant", *self._flags, help=help_text)
        yield parameter_of("variant", Annotated[str, flag], self._entry.variants[0])
        for option in self._own():
            yield _declared(option)

    def build(self, given: Mapping[str, object]) -> MetricOptions:
        """Return the variant and the options that were given; the engine knows the defaults.

        Args:
            given: Parameter name -> value.

        Raises:
            InvalidInputError: There is no such variant, or a file cannot be read.
        """
        context = click.get_current_context()
        if given["variant"] not in (*self._entry.variants, BOTH):
            both = (BOTH,) if compares_variants(self._entry) else ()
            raise InvalidInputError(
                f"{' or '.join((*self._flags, '--variant'))} is {given['variant']!r:.80}; "
                + choose_from(given["variant"], (*self._entry.variants, *both))
            )
        options = {
            option.name: option_text(option, given[option.name])
            for option in self._own()
            if _is_given(context, option.name)
        }
        variant = str(given["variant"])
        return MetricOptions(metric=self._entry.name, variant=variant, options=options)

    def _own(self) -> Iterator[OptionDefinition]:
        # Every score command has the response options; RunOptions declares them.
        return (option for option in self._entry.options if option.name not in _RESPONSE_OPTIONS)


class InputsOf(Declared):
    """Makes the options of a command that only some readers take, from a metric's declaration.

    A parameter of a command is annotated ``Annotated[InputOptions, InputsOf("chair")]``.

    Args:
        metric: The metric's name.
    """

    def __init__(self, metric: str) -> None:
        self._declared = declared_inputs(metric)
        # What only a command knows to be true has no flag of its own here.
        self._own = [option for option in self._declared.own if option.kind != "set"]

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each option of the metric's reader that not every command has."""
        for option in self._own:
            metavar = {"file": "FILE", "folder": "DIR"}.get(option.kind)
            flag = input_option(option.flag, metavar=metavar, help=option.meaning)
            kind: Any = list[str] | None if option.kind == "texts" else str | None
            yield parameter_of(_name_of(option), Annotated[kind, flag], None)
        for name in filter(self._declared.used.__contains__, _SOME):
            yield parameter_of(name, *_SOME[name])

    def build(self, given: Mapping[str, object]) -> InputOptions:
        """Return the options that were given.

        Args:
            given: Parameter name -> value.
        """
        values = {option.name: given[_name_of(option)] for option in self._own}
        own = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
            if value is not None
        }
        shared = {name: value for name, value in given.items() if name in _SOME}
        return InputOptions(own=own, **cast("dict[str, Any]", shared))


def _name_of(option: InputOption) -> str:
    """Return the name of an option's parameter: its flag, as the metric may use its name."""
    return option.flag.lstrip("-").replace("-", "_")


# Options that only some readers use.
_SOME: Mapping[str, tuple[object, object]] = {
    "join": (
        Annotated[
            str,
            input_option("--join", help="Join by auto, id, text (image and question) or order."),
        ],
        "auto",
    ),
    "allow_missing": (
        Annotated[
            bool,
            input_option("--allow-missing", help="References without a response become unscored."),
        ],
        False,
    ),
    "allow_duplicates": (
        Annotated[
            bool,
            input_option("--allow-duplicates", help="Score of every response of a duplicate id."),
        ],
        False,
    ),
}


def response_option(name: str, *flags: str, note: str = "", metavar: str | None = None) -> Any:
    """Return the flag of an option that every metric has.

    Args:
        name: Name of the option.
        flags: Names on the command line.
        note: Addition to the declared meaning.
        metavar: What its value is called in the help.
    """
    option = _RESPONSE_OPTIONS[name]
    switch = option.choices in (_NO_YES, ("false", "true"))
    text = (option.meaning if switch else option.help).removesuffix(".")
    return input_option(*flags, help=f"{text}{note}.", metavar=metavar)


def _is_given(context: click.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    # A default may depend on the variant; the engine knows it.
    return source is not None and source.name != "DEFAULT"


def option_text(option: OptionDefinition, value: object) -> str:
    """Return the value of an option, or the text of the file that it names."""
    if option.choices == _NO_YES:
        return str(value) if value in _NO_YES else _NO_YES[bool(value)]
    if not option.file:
        return str(value)
    return file_text(flag_of(option.name), str(value))


def _declared(option: OptionDefinition) -> inspect.Parameter:
    metavar = "FILE" if option.file else None
    text = option.meaning if option.choices == _NO_YES else option.help
    flag = _PANELS[option.purpose](flag_of(option.name), help=text, metavar=metavar)
    if option.choices == _NO_YES:
        return parameter_of(option.name, Annotated[bool, flag], default=False)
    if option.file:
        return parameter_of(option.name, Annotated[Path | None, flag], None)
    if option.number:
        # The default depends on the variant, so none is shown.
        return parameter_of(option.name, Annotated[float | None, flag], None)
    return parameter_of(option.name, Annotated[str, flag], option.default)


def _variant_help(entry: MetricEntry) -> str:
    *others, last = entry.variants
    if compares_variants(entry):
        return f"{', '.join(entry.variants)}, or {BOTH}."
    text = f"{', '.join(others)} or {last}." if others else f"{last}, the only variant."
    # `hallujudge metrics show` explains them all.
    while len(text) > LONGEST_HELP:
        others.pop()
        text = f"{', '.join(others)}, ..."
    return text
