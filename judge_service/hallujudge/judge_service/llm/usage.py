"""What answered calls took: tokens, time and money."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import fsum

from hallujudge.metrics.framework.results import JsonValue

__all__ = ["Usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What answers took. Calls that gave no answer are in a judge's statistics, not here."""

    calls: int = 0
    """Calls that were answered."""
    prompt_tokens: int = 0
    """Tokens sent, as the server counted them."""
    cached_tokens: int = 0
    """Those of them that the server had from an earlier prompt, where it says so."""
    completion_tokens: int = 0
    """Tokens received."""
    latency_seconds: float = 0.0
    """Time from sending to the whole answer, summed over calls."""
    cost: float | None = None
    """Price by the settings; None where no prices are set."""

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """Return the sum, which does not depend on the order of the usages."""
        parts = list(usages)
        costs = [part.cost for part in parts if part.cost is not None]
        return cls(
            calls=sum(part.calls for part in parts),
            prompt_tokens=sum(part.prompt_tokens for part in parts),
            cached_tokens=sum(part.cached_tokens for part in parts),
            completion_tokens=sum(part.completion_tokens for part in parts),
            latency_seconds=fsum(part.latency_seconds for part in parts),
            cost=fsum(costs) if costs else None,
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage.total((self, other))

    @classmethod
    def from_record(cls, value: object) -> Usage:
        """Read a usage from a record of the cache; an unreadable one is empty."""
        try:
            return cls(**value) if isinstance(value, dict) else cls()
        except TypeError:
            return cls()

    def to_record(self) -> dict[str, JsonValue]:
        """Return the usage as the cache keeps it, unrounded."""
        return asdict(self)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the usage as an item's evidence shows it."""
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "latency_seconds": round(self.latency_seconds, 6),
            "cost": None if self.cost is None else round(self.cost, 9),
        }
