"""Calls to a server that this process supervises: they wait while it is started again."""

from __future__ import annotations

from ..errors import UnavailableError
from .call_policy import Call, Outage, RetryPolicy, Tools
from .circuits import ByCaller
from .failures import CallFailedError, FailureKind

_MOST_ENDS = 3
"""How often a server may end under one call, which may be what ends it."""
# How calls fail at a server that ends or hangs.
_OF_A_RESTART = frozenset(
    {
        FailureKind.CIRCUIT,
        FailureKind.CONNECTION,
        FailureKind.NOT_THE_API,
        FailureKind.SERVER,
        FailureKind.TIMEOUT,
    }
)


class Restarts:
    """Has calls wait for a supervised server, and tells which of them failed because it ended.

    Args:
        judge: The judge in words, for messages.
        policy: How long an outage is waited for where another judge is asked.
        outages: Each caller's failures since the judge last answered it.
        tools: Clock, randomness and sleep.
    """

    def __init__(
        self, judge: str, policy: RetryPolicy, outages: ByCaller[Outage], tools: Tools
    ) -> None:
        self._judge = judge
        self._policy = policy
        self._outages = outages
        self._tools = tools

    async def wait(self, call: Call) -> None:
        """Wait while the call's server is known to be down.

        Raises:
            UnavailableError: It does not serve again in time, and no other judge is asked.
            CallFailedError: The same, where another judge is asked.
        """
        supervision = call.server.endpoint.supervision
        if supervision is None or not supervision.is_down:
            return
        most = self._policy.outage_seconds if call.has_fallback else supervision.most_seconds
        why = await supervision.served(self._tools.sleep, most)
        if why and call.has_fallback:
            raise CallFailedError(FailureKind.CONNECTION, why)
        if why:
            raise UnavailableError(
                f"{self._judge}: {why}. Calls that are in the verdict cache are not repeated",
                reason="JUDGE_NO_PROGRESS",
                metadata={"judge": self._judge, "cause": FailureKind.CONNECTION.value},
            )
        self._outages.mine.forget()
        call.server.circuits.succeeded()

    def note(self, call: Call) -> None:
        """Note that a call is about to be sent.

        Raises:
            CallFailedError: Its server ended while it waited for its turn.
        """
        supervision = call.server.endpoint.supervision
        if supervision is None:
            return
        if supervision.is_down:
            raise CallFailedError(FailureKind.CIRCUIT, f"not sent: {supervision.name} is down")
        call.restarts = supervision.restarts

    async def caused(self, call: Call, failure: CallFailedError) -> bool:
        """Return whether a call failed because its server ended or hung; it is not counted then.

        Raises:
            CallFailedError: The server ended under this call several times, maybe because of it.
        """
        supervision = call.server.endpoint.supervision
        if supervision is None or failure.kind not in _OF_A_RESTART:
            return False
        if failure.kind is FailureKind.CIRCUIT:
            return supervision.is_down
        if not await supervision.ended_since(call.restarts, self._tools.sleep):
            return False
        call.attempts -= 1
        call.ends += 1
        if call.ends == _MOST_ENDS:
            raise CallFailedError(
                FailureKind.CONNECTION,
                f"{supervision.name} ended {_MOST_ENDS} times while it had this call: "
                f"{failure.detail}",
            ) from failure
        return True
