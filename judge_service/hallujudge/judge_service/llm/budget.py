"""What calls took and may cost: usage, prices, and a budget that is never exceeded.

A call is made only if its highest possible cost still fits.

Within one process the cache and the budget are a :class:`VerdictCache` and a :class:`Budget`. The
workers of a cluster share those of one process and reach them by messages; the protocols at the end
cover both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from math import fsum
from typing import Protocol

from msgspec import Struct
from msgspec.structs import asdict

from hallujudge.metrics.framework.results import JsonValue

from ..errors import InvalidInputError
from ..tenancy import Crowded, Hold, JudgeCall, Spending, tenancy
from ..threads import shielded
from .cache_file import Record

_MILLION = 1_000_000


class Usage(Struct, frozen=True, kw_only=True):
    """What answered calls took. Failed calls are in a judge's statistics, not here."""

    calls: int = 0
    """Calls that were answered."""
    prompt_tokens: int = 0
    """Tokens sent, as the server counted them."""
    cached_tokens: int = 0
    """Those of them that the server had from an earlier prompt, if it reports them."""
    completion_tokens: int = 0
    """Tokens received."""
    latency_seconds: float = 0.0
    """Time from sending to the whole answer, summed over calls."""
    cost: float | None = None
    """Price by the settings; None where no prices are set."""
    reused: int = 0
    """Replies that were paid for another item: shared with it, or kept in the cache."""

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
            reused=sum(part.reused for part in parts),
        )

    def again(self) -> Usage:
        """Return what one more use of a reply takes: nothing."""
        return Usage(reused=1, cost=None if self.cost is None else 0.0)

    def record(self, model: str, outcome: str, seconds: float) -> None:
        """Record a call for metrics: what it took, or nothing where it failed."""
        tenancy().recorder.judge_called(
            JudgeCall(
                model=model,
                outcome=outcome,
                seconds=seconds,
                prompt_tokens=self.prompt_tokens,
                cached_tokens=self.cached_tokens,
                completion_tokens=self.completion_tokens,
                cost=self.cost or 0.0,
            )
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
        cost = None if self.cost is None else round(self.cost, 9)
        return asdict(self) | {"latency_seconds": round(self.latency_seconds, 6), "cost": cost}


class Prices(Struct, frozen=True, kw_only=True):
    """Prices of a million tokens, in one currency."""

    prompt: float
    """Of prompt tokens."""
    completion: float
    """Of completion tokens."""
    cached: float | None = None
    """Of prompt tokens that the server had cached; None if they cost the same as others."""

    def cost(self, prompt: int, completion: int, cached: int = 0) -> float:
        """Return the cost of a call."""
        cheap = self.prompt if self.cached is None else self.cached
        return (
            (prompt - cached) * self.prompt + cached * cheap + completion * self.completion
        ) / _MILLION

    def of(self, usage: Usage) -> float:
        """Return the cost of what calls took."""
        return self.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)


class Reservation(Struct, frozen=True):
    """A part of the budget, reserved for one call."""

    cost: float
    """The most that the call can cost."""
    hold: Hold | None = None
    """What it takes from the day of the caller's key."""


