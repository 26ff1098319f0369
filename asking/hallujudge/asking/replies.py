"""What a model replied to a question, or why it has no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from hallujudge.judge_service.llm.ask_once import AskOnce, Reading
from hallujudge.judge_service.llm.budget import Usage, VerdictStore
from hallujudge.judge_service.llm.cache_file import Record, cache_key
from hallujudge.judge_service.llm.chat import ChatRequest
from hallujudge.judge_service.llm.chat_replies import ChatReply, ReplyProblem, reply_problem
from hallujudge.judge_service.llm.client import Answer, ChatClient
from hallujudge.judge_service.llm.estimate import PlannedCall
from hallujudge.judge_service.llm.failures import CallFailedError
from hallujudge.judge_service.llm.prompt_templates import CONFIDENCE, Template, read_confidence
from hallujudge.metrics.answers.choices import read_choice
from hallujudge.metrics.answers.orders import RelativeOrdering
from hallujudge.metrics.framework.asking import AskingStep
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.metrics.responses import answer_of
from hallujudge.sdk.media.media_files import Media, MediaError

from .asked_benchmarks import OPTIONAL_SLOTS, Benchmark
from .inquiries import Inquiry, shown_options
from .outcomes import (
    CUT_OFF,
    THOUGHT_UNFINISHED,
    Answered,
    StepReply,
    own_reason,
    reason_of,
)
from .shown_media import ShownMedia

_REFUSED = "JUDGE_REFUSED"
# Limits of tokens that a file of replies was asked with; a reply does not depend on the address.
_LIMITS, _ANY_URL = "max_tokens", ""


# What is kept of a reply besides its usage.
_KEPT = ("content", "thought", "finish_reason", "refusal", "model")


class Reply(ChatReply, frozen=True, kw_only=True):
    """A reply of the model, as far as it is kept, and what it took."""

    usage: Usage = Usage()
    """What it took, in this run or an earlier one."""

    @classmethod
    def of(cls, answer: Answer) -> Reply:
        """Return the reply of an answered call."""
        kept = {name: getattr(answer.reply, name) for name in _KEPT}
        return cls(**kept, usage=answer.usage)

    @property
    def problem(self) -> ReplyProblem | None:
        """Why it is not a whole reply; None if it is one."""
        if (problem := reply_problem(self)) is None:
            return None
        # A refusal within a thought stays a refusal: more tokens would not end it.
        if self.is_unfinished_thought and problem.reason != _REFUSED:
            return problem._replace(reason=THOUGHT_UNFINISHED)
        return problem._replace(reason=own_reason(problem.reason))

    def checked(self) -> Reply:
        """Return the reply if it is whole.

        Raises:
            NoReplyError: The model refused, or the reply was cut off.
        """
        if (problem := self.problem) is not None:
            raise NoReplyError(problem.reason, problem.detail, self)
        return self

    @property
    def lacks_tokens(self) -> bool:
        """Whether more tokens may make it whole."""
        return self.problem is not None and self.problem.reason in CUT_OFF

    @classmethod
    def from_record(cls, record: Record) -> Reply | None:
        """Read a reply of the cache; None if it is another kind of record."""
        try:
            return cls(**{**record, "usage": Usage.from_record(record["usage"])})  # type: ignore[arg-type]  # checked by use
        except (KeyError, TypeError):
            return None

    def to_record(self) -> Record:
        """Return the reply as the cache keeps it."""
        kept = {name: getattr(self, name) for name in _KEPT}
        return {**kept, "usage": self.usage.to_record()}


def _uncut(record: Record) -> Reply | None:
    """Read a reply that more tokens would not make longer; None if it was cut off."""
    reply = Reply.from_record(record)
    return None if reply is None or reply.lacks_tokens else reply


_READING: Reading[Reply] = Reading(
    read=Reply.of, to_record=Reply.to_record, from_record=Reply.from_record
)
_UNCUT = replace(_READING, from_record=_uncut)


class NoReplyError(Exception):
    """A call has no whole reply, or none that can be used.

    Attributes:
        reason: A fixed name, such as ``MODEL_REFUSED``.
        detail: The same in words.
        reply: The reply that is not whole; None if there is none.
        is_kept: Whether there is a reply, which the next run finds too; a failed call is repeated.
    """

    def __init__(
        self, reason: str, detail: str, reply: Reply | None = None, *, is_kept: bool = True
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.reply, self.is_kept = reason, detail, reply, is_kept


class ModelCalls:
    """Calls of a model, each of them made once.

    Args:
        client: Calls the model.
        store: Keeps replies; None keeps them in memory.
        label: What calls are for, in words, for people who look at the file of replies.
    """

    def __init__(self, client: ChatClient, store: VerdictStore | None, label: str) -> None:
        self._once = AskOnce[Reply](client, store)
        self._settings = client.settings
        self._label = label

    def key(self, request: ChatRequest, **more: object) -> str:
        """Return everything that a reply depends on, as a key.

        Args:
            request: The call.
            more: What is shown, and the version of these keys, which tells them from other ones.
        """
        parameters = self._settings.sampling.parameters(self._settings.dialect)
        return cache_key(
            {
                "model": self._settings.model,
                "parameters": {**parameters, **request.extra},
                "max_tokens": request.max_tokens,
                "messages": request.messages,
                **more,
            }
        )

    async def known(self, key: str, *, uncut: bool = False) -> Reply | None:
        """Return a reply that is kept, which may have to be whole; None if there is none."""
        return await self._once.known(key, _UNCUT if uncut else _READING)

    async def made(self, key: str, request: ChatRequest) -> Reply:
        """Return the reply to a call.

        Raises:
            NoReplyError: The call failed.
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The model answered no call for a long time.
        """
        try:
            return await self._once.ask(key, request, _READING, label=self._label)
        except CallFailedError as err:
            raise NoReplyError(reason_of(err), err.detail, is_kept=False) from err


class Asker:
    """Asks the questions of a benchmark, each call once.

    Args:
        benchmark: What is asked.
        client: Calls the model.
        store: Keeps replies, so that no call is made twice; None keeps them in memory.
        shown: Images and videos.
        max_tokens: Tokens of a reply at most.
        parameters: More parameters of the requests.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        client: ChatClient,
        store: VerdictStore | None,
        shown: ShownMedia,
        *,
        max_tokens: int,
        parameters: Mapping[str, JsonValue],
    ) -> None:
        self._benchmark = benchmark
        self._client = client
        self._store = store
        self._calls = ModelCalls(client, store, "asked model")
        self.shown = shown
        self._max_tokens = max_tokens
        self._smaller_limits: list[int] = []
        self._parameters = parameters
        self._used: dict[str, Reply] = {}

    @property
    def usage(self) -> Usage:
        """What all replies took, in this run or earlier ones; a shared one counts once."""
        # In the order of keys, since sums of costs depend on their order.
        return Usage.total(self._used[key].usage for key in sorted(self._used))

    @property
    def models(self) -> list[str]:
        """The names that the server called the model."""
        return sorted({reply.model for reply in self._used.values() if reply.model})

    async def recall_limits(self, *, keeps: bool) -> None:
        """Look up the smaller limits of tokens that replies in the file were asked with.

        Args:
            keeps: Whether the limit of this run is kept for later ones.
        """
        if self._store is None:
            return
        model = self._client.settings.model
        known = await self._store.fact_of(_ANY_URL, model, _LIMITS) or ""
        limits = {int(limit) for limit in known.split(",") if limit.isdecimal()}
        # Only smaller limits: a reply that fits into them is whole here too.
        self._smaller_limits = [limit for limit in limits if limit < self._max_tokens]
        if keeps and self._max_tokens not in limits:
            every = ",".join(map(str, sorted({*limits, self._max_tokens})))
            await self._store.keep_fact(_ANY_URL, model, _LIMITS, every)

    async def ask(self, inquiry: Inquiry) -> Answered:
        """Return the outcome of a question.

        Raises:
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The model answered no call for a long time.
        """
        replies: list[tuple[str, Reply]] = []
        try:
            self._check_slots(inquiry)
            media = await self.shown.find(inquiry)
            if self._benchmark.protocol.pairs:
                response = await self._ordered(inquiry, media, replies)
            else:
                for step in self._benchmark.protocol.steps:
                    earlier = {name: answer_of(reply.content) for name, reply in replies}
                    replies.append((step.name, await self._reply(step, inquiry, media, earlier)))
                response = replies[-1][1].content
        except MediaError as err:
            return _unanswered(replies, err.reason, err.detail)
        except NoReplyError as err:
            return _unanswered(replies, err.reason, err.detail, err.reply)
        thought = replies[-1][1].thought
        if self._benchmark.protocol.pairs:
            # The order is not a reply of its own, so that all replies are steps.
            steps = _steps_of(replies, inquiry.options)
            return Answered(response=response, thought=thought, steps=steps)
        if self._benchmark.reads == CONFIDENCE:
            # The whole reply is a step, since the response is only a part of it.
            # INFACT's appendix A.4 asks for a confidence in a run of its own and prints no words;
            # our prompt asks for answer and confidence at once.
            said, confidence = read_confidence(answer_of(response))
            steps = _steps_of(replies)
            return Answered(response=said, thought=thought, steps=steps, confidence=confidence)
        return Answered(response=response, thought=thought, steps=_steps_of(replies[:-1]))

    async def plan(self, inquiry: Inquiry) -> list[PlannedCall]:
        """Return the calls of a question as far as they are known; nothing is sent.

        A step whose prompt has a reply that is not known yet is planned without that reply, and of
        questions about pairs two are planned.
        """
        try:
            self._check_slots(inquiry)
            media = await self.shown.find(inquiry)
            images = await self.shown.estimated(media)
        except (MediaError, NoReplyError):
            # A question that can't be asked costs no call; the run gives its reason.
            return []
        earlier: dict[str, str] = {}
        planned = []
        for options in self._planned_options(inquiry):
            for step in self._benchmark.protocol.steps:
                shown = media if step.shows else None
                prompt = self._request(step, inquiry, earlier, options)
                key, known = await self._known(prompt, shown)
                earlier[step.name] = answer_of(known.content) if known is not None else ""
                request = replace(prompt, images=images if step.shows else ())
                planned.append(PlannedCall(key=key, cached=known is not None, request=request))
        return planned

    def _planned_options(self, inquiry: Inquiry) -> list[str]:
        if not self._benchmark.protocol.pairs:
            return [inquiry.slots["options"]]
        letters = list(inquiry.options)
        pairs = [*pairwise(letters)]
        # Of three options, the pair that is left over.
        pairs += [(letters[0], letters[-1])] if self._benchmark.protocol.ends else []
        return [_of_pair(inquiry, pair) for pair in pairs]

    def _check_slots(self, inquiry: Inquiry) -> None:
        """Check that a record has what its prompts ask about: an empty prompt costs a call.

        Raises:
            NoReplyError: A slot is empty.
        """
        for step in self._benchmark.protocol.steps:
            for name in self._benchmark.slots_of(step.name):
                # Earlier steps fill slots of later ones.
                value = inquiry.slots.get(name)
                if value is not None and not value.strip() and name not in OPTIONAL_SLOTS:
                    detail = f"the prompt asks about {name}, of which the record has none"
                    raise NoReplyError(f"{name.upper()}_MISSING", detail)

    async def _ordered(
        self, inquiry: Inquiry, media: Media | None, replies: list[tuple[str, Reply]]
    ) -> str:
        """Return the order that questions about pairs lead to."""
        if len(inquiry.options) < 2:
            raise NoReplyError("OPTIONS_MISSING", "there are fewer than two options to order")
        plan = RelativeOrdering(list(inquiry.options))
        [step] = self._benchmark.protocol.steps
        while plan.question is not None:
            pair = plan.question
            reply = await self._reply(step, inquiry, media, {}, _of_pair(inquiry, pair))
            replies.append((f"{pair.first} or {pair.second}", reply))
            offered = {letter: inquiry.options[letter] for letter in pair}
            answer = answer_of(reply.content)
            chosen = read_choice(answer, offered).choice
            if chosen is None:
                detail = f"{answer[:80]!r} chooses neither {pair.first} nor {pair.second}"
                raise NoReplyError("ANSWER_UNPARSED", detail)
            plan.answer(chosen)
        assert plan.order is not None, "no question is open"
        ends = plan.pair_of(plan.order[0], plan.order[-1])
        # VidHal's formula 7 takes the answer about the ends, which the plan may not have needed.
        if self._benchmark.protocol.ends and ends not in [each.question for each in plan.answers]:
            reply = await self._reply(step, inquiry, media, {}, _of_pair(inquiry, ends))
            replies.append((f"{ends.first} or {ends.second}", reply))
        return ", ".join(plan.order)

    async def _reply(
        self,
        step: AskingStep,
        inquiry: Inquiry,
        media: Media | None,
        earlier: dict[str, str],
        options: str | None = None,
    ) -> Reply:
        shown = media if step.shows else None
        request = self._request(step, inquiry, earlier, options)
        key, reply = await self._known(request, shown)
        if reply is None:
            # Only now: the key has hashes of files, so that a known reply decodes no video.
            images = await self.shown.images(shown)
            # Questions about one image go to one server, which may still have it in its cache.
            request = replace(request, images=images, affinity=shown.name if shown else "")
            reply = await self._calls.made(key, request)
        self._used[key] = reply
        return reply.checked()

    async def _known(self, request: ChatRequest, media: Media | None) -> tuple[str, Reply | None]:
        """Return the key of a call, and its reply if it is known.

        A reply that was not cut off at a smaller limit of tokens is the same at this one.
        """
        key = await self._key(request, media)
        reply = await self._calls.known(key)
        for limit in self._smaller_limits if reply is None else ():
            smaller = await self._key(replace(request, max_tokens=limit), media)
            if (reply := await self._calls.known(smaller, uncut=True)) is not None:
                return smaller, reply
        return key, reply

    def _request(
        self,
        step: AskingStep,
        inquiry: Inquiry,
        earlier: dict[str, str],
        options: str | None = None,
    ) -> ChatRequest:
        template: Template = self._benchmark.templates[step.name]
        slots = {**inquiry.slots, **earlier}
        if options is not None:
            slots["options"] = options
        return ChatRequest(
            messages=template.messages(slots),
            max_tokens=self._max_tokens,
            extra=self._parameters,
        )

    async def _key(self, request: ChatRequest, media: Media | None) -> str:
        shown = await self.shown.digest(media) if media is not None else ""
        return self._calls.key(request, asks=1, media=shown)


