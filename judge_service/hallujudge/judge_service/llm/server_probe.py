"""Another question for a server that fails a call: is it the server, or this prompt?"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

from .chat import ChatRequest
from .failures import CallFailedError, FailureKind
from .prompt_templates import Message

# A server is asked again only after this; until then its answer holds.
_HOLDS_SECONDS = 10.0
_QUESTION: Message = {"role": "user", "content": "Is snow white? Answer in one word."}
# Enough for any of our choices; whether the answer is whole does not matter.
_TOKENS = 16
# Numbers differ from call to call: ids of requests, sizes, times. Sets are listed in any order.
_WORD = re.compile(r"[^\W\d_]+")
# What ends a call to the list of models only where the server, or the way to it, is down.
_DOWN = (FailureKind.CONNECTION, FailureKind.TIMEOUT, FailureKind.SERVER)


class ServerProbe:
    """Asks one server another question, for all calls that fail meanwhile.

    Args:
        listed: Reads the server's list of models, which costs nothing.
        asked: Sends a request to the server, past its circuit.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(
        self,
        listed: Callable[[], Awaitable[object]],
        asked: Callable[[ChatRequest], Awaitable[object]],
        clock: Callable[[], float],
    ) -> None:
        self._listed, self._asked = listed, asked
        self._clock = clock
        self._failure: CallFailedError | None = None
        self._until = float("-inf")
        self._under_way: asyncio.Event | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the server answered another question just now."""
        return self._failure is None and self._clock() < self._until

    async def failure(self, request: ChatRequest) -> CallFailedError | None:
        """Return why the server does not answer another question either; None if it does.

        Args:
            request: The call that failed; the question has its form.
        """
        await self.settled()
        if self._clock() >= self._until:
            done = self._under_way = asyncio.Event()
            try:
                self._failure = await self._outcome(other_question(request))
                self._until = self._clock() + _HOLDS_SECONDS
            finally:
                self._under_way = None
                done.set()
        return self._failure

    async def settled(self) -> None:
        """Wait until no question is under way."""
        while self._under_way is not None:
            await self._under_way.wait()

    async def _outcome(self, request: ChatRequest) -> CallFailedError | None:
        try:
            await self._listed()
        except CallFailedError as failure:
            if failure.kind in _DOWN:
                return failure
        try:
            await self._asked(request)
        except CallFailedError as failure:
            return failure
        return None


CONSTRAINED_QUESTION = ChatRequest(
    messages=[_QUESTION],
    max_tokens=_TOKENS,
    choices=("yes", "no"),
    schema={
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
        "required": ["answer"],
        "additionalProperties": False,
    },
)
"""A short question with a constraint, which a server may refuse."""


def other_question(request: ChatRequest) -> ChatRequest:
    """Return a short question of the same form as a request: its parameters, choices or schema."""
    return replace(
        request,
        messages=[_QUESTION],
        parts=("Snow is white.",) if request.parts else (),
        images=(),
        affinity="",
        max_tokens=_TOKENS,
    )


def is_longer(request: ChatRequest) -> bool:
    """Whether a request is for a text, which takes more time than the other question."""
    return not request.is_constrained and request.max_tokens > _TOKENS


def is_same(one: CallFailedError, other: CallFailedError) -> bool:
    """Whether a server said the same to two requests."""
    said, again = (sorted(_WORD.findall(each.detail.casefold())) for each in (one, other))
    return one.kind is other.kind and said == again