class Budget:
    """Calls and money that may still be spent; shared by every call of a judge.

    The highest cost of a call (its prompt at one token per byte, and every token that it may
    generate) is reserved before it is sent, so that concurrent calls cannot exceed the limit
    together. The real cost replaces it when the reply arrives. Every attempt counts as a call. An
    attempt that broke off keeps its reservation, because it may have been charged for.

    Args:
        max_calls: Calls at most; None for any number.
        max_cost: Money at most; None for any amount.
        prices: What tokens cost, if known.
        within: A wider budget that every call counts towards too.
        ledger: Keeps what each caller's key spends, within its own limits.

    Raises:
        InvalidInputError: A limit is negative.
    """

    def __init__(
        self,
        max_calls: int | None = None,
        max_cost: float | None = None,
        prices: Prices | None = None,
        within: Budget | None = None,
        ledger: Spending | None = None,
    ) -> None:
        for name, value in (("max_calls", max_calls), ("max_cost", max_cost)):
            # Not "below zero", which would let NaN pass.
            if value is not None and not value >= 0:
                raise InvalidInputError(f"{name} is {value!r}; give zero or more")
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._within = within
        self._ledger = ledger
        self._refusal = ""
        self.prices = prices
        self.calls = 0
        self.spent = 0.0
        self._held = 0.0
        self._holders = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, most_prompt: int, most_completion_tokens: int) -> Reservation | None:
        """Reserve one call; None if the budget does not hold it.

        If it would fit once other reservations are released, those calls are waited for: they
        mostly cost less than was reserved.

        Args:
            most_prompt: Prompt tokens at most.
            most_completion_tokens: Generated tokens at most.

        Raises:
            UnavailableError: What the caller's key spends can't be written down.
            UnauthenticatedError: The caller's key has ended.
        """
        cost = self.prices.cost(most_prompt, most_completion_tokens) if self.prices else 0.0
        while True:
            await self._room(cost)
            if self._is_used_up(cost):
                self._refusal = ""
                return None
            hold = await self._take(cost)
            if isinstance(hold, str):
                self._refusal = hold
                return None
            if isinstance(hold, Crowded):
                # The key's running calls hold its money of the day, and mostly give some back.
                await shielded(hold.settled)
            # Another call may have taken the room while this one was written down.
            elif self._is_used_up(cost):
                if self._ledger is not None and hold is not None:
                    self._ledger.give_back(hold)
            else:
                break
        # Nothing is awaited since the check above, so that no other call can take the room.
        for budget in self._all():
            budget.calls += 1
            budget._holders += 1
            budget._held += cost
        return Reservation(cost, hold)

    async def _room(self, cost: float) -> None:
        """Wait while other reservations take what a call would fit into."""
        while crowded := [budget for budget in self._all() if budget._only_held(cost)]:
            # The narrowest budget first; the loop looks at the wider ones after it.
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            crowded[0]._waiting.append(turn)
            await turn

    async def _take(self, cost: float) -> Hold | Crowded | str | None:
        if self._ledger is None:
            return None
        return await self._ledger.take(tenancy().user_now(), cost, priced=self.prices is not None)

    def settle(self, reservation: Reservation, cost: float | None) -> None:
        """Replace a reservation by what the call cost."""
        if self._ledger is not None and reservation.hold is not None:
            self._ledger.settle(reservation.hold, cost or 0.0)
        for budget in self._all():
            budget._holders -= 1
            # Floating-point sums of additions and subtractions may not end at zero.
            budget._held = budget._held - reservation.cost if budget._holders else 0.0
            budget.spent += cost or 0.0
            # All are woken, because each knows only for itself whether the room is enough for it.
            waiting, budget._waiting = budget._waiting, []
            for turn in waiting:
                # A caller that was cancelled leaves its future behind.
                if not turn.done():
                    turn.set_result(None)

    def keep(self, reservation: Reservation) -> None:
        """Count a reservation as spent: the call may have been charged for."""
        self.settle(reservation, reservation.cost)

    def exhausted_detail(self) -> str:
        """Return why the call that was refused last is not made."""
        if self._refusal:
            return self._refusal
        limits = []
        for budget in self._all():
            if budget._max_calls is not None:
                limits.append(f"{budget.calls} of {budget._max_calls} calls made")
            if budget._max_cost is not None:
                gone = budget.spent + budget._held
                limits.append(f"{gone:.6f} of {budget._max_cost:.6f} spent or reserved")
        return f"{', '.join(limits)}; raise max_calls or max_cost to go on"

    def _all(self) -> list[Budget]:
        return [self, *(self._within._all() if self._within is not None else ())]

    def _is_used_up(self, cost: float) -> bool:
        """Whether a call does not fit into this budget or a wider one now."""
        return any(budget._has_no_room(cost) for budget in self._all())

    def _has_no_room(self, cost: float) -> bool:
        if self._max_calls is not None and self.calls >= self._max_calls:
            return True
        return self._max_cost is not None and self.spent + self._held + cost > self._max_cost

    def _only_held(self, cost: float) -> bool:
        """Whether a call does not fit now, and may fit when other calls end."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            return False
        limit = self._max_cost
        return (
            limit is not None
            and bool(self._holders)
            and (self.spent + self._held + cost > limit >= self.spent + cost)
        )


SERVER_VERSION, ANSWERED, THINKS = "server", "answered", "thinks"
DIALECT, CONSTRAINT = "dialect", "constraint"
"""What a store keeps of the judge at an address besides its replies."""


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
        """End a claim whose call produced no record."""

    async def put(self, key: str, judge: str, record: Record) -> None:
        """Keep a record."""

    async def fact_of(self, url: str, model: str, fact: str) -> str | None:
        """Return what is known of the judge at an address."""

    async def keep_fact(self, url: str, model: str, fact: str, value: str) -> None:
        """Keep what was seen of the judge at an address."""

    async def close(self) -> None:
        """Write what is not written yet."""


class CallBudget(Protocol):
    """Limits calls and their cost; see :class:`Budget`."""

    prices: Prices | None
    """What tokens cost, if known."""

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
        """Return the budget of a judge; None if it has no limits.

        Args:
            judge: ``llm`` or ``fallback``.
            prices: What its tokens cost.
        """
