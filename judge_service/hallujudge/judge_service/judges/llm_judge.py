"""A language model as judge, behind any OpenAI-compatible address, and an estimate of its calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Verdict
from hallujudge.metrics.framework.signature import MASKED

from ..errors import InvalidInputError
from ..llm.ask_once import AskOnce, run_bounded
from ..llm.budget import Prices, Usage, VerdictStore
from ..llm.cache_file import cache_key
from ..llm.chat import ChatRequest
from ..llm.chat_settings import versions_at
from ..llm.client import ChatClient
from ..llm.estimate import Estimate, PlannedCall, TokenCounter, estimate_calls
from ..llm.failures import CallFailedError
from ..llm.prompt_templates import Template, load_template
from ..llm.protocols import MOST_TOGETHER
from . import (
    DIGITS,
    Declined,
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    Recalled,
    unscored_claim,
)
from .judge_calls import Draft, MeasuredShare, ReadReply, ShareMeter, reading_of, settled_choice
from .judge_rules import ShareRule
from .questions import TRIPLET_CHOICES, WRONG_PARTS, Question, each_alone, questions_of
from .replies import ReadAnswer, has_tokens

_JudgeT = TypeVar("_JudgeT", bound="LlmJudge")
ASKING = "letters-1"
"""Version of what asking for probabilities adds to prompts; part of every cache key."""
PARSER = "parser-4"
"""Version of the code that parses replies; part of every cache key."""
# Tokens of a reply: room for a bare choice, and for an entry of each claim in an object.
_CHOICE_TOKENS = 32
_ENTRY_TOKENS = 32


class LlmJudge:
    """Asks a chat model about claims, one or several per call, and accepts only offered choices.

    Args:
        name: Its name in evidence, such as ``llm`` or ``fallback``.
        client: Calls the model.
        cache: Keeps replies between runs; without it, they are kept in memory only.
        claims_per_call: Maximum claims in one call; with 1 the reply is a choice, as published.
        wording: An equivalent prompt for single triplets; empty for the usual one.
        revision: The weights' revision or digest, where known.
        server: The server's name and version. If empty, a vLLM server is asked for it, and it is
            unknown for others.
    """

    def __init__(
        self,
        name: str,
        client: ChatClient,
        *,
        cache: VerdictStore | None = None,
        claims_per_call: int = 1,
        wording: str = "",
        revision: str = "",
        server: str = "",
    ) -> None:
        if not 1 <= claims_per_call <= 100:
            raise InvalidInputError(
                f"claims_per_call is {claims_per_call}; give a number from 1 to 100"
            )
        self.name = name
        self.client = client
        self.cache = cache
        self.claims_per_call = claims_per_call
        self._wording = wording
        self._revision = revision
        self._server = server
        self._declared_server = server
        self._calls: AskOnce[ReadReply] = AskOnce(client, cache)
        self.meter = ShareMeter(client, cache)
        self._label = name

    @property
    def identity(self) -> JudgeIdentity:
        """Model, revision, server, prompts and every parameter that is sent.

        A server's version is included if it was given, or learned by :meth:`prepare`. A version
        that the first call learns is in cache keys only, so that a signature does not change
        during a run.
        """
        single, joint = self.template_names
        if self._most_in_a_call:
            return self.identity_with([load_template(name) for name in single])
        names = single if self.claims_per_call == 1 else (*single, joint)
        found = self.identity_with([load_template(name) for name in names])
        per_call = ("claims_per_call", str(self.claims_per_call))
        return replace(found, parameters=(*found.parameters, per_call))

    @property
    def template_names(self) -> tuple[tuple[str, ...], str]:
        """The prompts of calls about one claim, and that of calls about several."""
        single = f"judge_claim_{self._wording}" if self._wording else "judge_claim"
        return (single, "judge_sentence"), "judge_claims"

    def identity_with(self, templates: Sequence[Template]) -> JudgeIdentity:
        """Return the identity with which other prompts are asked."""
        settings = self.client.settings
        return JudgeIdentity(
            kind="llm",
            model=settings.model,
            revision=self._revision,
            server=self._declared_server,
            template="+".join(template.label for template in templates),
            parameters=tuple(
                (name, value if isinstance(value, str) else json.dumps(value))
                for name, value in {**self._asked_how(), **self._masking()}.items()
            ),
        )

    def _asked_how(self) -> dict[str, object]:
        """The protocol, and every parameter that is sent with it."""
        settings = self.client.settings
        if settings.api != "chat":
            return {"api": settings.api, "asking": ASKING}
        sent = settings.sampling.parameters(settings.dialect)
        return {"api": settings.api, **sent, "constraint": settings.sent_constraint}

    def _masking(self) -> dict[str, str]:
        """Whether log-probabilities may be those after a constraint's mask; empty without any."""
        if self.client.settings.api != "chat" or not self.reports_probabilities:
            return {}
        return {MASKED: "no" if self.client.settings.sent_constraint == "none" else "yes"}

    @property
    def measures_shares(self) -> bool:
        """Whether it can be measured how likely the choices are without a constraint."""
        settings = self.client.settings
        if settings.api != "chat":
            return settings.api == "scoring"
        # Batch files would need one more round, after the replies that have margins.
        return self.reports_probabilities and settings.offline is None

    @property
    def _most_in_a_call(self) -> int:
        """Claims in one call at most that judges each of them by itself; 0 for chat."""
        return MOST_TOGETHER.get(self.client.settings.api, 0)

    async def judge(
        self, items: Sequence[JudgeRequestItem], *, has_fallback: bool = False
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order.

        Raises:
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The judge answered no call for a long time.
        """
        await self.identify()
        drafts = list(map(self._draft, items))
        claims = sum(len(item.claims) for item in items)
        await run_bounded(
            self._jobs(drafts),
            lambda job: self._answer(*job, has_fallback=has_fallback),
            min(self.client.settings.all_concurrency, claims),
        )
        return [draft.judged(self.name, self.verdict_of) for draft in drafts]

    async def recall(self, items: Sequence[JudgeRequestItem]) -> list[Recalled]:
        """Return what is known from earlier calls; only the server's version is asked for."""
        await self.identify()
        drafts = list(map(self._draft, items))
        for draft, question in self._jobs(drafts):
            reading = reading_of(question, draft.history(question))
            key = self.key_of(question)
            reply = await self._calls.known(key, reading)
            if reply is None:
                continue
            alone = list(self.measured_alone(draft.item, question, reply))
            shares = [await self.meter.known(self.key_of(each), each) for each in alone]
            if None in shares:  # the run that asked for the verdict measured other claims
                continue
            # A claim without a verdict is asked about again.
            answers = tuple(a if a is not None and a.choice else None for a in reply.answers)
            draft.add(key, question, replace(reply, answers=answers))
            for each, share in zip(alone, filter(None, shares), strict=True):
                draft.measure(self.key_of(each), each, share)
        return [draft.recalled(self.verdict_of) for draft in drafts]

    async def choose(
        self,
        question: Question,
        history: tuple[Declined, ...] = (),
        *,
        has_fallback: bool = False,
        measuring: ShareRule | None = None,
    ) -> ReadReply:
        """Return what the model chooses for a question of another kind than claims.

        Args:
            question: The question, with one choice to make.
            history: Why earlier judges returned no answer.
            has_fallback: Whether another judge is asked if this one fails.
            measuring: Whether the share of the choices is measured, and which one is enough.

        Raises:
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The judge answered no call for a long time.
        """
        reply = await self._ask(question, [history], has_fallback=has_fallback)
        share = None
        if has_tokens(reply.answers[0]) and self.is_measured(question, measuring):
            share = await self._measured(question, has_fallback=has_fallback)
        return settled_choice(question, reply, self._rule(measuring), share)

    async def recall_choice(
        self, question: Question, measuring: ShareRule | None = None
    ) -> ReadReply | None:
        """Return the earlier choice of the model, or None if it made none.

        Args:
            question: The question, with one choice to make.
            measuring: Whether the share of the choices is measured; it must be known then.
        """
        key, reading = self.key_of(question), reading_of(question, [()])
        reply = await self._calls.known(key, reading)
        if reply is None or not reading.is_whole(reply):
            return None
        share = None
        if has_tokens(reply.answers[0]) and self.is_measured(question, measuring):
            share = await self.meter.known(key, question)
            if share is None:
                return None
        return settled_choice(question, reply, self._rule(measuring), share)

    async def prepare(self, *, asks: bool = True) -> None:
        """Learn what the identity names, by a question too if one may be asked, before a run."""
        await self.client.settle(asks=asks)
        await self.identify()
        self._declared_server = self._server

    async def identify(self) -> None:
        """Learn the dialect where it is a guess, and the version of vLLM servers."""
        await self.client.settle()
        settings = self.client.settings
        if not self._server and settings.dialect == "vllm":
            self._server = await versions_at(self.client.servers, settings.model, self.cache)
        self._label = f"{self.name}: {self.identity}"
        # Here, so that a model whose letters are not tokens of their own ends a run before any
        # call.
        if self.client.settings.api == "scoring":
            with suppress(CallFailedError):  # a call, if one is needed, will report what is wrong
                await self.client.exchanges.letters(
                    self.client.servers[0].sender, len(TRIPLET_CHOICES)
                )

    def questions(self, item: JudgeRequestItem) -> list[Question]:
        """Return the calls that an item needs, for estimates."""
        return questions_of(
            item,
            claims_per_call=self.claims_per_call,
            wording=self._wording,
            together=self._most_in_a_call,
        )

    def joined(self, items: Iterable[JudgeRequestItem]) -> Iterable[JudgeRequestItem]:
        """Return the items as calls are made for them: each for itself."""
        return items

    def request_of(self, question: Question) -> ChatRequest:
        """Return what is sent for a question."""
        if self._most_in_a_call:
            return ChatRequest(
                messages=question.messages,
                max_tokens=self._most_tokens(question),
                choices=question.choices,
                api=self.client.settings.api,
                parts=question.parts,
                affinity=question.affinity,
            )
        return ChatRequest(
            messages=question.messages,
            max_tokens=self._most_tokens(question),
            choices=() if question.keyed else question.choices,
            schema=question.schema(),
            pattern=question.pattern(),
            schema_name="verdicts",
            affinity=question.affinity,
            images=question.images,
        )

    def _most_tokens(self, question: Question) -> int:
        """Return the limit of a reply's tokens."""
        if self._most_in_a_call:
            return len(question.claims) * len(question.choices)
        return _CHOICE_TOKENS + _ENTRY_TOKENS * len(question.claims)

    def key_of(self, question: Question) -> str:
        """Return the cache key of a question: everything that its reply depends on."""
        how = self._asked_how()
        return cache_key(
            {
                "kind": "verdicts",
                "parser": PARSER,
                "model": self.client.settings.model,
                "revision": self._revision,
                "server": self._server,
                "template": question.template.digest,
                "parameters": how,
                "max_tokens": self._most_tokens(question),
                "choices": question.choices,
                "messages": question.messages,
                **({"parts": question.parts} if question.parts else {}),
                **({"extra": question.extra} if question.extra else {}),
                **(
                    {"pictures": [p.sha256 for p in question.pictures]} if question.pictures else {}
                ),
            }
        )

    def verdict_of(self, claim: ClaimParts, answer: ReadAnswer) -> ClaimVerdict:
        """Return the verdict of a reply on a claim."""
        if not answer.choice:
            return unscored_claim(claim, answer.reason, answer.detail, self.name)
        supported = answer.choice == "supported"
        return ClaimVerdict(
            triplet=claim,
            verdict=Verdict.SUPPORTED if supported else Verdict.NOT_SUPPORTED,
            part=WRONG_PARTS.get(answer.choice),
            score=round(answer.probabilities[0], DIGITS) if answer.probabilities else None,
            margin=answer.margin,
            judge=self.name,
        )

    @property
    def reports_probabilities(self) -> bool:
        """Whether the server is asked for the probabilities of tokens."""
        settings = self.client.settings
        if self._most_in_a_call:
            return True
        return "top_logprobs" in settings.sampling.parameters(settings.dialect)

    async def is_cached(self, question: Question, item: JudgeRequestItem) -> bool:
        """Return whether the cache has a verdict on every claim of a question."""
        reading = reading_of(question, Draft(item).history(question))
        reply = await self._calls.known(self.key_of(question), reading)
        return reply is not None and reading.is_whole(reply)

    def fresh(self, *, claims_per_call: int = 1, wording: str = "") -> LlmJudge:
        """Return the same model behind the same client, which remembers no earlier reply."""
        return self._alike(type(self), cache=None, claims_per_call=claims_per_call, wording=wording)

    def worded(self, wording: str) -> LlmJudge:
        """Return the same model, asked by an equivalent prompt, as a member of a panel.

        Args:
            wording: One of :data:`~.questions.WORDINGS`.
        """
        return self._alike(LlmJudge, name=f"{self.name}:{wording}", wording=wording)

    def again(self, kind: type[_JudgeT], *, claims_per_call: int) -> _JudgeT:
        """Return the same model, client and cache as another kind of judge.

        Args:
            kind: The kind.
            claims_per_call: Maximum claims in one call.
        """
        made = self._alike(kind, claims_per_call=claims_per_call)
        # What is asked differs, so that one memory of replies serves both.
        made._calls = self._calls
        return made

    def _alike(self, kind: type[_JudgeT], **changed: Any) -> _JudgeT:
        same = {"name": self.name, "client": self.client, "cache": self.cache}
        return kind(**{**same, "revision": self._revision, "server": self._server, **changed})

    async def close(self) -> None:
        """Close the connections; the cache stays open, because it may be shared."""
        await self.client.close()

    def _jobs(self, drafts: Sequence[Draft]) -> Iterator[tuple[Draft, Question]]:
        for draft in drafts:
            for question in self.questions(draft.item):
                yield draft, question

    def _draft(self, item: JudgeRequestItem) -> Draft:
        return Draft(replace(item, measuring=self._rule(item.measuring)))

    def _rule(self, rule: ShareRule | None) -> ShareRule | None:
        """Return a rule about the share of the choices, if this judge's can be measured."""
        return rule if self.measures_shares else None

    async def _answer(self, draft: Draft, question: Question, *, has_fallback: bool) -> None:
        history = draft.history(question)
        reply = await self._ask(question, history, has_fallback=has_fallback)
        draft.add(self.key_of(question), question, reply, has_fallback=has_fallback)
        for alone in self.measured_alone(draft.item, question, reply):
            share = await self._measured(alone, has_fallback=has_fallback)
            draft.measure(self.key_of(alone), alone, share)
        draft.count(self.name, question, self.verdict_of)

    def measured_alone(
        self, item: JudgeRequestItem, question: Question, reply: ReadReply | None = None
    ) -> Iterator[Question]:
        """Yield a question about each claim alone for which the share of the choices is measured.

        Only claims with log-probabilities are measured; without a reply, all are taken to be so.
        """
        answers = reply.answers if reply else (None,) * len(question.claims)
        asked = each_alone(question, item, wording=self._wording)
        for alone, answer in zip(asked, answers, strict=True):
            if (reply is None or has_tokens(answer)) and self.is_measured(alone, item.measuring):
                yield alone

    def is_measured(self, question: Question, rule: ShareRule | None) -> bool:
        """Return whether the share of a question's choices is measured if tokens are reported."""
        known = self._rule(rule) if self.client.settings.api == "chat" else None
        return known is not None and bool(question.choices) and known.draws(question)

    async def _measured(self, question: Question, *, has_fallback: bool) -> MeasuredShare:
        return await self.meter.ask(
            self.key_of(question), question, label=self._label, has_fallback=has_fallback
        )

    async def _ask(
        self, question: Question, history: Sequence[tuple[Declined, ...]], *, has_fallback: bool
    ) -> ReadReply:
        try:
            return await self._calls.ask(
                self.key_of(question),
                self.request_of(question),
                reading_of(question, history),
                label=self._label,
                has_fallback=has_fallback,
            )
        except CallFailedError as failure:
            missing = ReadAnswer("", None, failure.kind.value, failure.detail)
            return ReadReply(
                answers=(missing,) * len(question.claims),
                fallback_history=tuple(history),
                usage=Usage(),
                payer=question.payer,
            )


async def estimate_judge(
    judge: LlmJudge,
    items: Iterable[JudgeRequestItem],
    counter: TokenCounter | None = None,
    prices: Prices | None = None,
) -> Estimate:
    """Estimate the calls of a run, without a chat call.

    Args:
        judge: The judge, with its cache.
        items: The run's items.
        counter: Counts prompts; by default the best that there is, see :func:`counter_of`.
        prices: What tokens cost; by default, the prices of the judge's budget.
    """
    await judge.identify()

    async def calls() -> AsyncIterator[PlannedCall]:
        for item in judge.joined(items):
            for question in judge.questions(item):
                yield PlannedCall(
                    key=judge.key_of(question),
                    cached=await judge.is_cached(question, item),
                    request=judge.request_of(question),
                )
                for alone in judge.measured_alone(item, question):
                    yield await judge.meter.planned(judge.key_of(alone), alone)

    return await estimate_calls(judge.name, judge.client, calls(), counter, prices)


def least_cost(prices: Prices) -> float:
    """Return the least that is reserved for a call about one claim: that of an empty item."""
    texts = [text for _, text in load_template("judge_claim").parts]
    prompt = sum(len(text.encode()) for text in texts)
    return prices.cost(prompt, _CHOICE_TOKENS + _ENTRY_TOKENS)
