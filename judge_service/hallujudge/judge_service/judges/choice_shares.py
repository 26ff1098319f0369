"""How likely a judge would write one of the choices if nothing kept it from writing other words.

Servers mask what a constraint rules out before they report log-probabilities (vLLM 0.32.0 does), so
that margins and probabilities are among the choices: a judge that wants to write something else has
margins like any other. One token that is generated without a constraint shows it. Its call is made
for a part of the claims, which is drawn by their prompts: the same in every run, order and worker.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from hallujudge.metrics.framework.results import UnscoredReason

from ..errors import InvalidInputError
from ..llm.ask_once import AskOnce, Reading
from ..llm.budget import Usage, VerdictStore
from ..llm.cache_file import Record, cache_key
from ..llm.chat import ChatRequest
from ..llm.chat_replies import ChatReply
from ..llm.client import Answer, ChatClient
from ..llm.estimate import PlannedCall
from ..llm.failures import CallFailedError
from . import DIGITS, JudgeIdentity
from .option_files import share_of_option
from .questions import Question
from .replies import WRAPPING, ReadAnswer, choice_begun_by

_PART = 0.05
# So many expected draws are 50 or more in all but 2 of 1,000 runs.
_EXPECTED = 75
# vLLM and OpenAI list at most so many.
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRule:
    """Of which claims the share of the choices is measured, and which share is enough."""

    claims: int = 0
    """About how many claims the run has; 0 if that is unknown."""
    least: float = 0.0
    """The share below which a claim is unscored; above 0, the share of every claim is measured."""

    @classmethod
    def of(cls, least: str, claims: int) -> ShareRule:
        """Return the rule of a run.

        Args:
            least: The option ``min_choice_share``, or empty.
            claims: About how many claims the run has; 0 if that is unknown.

        Raises:
            InvalidInputError: The option can't be used.
        """
        return cls(claims=claims, least=share_of_option("min_choice_share", least, default="0"))

    def check(self, judges: Iterable[object]) -> None:
        """Refuse to leave out claims by a share that no judge's server can tell.

        Raises:
            InvalidInputError: There is a least share, and no judge's share can be measured.
        """
        if self.least and not any(getattr(judge, "measures_shares", False) for judge in judges):
            raise InvalidInputError(
                "the option min_choice_share needs a language model whose server reports "
                "log-probabilities (api chat, without batch files) or the api scoring; leave it out"
            )

    def draws(self, question: Question) -> bool:
        """Return whether the share is measured of a question about one claim."""
        part = max(_PART, _EXPECTED / self.claims) if self.claims else _PART
        if self.least or part >= 1:
            return True
        text = json.dumps(question.messages).encode()
        return int.from_bytes(sha256(text).digest()[:8]) < part * 2**64

    def settled(self, answer: ReadAnswer, measured: MeasuredShare) -> ReadAnswer:
        """Return an answer, or why it does not count."""
        share = measured.share
        if not self.least or not answer.choice or (share is not None and share >= self.least):
            return answer
        if measured.reason:
            return ReadAnswer("", None, measured.reason, f"choice share: {measured.detail}")
        found = "the server reports no log-probabilities" if share is None else f"it is {share:.6g}"
        detail = f"the choices need a share of {self.least:g}, and {found}"
        return ReadAnswer("", None, UnscoredReason.CHOICES_UNLIKELY.value, detail)

    def identity(self, judges: JudgeIdentity) -> JudgeIdentity:
        """Return the identity of judges with the rule, if it leaves claims out."""
        if not self.least:
            return judges
        least = ("min_choice_share", f"{self.least:g}")
        return replace(judges, parameters=(*judges.parameters, least))


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
        return await self._calls.known(_key_of(key), _reading_of(question))

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
                _reading_of(question),
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
    return round(min(1.0, math.fsum(begins)), DIGITS)


def _reading_of(question: Question) -> Reading[MeasuredShare]:
    """Return how the reply to a request for a free token is read and kept."""

    def read(answer: Answer) -> MeasuredShare:
        share = share_of(answer.reply, question.choices)
        return MeasuredShare(share, answer.usage, question.payer)

    return Reading(read=read, to_record=_record_of, from_record=_measured_of)


def _record_of(measured: MeasuredShare) -> Record | None:
    if measured.share is None:
        return None
    usage = measured.usage.to_record()
    return {"choice_share": measured.share, "usage": usage, "payer": measured.payer}


def _measured_of(record: Record) -> MeasuredShare | None:
    share = record.get("choice_share")
    if not isinstance(share, float):
        return None
    usage = Usage.from_record(record.get("usage"))
    return MeasuredShare(share, usage, str(record.get("payer", "")))
