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
from difflib import get_close_matches

# Longer than any name that exists.
_COMPARED = 100
# By difflib's own 0.6, "oldest" would be near to "largest".
_ALIKE = 0.7


class MetricError(ValueError):
    """Base class of the errors of metrics."""


class UnknownVariantError(MetricError):
    """A variant that the metric does not have."""

    def __init__(self, metric: str, variant: str, known: Iterable[str]) -> None:
        self.metric, self.variant, self.known = metric, variant, tuple(known)
        super().__init__(f"{metric} has no variant {variant!r}; {choose_from(variant, self.known)}")


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


def meant(name: object, known: Iterable[str]) -> str:
    """Return the known name that a misspelt one is nearest to; empty if none is near.

    Args:
        name: The name, which a file may give as something other than text.
        known: The names that exist.
    """
    plain = {each.casefold(): each for each in known}
    # The comparison takes the square of a length, and callers of a server choose names.
    near = get_close_matches(str(name)[:_COMPARED].casefold(), plain, 1, _ALIKE)
    return plain[near[0]] if near else ""


def choose_from(name: object, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: which one is meant, and which there are.

    Args:
        name: The name, which a file may give as something other than text.
        known: The names that exist.
    """
    listed = tuple(known)
    near, every = meant(name, listed), ", ".join(listed) or "nothing, as none exists"
    return f"did you mean {near!r}? Choose from {every}" if near else f"choose from {every}"


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
