"""Options of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hallujudge.metrics.framework.comparison import ComparisonSettings

from ..errors import InvalidInputError
from ..runs import RunReport

__all__ = ["CompareOptions", "RunSource"]

RunSource: TypeAlias = "str | Path | RunReport"
"""The folder of a run, or a report that holds its items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """How runs are compared."""

    scores: Sequence[str] = ()
    """Names of the scores that are compared; empty for all."""
    names: Sequence[str] = ()
    """Names of the runs, one for each; empty for the names of their folders."""
    allow: Sequence[str] = ()
    """Fields of the signature that may differ, such as ``v`` for the release."""
    confidence: float = 0.95
    """Confidence level of the intervals; 1 minus the level of the tests."""
    replicates: int = 10_000
    """Number of replicates of the bootstrap, and of random swaps of the permutation test."""
    seed: int = 0
    """Seed of the random numbers."""

    def settings(self) -> ComparisonSettings:
        """Return the statistical settings.

        Raises:
            InvalidInputError: A number is out of range.
        """
        try:
            return ComparisonSettings(
                confidence=self.confidence, replicates=self.replicates, seed=self.seed
            )
        except ValueError as err:
            raise InvalidInputError(str(err)) from err
