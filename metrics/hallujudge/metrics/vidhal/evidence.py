"""Evidence of a VidHal ordering."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.result import JsonValue

__all__ = ["OrderEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEvidence:
    """Evidence of an order."""

    order: tuple[str, ...]
    """The parsed letters, in order."""
    ranks: tuple[int, ...]
    """The ranks of the letters; 0 for a letter that was not shown."""
    problem: str = ""
    """Why the order is invalid: ``empty``, ``partial``, ``repeated``, ``unknown``; or empty."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the order, its ranks and its problem."""
        return {
            "order": list(self.order),
            "ranks": list(self.ranks),
            "valid": not self.problem,
            "problem": self.problem,
        }
