"""The metrics that the engine knows, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hallujudge.metrics import Item, ItemResult, Metric, MetricError

from ..errors import InvalidInputError, NotFoundError, Violation
from .resources import Resources
from .spec import ScoreSpec

if TYPE_CHECKING:
    from .extraction import FoundClaim

__all__ = [
    "MetricEntry",
    "OptionEntry",
    "Pipeline",
    "metric_entry",
    "metric_names",
    "open_pipeline",
]


class Pipeline(Protocol):
    """A metric with everything it needs to score items: graphs, matchers, judges."""

    @property
    def metric(self) -> Metric:
        """The metric."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings that stand in the signature, in full, for the report."""
        ...

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """One result for each item, in order. An item's trouble is its result, never an error."""
        ...


Extract: TypeAlias = (
    "Callable[[ScoreSpec, Sequence[str], Resources], Awaitable[list[list[FoundClaim]]]]"
)
"""Takes claims out of texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionEntry:
    """An option of a metric."""

    name: str
    """Its name."""
    default: str
    """What it is unless told."""
    choices: tuple[str, ...] = ()
    """The values it may take; empty: see the description."""
    description: str = ""
    """What it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """A metric as the engine knows it."""

    name: str
    """Its name."""
    description: str
    """What it measures and where it is defined."""
    variants: tuple[str, ...]
    """Its readings, the default first."""
    score_names: tuple[str, ...]
    """Names of its scores."""
    item_type: type[Item]
    """The shape of its items."""
    graph_roles: tuple[str, ...] = ()
    """Graphs that it takes, by role."""
    options: tuple[OptionEntry, ...] = ()
    """Its options."""
    extract: Extract | None = None
    """Takes claims out of texts; None where there are none to take."""
    judges: bool = False
    """Whether its claims are decided by a judge."""
    group_by: tuple[str, ...] = ()
    """Fields that groups are reported by unless told."""
    open: Callable[[ScoreSpec, Resources], Pipeline]
    """Makes the pipeline of a checked spec."""


def _entries() -> dict[str, MetricEntry]:
    from .pipelines import ENTRIES

    return {entry.name: entry for entry in ENTRIES}


def metric_names() -> tuple[str, ...]:
    """Names of all metrics."""
    return tuple(_entries())


def metric_entry(name: str) -> MetricEntry:
    """The metric of a name.

    Raises:
        NotFoundError: There is none.
    """
    entries = _entries()
    if name not in entries:
        raise NotFoundError(
            f"there is no metric {name!r}; choose one of {', '.join(entries)}",
            reason="METRIC_UNKNOWN",
            metadata={"metric": name},
        )
    return entries[name]


def open_pipeline(spec: ScoreSpec, resources: Resources) -> Pipeline:
    """The pipeline of a spec, after every part of the spec was checked.

    Raises:
        NotFoundError: The metric or a graph is unknown.
        InvalidInputError: The variant, a graph role or an option is; all violations are listed.
    """
    entry = metric_entry(spec.metric)
    violations = (*_variant(spec, entry), *_roles(spec, entry), *_options(spec, entry))
    if violations:
        raise InvalidInputError(
            "; ".join(violation.description for violation in violations), violations=violations
        )
    try:
        return entry.open(spec, resources)
    except MetricError as err:
        raise InvalidInputError(str(err)) from err


def _variant(spec: ScoreSpec, entry: MetricEntry) -> tuple[Violation, ...]:
    if not spec.variant or spec.variant in entry.variants:
        return ()
    known = ", ".join(entry.variants)
    return (
        Violation(
            field="spec.variant",
            description=f"{entry.name} has no variant {spec.variant!r}; choose one of {known}",
        ),
    )


def _roles(spec: ScoreSpec, entry: MetricEntry) -> tuple[Violation, ...]:
    known = ", ".join(entry.graph_roles) or "none"
    return tuple(
        Violation(
            field=f"spec.graphs[{role!r}]",
            description=f"{entry.name} takes no graph for {role!r}; it takes: {known}",
        )
        for role in spec.graphs
        if role not in entry.graph_roles
    )


def _options(spec: ScoreSpec, entry: MetricEntry) -> tuple[Violation, ...]:
    return tuple(
        Violation(field=f"spec.options[{name!r}]", description=problem)
        for name, value in spec.options.items()
        if (problem := _option_problem(name, value, entry))
    )


def _option_problem(name: str, value: str, entry: MetricEntry) -> str:
    options = {option.name: option for option in entry.options}
    if name not in options:
        known = ", ".join(options) or "none"
        return f"{entry.name} has no option {name!r}; it has: {known}"
    choices = options[name].choices
    if choices and value not in choices:
        return f"option {name!r} can't be {value!r}; choose one of {', '.join(choices)}"
    return ""
