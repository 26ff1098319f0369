"""What calls have shown of a judge: that it answers, and that it thinks before it does.

Where a call fails, another question tells whether that is the server, or this prompt.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec.structs import replace

from .budget import ANSWERED, THINKS, VerdictStore
from .chat import ChatRequest
from .chat_replies import ROOM_ADVICE, ChatReply, is_cut_thought, without_thought
from .chat_settings import ChatSettings
from .failures import CallFailedError, FailureKind
from .prompt_templates import Message, choice_schema

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
        settings: How it is called.
        store: Keeps what is learnt, if anything does.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(
        self, settings: ChatSettings, store: VerdictStore | None, clock: Callable[[], float]
    ) -> None:
        self._judge = (settings.endpoint.url, settings.model)
        # A server may have one protocol and lack another.
        self._answered = ANSWERED if settings.api == "chat" else f"{ANSWERED} {settings.api}"
        self._store = store
        self._clock = clock
        self._max_tokens = settings.max_tokens
        # The names of requests in files of replies depend on the limit, which then stays as it is.
        self._may_learn = settings.offline is None
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
        # One of the calls that waited here may have begun the next question.
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
    schema=choice_schema("answer", ("yes", "no")),
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


# Accepts replies of any model.
_ANY_MODEL = "*"


# A dated snapshot ("gpt-4o" answers as "gpt-4o-2024-08-06") or a default tag ("llama3:latest").
_SNAPSHOT = re.compile(r"-\d{4}.*|@.+|:latest")


def is_asked_model(replied: str, asked: str, accepted: Collection[str] = ()) -> bool:
    """Return whether the model that a reply names is the one that was asked for.

    Folders before the name do not count: gateways add and drop them.

    Args:
        replied: The reply's model; empty if the server names none.
        asked: The request's model.
        accepted: More names that replies may carry; ``*`` accepts all.
    """
    if not replied or _ANY_MODEL in accepted:
        return True
    name, wanted = _last_part(replied), _last_part(asked)
    if name == wanted or name in {_last_part(other) for other in accepted}:
        return True
    return name.startswith(wanted) and _SNAPSHOT.fullmatch(name[len(wanted) :]) is not None


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].casefold()
