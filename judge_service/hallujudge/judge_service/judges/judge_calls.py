"""What a language model returns on one item: replies, and how likely the choices were.

Servers mask what a constraint rules out before they report log-probabilities (vLLM 0.32.0 does), so
that margins and probabilities are among the choices: a judge that wants to write something else has
margins like any other. One token that is generated without a constraint shows it. Its call is made
for a part of the claims, which is drawn by their prompts: the same in every run, order and worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Verdict
from hallujudge.metrics.framework.results import JsonValue, UnscoredReason

from ..llm.ask_once import AskOnce, Reading
from ..llm.budget import Usage, VerdictStore
from ..llm.cache_file import Record, cache_key
from ..llm.chat import ChatRequest
from ..llm.chat_replies import ChatReply
from ..llm.client import Answer, ChatClient
from ..llm.estimate import PlannedCall
from ..llm.failures import CallFailedError
from . import DIGITS, Declined, JudgedItem, JudgeRequestItem, Recalled, count_verdicts
from .judge_rules import ShareRule
from .questions import Question
from .replies import WRAPPING, ReadAnswer, choice_begun_by, read_choice, read_keyed, read_stated

# vLLM and OpenAI list at most so many.
_MOST_LISTED = 20


class MeasuredShare(NamedTuple):
    """What the first free token of a reply says."""

    share: float | None
    """Probability that it begins one of the choices; None if it is not known."""
    usage: Usage = Usage()
    """What the call took."""
    payer: str = ""
    """The item whose question was sent."""
    reason: str = ""
    """Why the call failed."""
    detail: str = ""
    """The reason in words."""

    def usage_of(self, question: Question) -> Usage:
        """Return what the call took for the item that asks a question."""
        return self.usage if self.payer == question.payer else self.usage.again()


class ShareMeter:
    """Asks for the first free token of replies, each once, as other calls are made.

    Args:
        client: Calls the model.
        cache: Keeps what was measured between runs; None keeps it in memory only.
    """

    def __init__(self, client: ChatClient, cache: VerdictStore | None) -> None:
        self._client = client
        self._calls: AskOnce[MeasuredShare] = AskOnce(client, cache)

    async def known(self, key: str, question: Question) -> MeasuredShare | None:
        """Return what was measured before; None if nothing was.

        Args:
            key: The cache key of the question.
            question: The question about one claim.
        """
        return await self._calls.known(_key_of(key), _share_reading(question))

    async def ask(
        self, key: str, question: Question, *, label: str, has_fallback: bool
    ) -> MeasuredShare:
        """Return the share of the choices, which is measured only if it was not before.

        Args:
            key: The cache key of the question.
            question: The question about one claim.
            label: The judge in words, for people who look at the cache.
            has_fallback: Whether another judge is asked if this one fails.

        Raises:
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The judge answered no call for a long time.
        """
        try:
            return await self._calls.ask(
                _key_of(key),
                self.request_of(question),
                _share_reading(question),
                label=label,
                has_fallback=has_fallback,
            )
        except CallFailedError as failure:
            return MeasuredShare(None, reason=failure.kind.value, detail=failure.detail)

    async def planned(self, key: str, question: Question) -> PlannedCall:
        """Return the call, for estimates."""
        cached = await self.known(key, question) is not None
        return PlannedCall(
            key=_key_of(key), cached=cached, request=self.request_of(question), measures=True
        )

    def request_of(self, question: Question) -> ChatRequest:
        """Return the request for one token of the reply to a question, without a constraint."""
        settings = self._client.settings
        # Other servers may refuse more alternatives than they were set to report.
        listed = settings.sampling.top_logprobs if settings.dialect == "plain" else _MOST_LISTED
        return ChatRequest(
            messages=question.messages,
            max_tokens=1,
            extra={"top_logprobs": listed},
            affinity=question.affinity,
        )


def _key_of(key: str) -> str:
    return cache_key({"kind": "choice_share", "question": key})


def share_of(reply: ChatReply, choices: Sequence[str]) -> float | None:
    """Return the probability that a reply's first token begins a choice.

    It is None if no log-probabilities are reported, and if the token is one of a thought, after
    which the reply is still to come. What would be dropped around a choice does not count; a token
    that is nothing else, such as a quotation mark, begins none.

    Args:
        reply: The reply, of one token.
        choices: What is offered.
    """
    if reply.thought or reply.logit or not reply.tokens:
        return None
    first = reply.tokens[0]
    listed = {first.text: first.logprob, **dict(first.top)}
    begins = [
        math.exp(logprob)
        for text, logprob in listed.items()
        if (written := text.strip(WRAPPING).casefold()) and choice_begun_by(written, "", choices)
    ]
    # Reported numbers are rounded, so that their sum may be above 1.
    return round(min(1.0, math.fsum(begins)), DIGITS)


def _share_reading(question: Question) -> Reading[MeasuredShare]:
    """Return how the reply to a request for a free token is read and kept."""

    def read(answer: Answer) -> MeasuredShare:
        share = share_of(answer.reply, question.choices)
        return MeasuredShare(share, answer.usage, question.payer)

    return Reading(read=read, to_record=_share_record, from_record=_share_of_record)


def _share_record(measured: MeasuredShare) -> Record | None:
    if measured.share is None:
        return None
    usage = measured.usage.to_record()
    return {"choice_share": measured.share, "usage": usage, "payer": measured.payer}


def _share_of_record(record: Record) -> MeasuredShare | None:
    share = record.get("choice_share")
    if not isinstance(share, float):
        return None
    usage = Usage.from_record(record.get("usage"))
    return MeasuredShare(share, usage, str(record.get("payer", "")))


class ReadReply(Struct, frozen=True, kw_only=True):
    """A reply to one question."""

    answers: tuple[ReadAnswer | None, ...]
    """One for each claim of the question; None if the cache does not have it."""
    fallback_history: tuple[tuple[Declined, ...], ...]
    """Why earlier judges gave no verdict, one entry for each claim."""
    usage: Usage
    """What the call took."""
    payer: str = ""
    """The item whose question was sent."""
    shares: tuple[float, ...] = ()
    """How likely the choices are without a constraint, as far as that was measured."""
    extracted: str = ""
    """What the model answered to a first question, which is part of this one."""

    def usage_of(self, question: Question) -> Usage:
        """Return what the reply took for the item that asks a question."""
        # A failed reply is asked for again by a second run, whose bytes are equal but for its time.
        usage = self.usage if self.has_verdict else replace(self.usage, latency_seconds=0.0)
        return usage if self.payer == question.payer else usage.again()

    @property
    def has_verdict(self) -> bool:
        """Whether any claim has a verdict."""
        return any(answer is not None and answer.choice for answer in self.answers)


def reading_of(
    question: Question, fallback_history: Sequence[tuple[Declined, ...]]
) -> Reading[ReadReply]:
    """Return how replies to a question are read and kept.

    Args:
        question: The question.
        fallback_history: Why earlier judges gave no verdict, one entry for each claim of it.
    """

    def read(answer: Answer) -> ReadReply:
        reply = answer.reply
        if reply.stated is not None:
            answers = [read_stated(stated, question.choices) for stated in reply.stated]
        elif question.keyed:
            answers = read_keyed(reply, len(question.claims), question.choices)
        else:
            answers = [read_choice(reply, question.choices, question.envelope)]
        return ReadReply(
            answers=tuple(answers),
            fallback_history=tuple(fallback_history),
            usage=answer.usage,
            payer=question.payer,
        )

    return Reading(
        read=read,
        to_record=_record_of,
        from_record=lambda record: _reply_of(record, question),
        is_whole=lambda reply: all(a is not None and a.choice for a in reply.answers),
    )


def _record_of(reply: ReadReply) -> Record | None:
    """Return the record for the cache, which has claims with a verdict only."""
    if not reply.has_verdict:
        return None
    pairs = zip(reply.answers, reply.fallback_history, strict=True)
    answers: dict[str, JsonValue] = {
        str(position): to_builtins(
            _Entry(
                choice=answer.choice,
                margin=answer.margin,
                probabilities=answer.probabilities or None,
                fallback_history=history,
                share=answer.share,
                listed=answer.is_listed,
            )
        )
        for position, (answer, history) in enumerate(pairs)
        if answer is not None and answer.choice
    }
    return {"answers": answers, "usage": reply.usage.to_record(), "payer": reply.payer}


def _reply_of(record: Mapping[str, object], question: Question) -> ReadReply:
    """Return the reply of a record; a claim whose entry cannot be read has no answer."""
    entries = record.get("answers")
    found = entries if isinstance(entries, dict) else {}
    read = [_recorded_entry(found.get(str(n)), question) for n in range(len(question.claims))]
    return ReadReply(
        answers=tuple(answer for answer, _ in read),
        fallback_history=tuple(history for _, history in read),
        usage=Usage.from_record(record.get("usage")),
        payer=str(record.get("payer", "")),
    )


class _Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the cache keeps of the answer on one claim."""

    choice: str
    margin: float | None
    probabilities: tuple[float, ...] | None
    fallback_history: tuple[Declined, ...]
    share: float | None = None
    listed: bool = False


