"""The registry of metrics."""

from __future__ import annotations

from hallujudge.metrics import MetricError

from ..errors import InvalidInputError, NotFoundError, Violation
from .entry import MetricEntry, Pipeline
from .families import entries, entry_of
from .resources import Resources
from .spec import ScoreSpec

__all__ = ["checked_entry", "metric_entry", "metric_names", "open_pipeline"]


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return tuple(entries())


def metric_entry(name: str) -> MetricEntry:
    """Return the entry of a metric.

    Raises:
        NotFoundError: No metric has this name.
    """
    entry = entry_of(name)
    if entry is None:
        raise NotFoundError(
            f"metric {name!r} does not exist; choose one of {', '.join(entries())}",
            reason="METRIC_UNKNOWN",
            metadata={"metric": name},
        )
    return entry


def checked_entry(spec: ScoreSpec) -> MetricEntry:
    """Return the entry of a spec's metric, after validating the spec's names and values.

    Raises:
        NotFoundError: The metric is unknown.
        InvalidInputError: The variant, a graph role or an option is invalid; the error lists all
            violations.
    """
    entry = metric_entry(spec.metric)
    violations = (*_variant(spec, entry), *_roles(spec, entry), *_options(spec, entry))
    if violations:
        raise InvalidInputError(
            "; ".join(violation.description for violation in violations), violations=violations
        )
    return entry


def open_pipeline(spec: ScoreSpec, resources: Resources) -> Pipeline:
    """Return the pipeline of a spec, after validating the spec.

    Raises:
        NotFoundError: The metric or a graph is unknown.
        InvalidInputError: The variant, a graph role or an option is invalid; the error lists all
            violations.
    """
    entry = checked_entry(spec)
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
            description=f"{entry.name} has no graph role {role!r}; known: {known}",
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
        return f"{entry.name} has no option {name!r}; known: {known}"
    choices = options[name].choices
    if choices and value not in choices:
        return f"the option {name} is {value!r}; choose one of {', '.join(choices)}"
    return ""
