"""What can be set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import InvalidInputError

__all__ = ["AnalysisOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """Settings of analyses; each concerns the metrics that have it."""

    words: tuple[int, ...] = ()
    """Tri-HE's trend: the numbers of first words. Empty: steps of ten up to the last claim."""
    share: float = 0.2
    """Tri-HE's frequent pairs: the share of object pairs that is frequent."""
    companions: int = 5
    """Mementos: how many companions of a behaviour are its usual ones."""
    behavior_graphs: Mapping[str, str] = field(default_factory=dict)
    """Mementos: domain -> graph that brings behaviours to one word, a shipped name or a file; the
    empty domain is any other. Empty: the shipped ones, as in scoring."""

    def __post_init__(self) -> None:
        if any(number < 1 for number in self.words):
            raise InvalidInputError(f"words are {list(self.words)}; give whole numbers above 0")
        if not 0 < self.share <= 1:
            raise InvalidInputError(
                f"the share of pairs is {self.share}; give a number above 0 and at most 1"
            )
        if self.companions < 1:
            raise InvalidInputError(f"companions are {self.companions}; give at least 1")
