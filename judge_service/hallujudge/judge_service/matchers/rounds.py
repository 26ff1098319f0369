"""Judging in a thread, in rounds between which a call can be cancelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hallujudge.metrics.framework.claims import ClaimVerdict

from ..access.turns import in_thread
from .values import ClaimQuery

__all__ = ["in_rounds"]


async def in_rounds(
    judge: Callable[[Sequence[ClaimQuery]], list[ClaimVerdict]],
    claims: Sequence[ClaimQuery],
    size: int,
    *,
    short: bool = True,
) -> list[ClaimVerdict]:
    """Return one verdict for each claim, in order.

    Args:
        judge: Gives verdicts; it runs in a thread.
        claims: The claims.
        size: How many claims a round has.
        short: Whether a round takes less than about a tenth of a second.
    """
    verdicts: list[ClaimVerdict] = []
    for first in range(0, len(claims), size):
        verdicts += await in_thread(partial(judge, claims[first : first + size]), short=short)
    return verdicts
