"""Errors of the metrics package, and warnings of what a later release removes.

MetricError
├── UnknownVariantError   a variant that the metric does not have
├── OptionError           an option that is unknown, or a value that it can't take
├── MergeError            two tallies of different metrics
└── BenchmarkError        a benchmark from outside that can't be used
"""

from __future__ import annotations

import warnings
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


# Python hides DeprecationWarning outside of __main__; users of a library must see theirs.
class HallujudgeDeprecationWarning(FutureWarning):
    """Something is used that a later release of Hallujudge removes."""


def warn_deprecated(what: str, *, removed_in: str, instead: str) -> None:
    """Announce that something which the caller's caller used will be removed.

    A test fails once the project reaches ``removed_in``, so that the removal is not forgotten.

    Args:
        what: What is deprecated, such as ``the option --reader``.
        removed_in: The release that removes it, such as ``2.0``.
        instead: What to use instead.
    """
    warnings.warn(
        f"{what} is deprecated, and hallujudge {removed_in} removes it; use {instead}",
        HallujudgeDeprecationWarning,
        stacklevel=3,
    )
