"""The judge of fault schedules: it fails as a schedule says, and counts what it is paid for."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass

from support import scripted_llm as llm

__all__ = ["FaultyJudge", "owner_of"]

_FAILURES: dict[str, llm.Reply] = {
    "401": llm.error(401, "key is being exchanged"),
    "403": llm.error(403, "not this prompt"),
    "404": llm.error(404, "no route"),
    "429": llm.error(429, "slow down", **{"Retry-After": "1"}),
    "500": llm.error(500, "out of memory"),
    "reset": llm.Reply(reset=True),
    "cut": llm.Reply(body=b'{"choices": [', headers={"Content-Type": "application/json"}, cut=6),
    "garbage": llm.Reply(body=b"<html>welcome</html>"),
    "model": llm.completion("supported", model="another"),
    "refusal": llm.completion(None, refusal="I'd rather not."),
    "limit": llm.error(429, "not this prompt", **{"Retry-After": "60"}),
    "quota": llm.error(429, "no credit left", "insufficient_quota"),
    "later": llm.error(500, "maintenance", **{"Retry-After": "600"}),
}
# Calls take a moment, so that callers meet in them.
_QUICK, _SLOW = 0.003, 0.03
# Rejections that end a run where the judge has never answered.
_REJECTIONS = ("401", "404", "model")


@dataclass(frozen=True)
class _Answer(llm.Reply):
    """A reply that is paid for when it is sent."""

    claim: str = ""
    """What it is about."""


def owner_of(claim: str) -> str:
    """Return who asks about a claim: a caller, or ``all``."""
    return claim.rpartition(" of ")[2]


class FaultyJudge(llm.ScriptedLlm):
    """Answers calls, or fails.

    Attributes:
        fault: What it does to every call; empty if it answers.
        holds: Whether it lets every call wait, whatever else it does.
        poisons: What it does to claims of one caller, by caller.
        limited: Claims that it answers by a rate limit, each for itself.
        sent: Calls that it got, by claim.
        paid: Calls that it answered well, by claim.
        failed: What it did instead, by claim.
        sent_in_life: The claims of calls since the server last started.
        rejected_early: Whether it rejected a call before the server can have had an answer.
    """

    def __init__(self, at_once: int) -> None:
        super().__init__(self._reply)
        self.fault = ""
        self.holds = False
        self.poisons: dict[str, str] = {}
        self.limited: set[str] = set()
        self.sent: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.failed: defaultdict[str, set[str]] = defaultdict(set)
        self.sent_in_life: set[str] = set()
        self.rejected_early = False
        self._answers_in_life = 0
        self._at_once = at_once
        self._held: list[asyncio.Event] = []

    @property
    def held(self) -> int:
        """Calls that wait for a reply."""
        return len(self._held)

    def sent_for(self, owner: str) -> int:
        """Return how many calls it got about the claims of one caller alone."""
        return sum(count for claim, count in self.sent.items() if owner_of(claim) == owner)

    def server_starts(self) -> None:
        """Note that another life of the server begins."""
        self.sent_in_life.clear()
        self._answers_in_life = 0

    def disconnect(self) -> None:
        """Close all connections."""
        for task in self._connections:
            task.cancel()

    def drop(self) -> None:
        """Reset the connections of the calls that wait."""
        held, self._held = self._held, []
        for event in held:
            event.set()

    def _reply(self, number: int, body: llm.Body) -> llm.Reply:
        claim = llm.claims_of(body)[0][-1]
        self.sent[claim] += 1
        self.sent_in_life.add(claim)
        kind = self.poisons.get(owner_of(claim)) or self.fault
        kind = "limit" if claim in self.limited else kind
        kind = "hang" if self.holds else kind
        if kind in ("", "slow"):
            good = vars(llm.by_scene_graph(number, body))
            return _Answer(**good | {"delay": _SLOW if kind else _QUICK}, claim=claim)
        self.failed[claim].add(kind)
        if kind == "hang":
            self._held.append(asyncio.Event())
            return llm.Reply(reset=True, hold=self._held[-1])
        if kind in _REJECTIONS and self._answers_in_life <= self._at_once:
            self.rejected_early = True
        return _FAILURES[kind]

    async def _send(self, writer: asyncio.StreamWriter, reply: llm.Reply) -> bool:
        if isinstance(reply, _Answer):
            self.paid[reply.claim] += 1
            self._answers_in_life += 1
        return await super()._send(writer, reply)
