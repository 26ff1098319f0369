"""Errors of the metrics package.

MetricError
├── UnknownVariantError   a variant that the metric does not have
├── OptionError           an option that is unknown, or a value that it can't take
├── MergeError            two tallies of different metrics
└── BenchmarkError        a benchmark from outside that can't be used
"""

from __future__ import annotations

from collections.abc import Iterable


class MetricError(ValueError):
    """Base class of the errors of metrics."""


class UnknownVariantError(MetricError):
    """A variant that the metric does not have."""

    def __init__(self, metric: str, variant: str, known: Iterable[str]) -> None:
        self.metric, self.variant, self.known = metric, variant, tuple(known)
        super().__init__(
            f"{metric} has no variant {variant!r}; choose one of {', '.join(self.known)}"
        )


class OptionError(MetricError):
    """An option that is unknown, or a value that it can't take."""

    def __init__(self, metric: str, option: str, problem: str) -> None:
        self.metric, self.option, self.problem = metric, option, problem
        super().__init__(f"the option {option} of {metric}: {problem}")


class MergeError(MetricError):
    """Two tallies of different metrics or groups."""


class BenchmarkError(MetricError):
    """A benchmark from outside that can't be used."""
