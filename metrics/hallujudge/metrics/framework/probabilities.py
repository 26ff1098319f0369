"""The option ``soft``: scores that count a judge's probabilities instead of its verdicts."""

from __future__ import annotations

from .definitions import OptionDefinition

__all__ = ["SOFT", "YES", "probabilities_note", "soft_option"]

SOFT, YES = "soft", "yes"
"""The option's name, and its value in runs that count probabilities."""


def soft_option(probability: str, details: str) -> OptionDefinition:
    """Return the option of a metric.

    Args:
        probability: What counts, such as ``P(right)``.
        details: Judges that state it, and what counts by verdict.
    """
    return OptionDefinition(
        name=SOFT,
        default="no",
        choices=("no", YES),
        meaning=f"Count {probability} instead of verdicts.",
        details=details,
    )


def probabilities_note(counted: str, noun: str, *, known: int, missing: int) -> tuple[str, ...]:
    """Return the report's note about what counts by its verdict; none if nothing has a verdict.

    Args:
        counted: In which scores what counts how much.
        noun: What has verdicts, in the plural.
        known: How many have a verdict.
        missing: How many of these have no probability.
    """
    if not known:
        return ()
    found = (
        f"{missing:,} of {known:,} {noun} have no probability and count by their verdict"
        if missing
        else f"all {known:,} {noun} with a verdict have a probability"
    )
    return (f"Soft: {counted}; {found}. The other scores count verdicts.",)
