"""Options of the analyses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import InvalidInputError

__all__ = ["AnalysisOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """Settings of the analyses; each is read by one metric's analyses."""

    words: tuple[int, ...] = ()
    """Tri-HE's trend: word counts. Empty for steps of ten up to the last claim."""
    share: float = 0.2
    """Tri-HE's frequent pairs: the share of object pairs that counts as frequent."""
    companions: int = 5
    """Mementos: how many companions of a behaviour count as usual."""
    behavior_graphs: Mapping[str, str] = field(default_factory=dict)
    """Mementos: domain -> graph that maps behaviours to roots, a shipped name or a file; the
    empty domain is any other. Empty for the shipped graphs, as in scoring."""

    def __post_init__(self) -> None:
        if any(number < 1 for number in self.words):
            raise InvalidInputError(f"words are {list(self.words)}; give whole numbers above 0")
        if not 0 < self.share <= 1:
            raise InvalidInputError(
                f"the share of pairs is {self.share}; give a number above 0 and at most 1"
            )
        if self.companions < 1:
            raise InvalidInputError(f"companions are {self.companions}; give at least 1")
