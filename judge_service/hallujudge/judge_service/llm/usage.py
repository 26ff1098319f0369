"""What answered calls took: tokens, time and money."""

from __future__ import annotations

from dataclasses import dataclass

from hallujudge.metrics.framework.result import JsonValue

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

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            latency_seconds=self.latency_seconds + other.latency_seconds,
            cost=sum(costs) if costs else None,
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The usage as it stands in an item's evidence."""
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "latency_seconds": round(self.latency_seconds, 6),
            "cost": None if self.cost is None else round(self.cost, 9),
        }