def _of_pair(inquiry: Inquiry, pair: Sequence[str]) -> str:
    return shown_options({letter: inquiry.options[letter] for letter in pair})


def _steps_of(
    replies: Sequence[tuple[str, Reply]], options: Mapping[str, str] | None = None
) -> tuple[StepReply, ...]:
    """Return replies as steps; with options, those about pairs have the chosen letter."""
    return tuple(
        StepReply(
            name, reply.content, reply.thought, _choice(name, reply, options) if options else None
        )
        for name, reply in replies
    )


def _choice(name: str, reply: Reply, options: Mapping[str, str]) -> str | None:
    pair = name.split(" or ")
    return read_choice(answer_of(reply.content), {each: options[each] for each in pair}).choice


def _unanswered(
    replies: Sequence[tuple[str, Reply]], reason: str, detail: str, last: Reply | None = None
) -> Answered:
    """Return the outcome of a question without an answer.

    Args:
        replies: The whole replies.
        reason: Why there is no answer.
        detail: The same in words.
        last: The reply that is not whole; None if there is none.
    """
    steps = _steps_of(replies)
    if last is None:
        return Answered(reason=reason, detail=detail, steps=steps)
    # An unfinished thought has no text besides it.
    if reason != THOUGHT_UNFINISHED:
        name = "cut_off" if last.finish_reason == "length" else "refusal"
        steps = (*steps, StepReply(name, last.content or last.refusal))
    return Answered(thought=last.thought, reason=reason, detail=detail, steps=steps)