def _recorded_entry(
    entry: object, question: Question
) -> tuple[ReadAnswer | None, tuple[Declined, ...]]:
    # The cache is a file, whose content may have been changed.
    try:
        kept = convert(entry, _Entry)
    except ValidationError:
        return None, ()
    count = len(question.choices if kept.probabilities is None else kept.probabilities)
    offered = kept.choice in question.choices or not question.choices
    if not (kept.choice and offered and count == len(question.choices)):
        return None, ()
    answer = ReadAnswer(
        kept.choice,
        kept.margin,
        probabilities=kept.probabilities,
        share=kept.share,
        is_listed=kept.listed,
    )
    return answer, kept.fallback_history


VerdictOf: TypeAlias = Callable[[ClaimParts, ReadAnswer], ClaimVerdict]
"""Returns the verdict on a claim for an answer."""


class Draft(Struct):
    """The answers on an item, as they arrive."""

    item: JudgeRequestItem
    answers: dict[int, ReadAnswer] = {}
    """The answers, by claim."""
    fallback_history: dict[int, tuple[Declined, ...]] = {}
    """Why earlier judges gave no verdict, by claim."""
    usages: list[Usage] = []
    """What the calls took."""
    paid: dict[str, ReadReply] = {}
    """Replies by cache key, for claims that come up twice."""
    measured: dict[int, MeasuredShare] = {}
    """How likely the choices are, by claim, where a call measured it."""
    measuring: set[str] = set()
    """Cache keys of these calls."""

    def history(self, question: Question) -> list[tuple[Declined, ...]]:
        """Return who declined the claims of a question before."""
        history = self.item.fallback_history or ((),) * len(self.item.claims)
        return [history[index] for index in question.claims]

    def add(
        self, key: str, question: Question, reply: ReadReply, *, has_fallback: bool = False
    ) -> None:
        """Add the answers of a reply to a call with this cache key."""
        found = zip(question.claims, reply.answers, reply.fallback_history, strict=True)
        for index, answer, history in found:
            if answer is not None:
                self.answers[index], self.fallback_history[index] = answer, history
        # A second run finds the fallback's verdict, and knows of no failed reply before it.
        if reply.has_verdict or not has_fallback:
            # A failed reply is not kept: unless it was shared, another call was made.
            earlier = self.paid.get(key)
            again = earlier is not None and (earlier is reply or earlier.has_verdict)
            self.paid[key] = reply
            self.usages.append(reply.usage.again() if again else reply.usage_of(question))

    def measure(self, key: str, question: Question, measured: MeasuredShare) -> None:
        """Add what a call with this cache key says of the claim of a question."""
        # A failed call is made again by a second run, whose bytes must not differ.
        if not measured.reason:
            again = key in self.measuring
            self.usages.append(measured.usage.again() if again else measured.usage_of(question))
            self.measuring.add(key)
        self.measured[question.claims[0]] = measured

    def count(self, judge: str, question: Question, verdict_of: VerdictOf) -> None:
        """Count the verdicts on the claims of a question, all of which have an answer."""
        of = self.item.claims
        given = [verdict_of(of[at], self.settled(at)).verdict for at in question.claims]
        count_verdicts(judge, len(given) - given.count(Verdict.UNSCORED))

    def settled(self, at: int) -> ReadAnswer:
        """Return the answer on a claim, or why it does not count."""
        rule = self.item.measuring
        if rule is None:
            return self.answers[at]
        return _with_enough_share(self.answers[at], self._share(at), rule.least)

    def judged(self, judge: str, verdict_of: VerdictOf) -> JudgedItem:
        """Return the verdicts on all claims, each of which has an answer.

        Args:
            judge: The judge's name.
            verdict_of: Returns the judge's verdict for an answer.
        """
        verdicts = [
            verdict_of(claim, self.settled(index)) for index, claim in enumerate(self.item.claims)
        ]
        return JudgedItem.by(judge, verdicts, Usage.total(self.usages), self.shares())

    def recalled(self, verdict_of: VerdictOf) -> Recalled:
        """Return the verdicts on the claims that have an answer.

        Args:
            verdict_of: Returns the judge's verdict for an answer.
        """
        claims = self.item.claims
        return Recalled(
            verdicts=tuple(
                verdict_of(claim, self.settled(index)) if index in self.answers else None
                for index, claim in enumerate(claims)
            ),
            fallback_history=tuple(self.fallback_history.get(i, ()) for i in range(len(claims))),
            usage=Usage.total(self.usages),
            shares=self.shares(),
        )

    def shares(self) -> tuple[float, ...]:
        """Return how likely the choices are, for the claims for which that is known."""
        return tuple(self._known_shares()) if self.item.measuring is not None else ()

    def _known_shares(self) -> Iterator[float]:
        for at in sorted(self.answers):
            share = self._share(at).share
            if share is not None:
                yield share

    def _share(self, at: int) -> MeasuredShare:
        return self.measured.get(at) or MeasuredShare(self.answers[at].share)


