"""What callers of a model need of a verdict cache and a budget, wherever these are kept.

Within one process they are a :class:`VerdictCache` and a :class:`Budget`. The workers of a cluster
share those of one process, which they reach by messages.
"""

from __future__ import annotations

from typing import Protocol

from .budget import Prices, Reservation
from .cache_file import Record
from .usage import Usage

__all__ = ["CallBudget", "SharedCalls", "VerdictStore"]


class VerdictStore(Protocol):
    """Keeps records of replies; see :class:`VerdictCache`."""

    async def open(self) -> None:
        """Refuse a store that can't be used."""

    def check(self) -> None:
        """Do the same outside an event loop."""

    async def get(self, key: str) -> Record | None:
        """Return the record of a key; None if there is none."""

    async def claim(self, key: str) -> Record | None:
        """Return the record of a key, or None if the caller must make the call now."""

    async def renew(self, key: str) -> None:
        """Keep a claim whose call is still under way."""

    async def release(self, key: str) -> None:
        """End a claim whose call gave no record."""

    async def put(self, key: str, judge: str, record: Record) -> None:
        """Keep a record."""

    async def server_of(self, url: str, model: str) -> str | None:
        """Return the server version last seen at an address."""

    async def remember_server(self, url: str, model: str, server: str) -> None:
        """Keep the server version seen at an address."""

    async def close(self) -> None:
        """Write what is not written yet."""


class CallBudget(Protocol):
    """Limits calls and their cost; see :class:`Budget`."""

    prices: Prices | None
    """What tokens cost; None: not known."""

    def cost_of(self, usage: Usage) -> float | None:
        """Return the cost of a call; None if prices are not known."""

    async def reserve(self, most_prompt: int, most_completion_tokens: int) -> Reservation | None:
        """Reserve one call; None if the budget does not hold it."""

    def settle(self, reservation: Reservation, cost: float | None) -> None:
        """Replace a reservation by what the call cost."""

    def keep(self, reservation: Reservation) -> None:
        """Count a reservation as spent."""

    def exhausted_detail(self) -> str:
        """Return why the call that was refused last is not made."""


class SharedCalls(Protocol):
    """A verdict store and budgets that several processes share."""

    verdicts: VerdictStore
    """The verdict store."""

    def budget(self, judge: str, prices: Prices | None) -> CallBudget | None:
        """Return the budget of a judge; None: nothing is limited.

        Args:
            judge: ``llm`` or ``fallback``.
            prices: What its tokens cost.
        """
