"""The metrics that the engine knows, by name."""

from __future__ import annotations

from hallujudge.metrics import MetricError

from ..errors import InvalidInputError, NotFoundError, Violation
from .entry import MetricEntry, Pipeline
from .families import entries
from .resources import Resources
from .spec import ScoreSpec

__all__ = ["checked_entry", "metric_entry", "metric_names", "open_pipeline"]


def metric_names() -> tuple[str, ...]:
    """Names of all metrics."""
    return tuple(entries())


def metric_entry(name: str) -> MetricEntry:
    """The metric of a name.

    Raises:
        NotFoundError: There is none.
    """
    known = entries()
    if name not in known:
        raise NotFoundError(
            f"there is no metric {name!r}; choose one of {', '.join(known)}",
            reason="METRIC_UNKNOWN",
            metadata={"metric": name},
        )
    return known[name]


def checked_entry(spec: ScoreSpec) -> MetricEntry:
    """The metric of a spec whose names and values are all known to it.

    Raises:
        NotFoundError: The metric is unknown.
        InvalidInputError: The variant, a graph role or an option is; all violations are listed.
    """
    entry = metric_entry(spec.metric)
    violations = (*_variant(spec, entry), *_roles(spec, entry), *_options(spec, entry))
    if violations:
        raise InvalidInputError(
            "; ".join(violation.description for violation in violations), violations=violations
        )
    return entry


def open_pipeline(spec: ScoreSpec, resources: Resources) -> Pipeline:
    """The pipeline of a spec, after every part of the spec was checked.

    Raises:
        NotFoundError: The metric or a graph is unknown.
        InvalidInputError: The variant, a graph role or an option is; all violations are listed.
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