def _with_enough_share(answer: ReadAnswer, measured: MeasuredShare, least: float) -> ReadAnswer:
    """Return an answer, or why it does not count because of the share of the choices."""
    share = measured.share
    if not least or not answer.choice or (share is not None and share >= least):
        return answer
    if measured.reason:
        return ReadAnswer("", None, measured.reason, f"choice share: {measured.detail}")
    found = "the server reports no log-probabilities" if share is None else f"it is {share:.6g}"
    detail = f"the choices need a share of {least:g}, and {found}"
    return ReadAnswer("", None, UnscoredReason.CHOICES_UNLIKELY.value, detail)


def settled_choice(
    question: Question, reply: ReadReply, rule: ShareRule | None, measured: MeasuredShare | None
) -> ReadReply:
    """Return a reply to a question with one choice as it counts, and what it took.

    Args:
        question: The question.
        reply: The reply.
        rule: Whether the share of the choices is measured, and which one is enough.
        measured: The share, if a call measured it.
    """
    # A draft of one claim, so that a choice's calls are counted by the rules of claims.
    draft = Draft(JudgeRequestItem(id="", claims=(), measuring=rule))
    draft.add("", replace(question, claims=(0,)), reply)
    if measured is not None:
        draft.measure("", question, measured)
    return replace(
        reply,
        answers=(draft.settled(0),),
        usage=Usage.total(draft.usages),
        shares=draft.shares(),
    )
