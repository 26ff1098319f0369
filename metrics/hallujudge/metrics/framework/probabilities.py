"""The option ``soft``: scores that count a judge's probabilities instead of its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .base import MetricBase
from .definitions import OptionDefinition

__all__ = ["SOFT", "YES", "SoftMetric", "soft_option"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftMetric(MetricBase):
    """A metric with the option ``soft``; what has no probability counts by its verdict.

    Attributes:
        soft: ``yes`` counts probabilities instead of verdicts.
    """

    soft_scores: ClassVar[str]
    """In which scores what counts how much."""
    soft_noun: ClassVar[str]
    """What has verdicts, in the plural."""

    soft: str = ""

    @property
    def is_soft(self) -> bool:
        """Return whether probabilities count instead of verdicts."""
        return self.soft == YES

    def soft_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the option as a field of the signature; none if verdicts count."""
        return ((SOFT, YES),) if self.is_soft else ()

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return how many have a verdict.

        Args:
            totals: Each column's sum over the scored items.
        """
        raise NotImplementedError

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return how many count by their verdict, if probabilities count and any has a verdict."""
        known = self.verdicts_in(totals)
        if not self.is_soft or not known:
            return ()
        missing = int(totals["without_probability"])
        found = (
            f"{missing:,} of {known:,} {self.soft_noun} have no probability and count by their "
            "verdict"
            if missing
            else f"all {known:,} {self.soft_noun} with a verdict have a probability"
        )
        return (f"Soft: {self.soft_scores}; {found}. The other scores count verdicts.",)
