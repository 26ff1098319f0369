"""Items with the verdicts on their claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DecidedClaim", "DecidedItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedClaim:
    """A claim and its verdict."""

    index: int
    """Place of the claim in the item's evidence, as the HTML page and labels count."""
    text: str
    """The claim in words, as the HTML page shows it."""
    hallucinated: bool | None
    """Whether the verdict is that it is hallucinated; None without a verdict."""
    margin: float | None = None
    """How sure the judge is; None if unknown. Below 0, a language model found another answer
    likelier than the one that it was made to choose from."""
    span: tuple[int, int] | None = None
    """Place of the claim in the response."""
    weight: float = 1.0
    """What the claim adds to its item's column if it is hallucinated."""
    probability: float | None = None
    """How likely it is hallucinated, in runs that count probabilities; None: its verdict counts."""

    @property
    def counted(self) -> float:
        """Return for how much of a hallucinated claim the run counts it."""
        return float(self.hallucinated is True) if self.probability is None else self.probability


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedItem:
    """A scored item and the verdicts on its claims."""

    id: str
    """The item's id."""
    cluster: str
    """Its image or video."""
    statistics: Mapping[str, float]
    """Its statistics by column."""
    claims: tuple[DecidedClaim, ...]
    """Its claims."""
    fields: Mapping[str, str]
    """Values that results may be grouped by."""
    response: str
    """What the model wrote; empty if the run does not keep it."""

    @property
    def hallucinated(self) -> bool | None:
        """Return whether a claim is hallucinated; None without any verdict."""
        verdicts = [claim.hallucinated for claim in self.claims]
        if not verdicts:
            return False
        return None if all(verdict is None for verdict in verdicts) else True in verdicts
