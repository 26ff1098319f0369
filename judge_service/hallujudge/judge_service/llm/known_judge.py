"""What calls have shown of a judge: that it answers, and that it thinks before it does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from .budget import ANSWERED, THINKS, VerdictStore
from .chat import ChatReply, ChatRequest, is_asked_model
from .failures import CallFailedError, FailureKind
from .reply_problems import ROOM_ADVICE, is_cut_thought, without_thought

_LOG = logging.getLogger(__name__)
THOUGHT_TOKENS = 4096
"""Room for a thought before an answer; the thoughts of open models mostly take 500 to 3,000."""
# What becomes of a call with a limit of completion tokens that the server does not have, or of a
# thought that takes longer than a reply may.
_NO_ROOM = (FailureKind.TOO_LONG, FailureKind.REFUSED_REQUEST, FailureKind.TRUNCATED)
# One thought may have been endless, or the server busy; a process may serve for weeks.
_TRIED_AGAIN_SECONDS = 600.0


class KnownJudge:
    """What a process learns of a judge, and keeps for later ones.

    Args:
        url: Its address.
        model: Its model.
        api: The protocol of its calls: a server may have one and lack another.
        store: Keeps what is learnt, if anything does.
        max_tokens: The user's limit of completion tokens; 0 for none.
        is_offline: Whether files of replies answer. The names of requests in them depend on the
            limit, which then stays as it is.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(
        self,
        url: str,
        model: str,
        api: str,
        store: VerdictStore | None,
        max_tokens: int,
        *,
        is_offline: bool,
        clock: Callable[[], float],
    ) -> None:
        self._judge = (url, model)
        self._answered = ANSWERED if api == "chat" else f"{ANSWERED} {api}"
        self._store = store
        self._clock = clock
        self._max_tokens = max_tokens
        self._may_learn = not is_offline
        # Whether it gave an answer after a thought.
        self._thinks = False
        # Held while it is found out whether the room for a thought is enough, or can't be had.
        self._trying = asyncio.Lock()
        self._room_fails_until = float("-inf")
        self._no_room = ""
        self._replied_model = ""
        self.has_thoughts = False
        """Whether a reply had a thought, with or without an answer after it."""
        self.answers_now = False
        """Whether it has answered this process."""
        self.answered_earlier = False
        """Whether it has answered an earlier process, or this one and that is kept."""

    @property
    def was_ever_answered(self) -> bool:
        """Whether the judge ever answered."""
        return self.answers_now or self.answered_earlier

    async def recall(self) -> None:
        """Look up what an earlier process learnt."""
        if self._store is not None and not self.was_ever_answered:
            fact = self._store.fact_of
            thinks = self._may_learn and await fact(*self._judge, THINKS) is not None
            # At once, because other calls look nothing up from here on.
            self.answered_earlier = await fact(*self._judge, self._answered) is not None
            self._thinks = self._thinks or thinks
            self.has_thoughts = self.has_thoughts or thinks

    def check_model(self, replied: str, accepted: Collection[str]) -> None:
        """Refuse the reply of another model; mention a snapshot of the right one once.

        Args:
            replied: The model that a reply names.
            accepted: Other names that it may have.
        """
        _, asked = self._judge
        if not is_asked_model(replied, asked, accepted):
            raise CallFailedError(
                FailureKind.OTHER_MODEL, f"asked for {asked!r}, the reply is from {replied!r}"
            )
        if replied and replied not in (asked, self._replied_model):
            self._replied_model = replied
            _LOG.warning("judge %s: replies come from %s", asked, replied)

    async def remember(self, reply: ChatReply) -> None:
        """Learn from an answer, and keep it for later processes."""
        facts: list[str] = []
        if not self.answered_earlier and self._store is not None:
            self.answered_earlier = True
            facts.append(self._answered)
        self.saw(reply)
        said = without_thought(reply)
        has_both = said.has_thought and not said.is_unfinished_thought
        if self._may_learn and not self._thinks and has_both:
            self._thinks = True
            facts.append(THINKS)
        await self._keep(facts)

    def saw(self, reply: ChatReply) -> None:
        """Note whether a reply, of which nothing else matters, has a thought."""
        self.has_thoughts = self.has_thoughts or without_thought(reply).has_thought

    async def _keep(self, facts: Sequence[str]) -> None:
        for fact in facts if self._store is not None else ():
            assert self._store is not None, "there are facts to keep"
            await self._store.keep_fact(*self._judge, fact, "yes")

    def limited(self, request: ChatRequest) -> ChatRequest:
        """Return a request with the limit of completion tokens that is sent.

        The user's limit holds for answers that a program reads. Without one, a model that is known
        to think gets room for its thought.
        """
        return self._limited(request, has_room=self._thinks)

    def with_room(self, request: ChatRequest) -> ChatRequest:
        """Return a request as it is sent to a model that thinks."""
        return self._limited(request, has_room=self._may_learn)

    async def ask_with_room(
        self,
        request: ChatRequest,
        limit: int,
        ask: Callable[[ChatRequest], Awaitable[ChatReply]],
    ) -> str:
        """Ask again for a reply that was cut off in its thought, if room for a thought helps.

        The first such reply shows whether it does; the others wait for that, and are asked for
        again only if it does. If not, the next one shows it after some minutes. The user's limit,
        and one that already had the room, are not raised.

        Args:
            request: What was asked.
            limit: The limit of completion tokens that was sent.
            ask: Sends a request with another limit.

        Returns:
            Why the room does not help; empty if it did, or nothing is known about it.

        Raises:
            CallFailedError: The call failed.
        """
        async with self._trying:
            may_help = self._may_learn and self._clock() >= self._room_fails_until
            longer = self._limited(request, has_room=self._thinks or may_help)
            if longer.max_tokens <= limit:
                return self._no_room
            if not self._thinks:
                self._no_room = await self._try(longer, ask)
                if self._no_room:
                    self._room_fails_until = self._clock() + _TRIED_AGAIN_SECONDS
                return self._no_room
        await ask(longer)
        return ""

    async def _try(
        self, longer: ChatRequest, ask: Callable[[ChatRequest], Awaitable[ChatReply]]
    ) -> str:
        try:
            reply = await ask(longer)
        except CallFailedError as failure:
            if failure.kind not in _NO_ROOM:
                raise
            told = failure.detail.removesuffix(f"; {ROOM_ADVICE}")
            return f"with {longer.max_tokens} tokens: {told}"
        await self.remember(reply)
        return f"so it was with {longer.max_tokens} tokens" if is_cut_thought(reply) else ""

    def _limited(self, request: ChatRequest, *, has_room: bool) -> ChatRequest:
        if not request.is_constrained or request.api != "chat":
            return request
        if self._max_tokens:
            return replace(request, max_tokens=self._max_tokens)
        return replace(request, max_tokens=request.max_tokens + THOUGHT_TOKENS * has_room)
