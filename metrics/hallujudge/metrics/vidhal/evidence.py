"""Evidence of a VidHal ordering."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework.result import JsonValue

__all__ = ["OrderEvidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEvidence:
    """What an order's scores are based on."""

    order: tuple[str, ...]
    """The letters that were read, in order."""
    ranks: tuple[int, ...]
    """The ranks behind them; 0 for a letter that was never shown."""
    problem: str = ""
    """Why the order is invalid: ``empty``, ``partial``, ``repeated``, ``unknown``; or empty."""

    def to_json(self) -> dict[str, JsonValue]:
        """The order, the ranks behind it and what is wrong with it."""
        return {
            "order": list(self.order),
            "ranks": list(self.ranks),
            "valid": not self.problem,
            "problem": self.problem,
        }
