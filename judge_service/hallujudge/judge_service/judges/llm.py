"""A language model as judge, behind any OpenAI-compatible address."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.result import JsonValue
from hallujudge.metrics.framework.triplets import ClaimParts

from ..errors import InvalidInputError
from ..llm.cache import Record, VerdictCache, cache_key
from ..llm.chat import ChatRequest
from ..llm.client import Answer, ChatClient
from ..llm.failures import CallFailedError
from ..llm.flight import SingleFlight
from ..llm.pool import run_bounded
from ..llm.templates import load_template
from ..llm.usage import Usage
from .prompts import WRONG_PARTS, Question, questions_of
from .reading import ReadAnswer, read_choice, read_keyed
from .values import (
    Asked,
    Declined,
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    Recalled,
    unscored_claim,
)

__all__ = ["LlmJudge"]

PARSER = "parser-1"
"""Version of what turns an answer into verdicts; stands in every cache key."""

_CHOICE_TOKENS = 32
_ENTRY_TOKENS = 32


@dataclass(slots=True)
class _Draft:
    """An item's verdicts while they come in."""

    item: JudgeRequestItem
    answers: dict[int, ReadAnswer] = field(default_factory=dict)
    fallback_history: dict[int, tuple[Declined, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


class LlmJudge:
    """Asks a chat model about claims, one a call or several, and reads only what was offered.

    Args:
        name: Its name in evidence, such as ``llm`` or ``fallback``.
        client: Talks to the model.
        cache: Remembers answers; None: nothing is remembered.
        claims_per_call: Claims in one call at most; 1 asks for a bare choice, as published.
        revision: The weights' revision or digest, where known.
        server: What serves the model and in which version; empty: asked of a vLLM server, and
            unknown of others.
    """

    def __init__(
        self,
        name: str,
        client: ChatClient,
        *,
        cache: VerdictCache | None = None,
        claims_per_call: int = 1,
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
        self._claims_per_call = claims_per_call
        self._revision = revision
        self._server = server
        self._declared_server = server
        self._flights: SingleFlight[Answer] = SingleFlight()
        self._label = name

    @property
    def identity(self) -> JudgeIdentity:
        """Model, revision, server, prompts and every parameter that is sent.

        A server's version is in it if it was given, or learnt by :meth:`prepare`. What the first
        question learns is in cache keys only, so that a run's signature can't change under it.
        """
        settings = self.client.settings
        names = ["judge_claim", "judge_sentence"]
        if self._claims_per_call > 1:
            names.append("judge_claims")
        sent = settings.sampling.parameters(settings.dialect)
        return JudgeIdentity(
            kind="llm",
            model=settings.model,
            revision=self._revision,
            server=self._declared_server,
            template="+".join(load_template(name).label for name in names),
            parameters=(
                *((name, _shown(value)) for name, value in sent.items()),
                ("constraint", settings.sent_constraint),
                ("claims_per_call", str(self._claims_per_call)),
            ),
        )

    async def judge(
        self, items: Sequence[JudgeRequestItem], *, has_fallback: bool = False
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order.

        Raises:
            InvalidInputError: The key is rejected, or there is no such model.
            UnavailableError: The judge answered no call for a long time.
        """
        await self.identify()
        drafts = [_Draft(item) for item in items]
        claims = sum(len(item.claims) for item in items)
        await run_bounded(
            self._jobs(drafts),
            lambda job: self._answer(*job, has_fallback=has_fallback),
            min(self.client.settings.max_concurrency, claims),
        )
        return [self._judged(draft) for draft in drafts]

    async def recall(self, items: Sequence[JudgeRequestItem]) -> list[Recalled]:
        """What the cache knows; no call is made but for the server's version."""
        if self.cache is None:
            return [_nothing(item) for item in items]
        await self.identify()
        drafts = [_Draft(item) for item in items]
        for draft, question in self._jobs(drafts):
            record = self._from_cache(draft, question, self.key_of(question))
            draft.usage = draft.usage + _usage_in(record or {})
        return [self._recalled(draft) for draft in drafts]

    async def prepare(self) -> None:
        """Learns the server's version, for the identity; to be called before the first run."""
        await self.identify()
        self._declared_server = self._server

    async def identify(self) -> None:
        """Learns the server's version from a vLLM server, or from the cache while it is away."""
        settings = self.client.settings
        if self._server or settings.dialect != "vllm":
            self._label = f"{self.name}: {self.identity}"
            return
        url, model = settings.endpoint.url, settings.model
        try:
            self._server = _version_of(await self.client.http.get("/version"))
        except CallFailedError:
            # Not fatal: the call itself will say what is wrong, where one is needed at all.
            self._server = (self.cache.server_of(url, model) or "") if self.cache else ""
        else:
            if self.cache is not None and self._server:
                self.cache.remember_server(url, model, self._server)
        self._label = f"{self.name}: {self.identity}"

    def questions(self, item: JudgeRequestItem) -> list[Question]:
        """The calls that an item needs, for estimates."""
        return questions_of(item, claims_per_call=self._claims_per_call)

    def request_of(self, question: Question) -> ChatRequest:
        """What is sent for a question."""
        return ChatRequest(
            messages=question.messages,
            max_tokens=_CHOICE_TOKENS + _ENTRY_TOKENS * len(question.claims),
            choices=() if question.keyed else question.choices,
            schema=question.schema(),
            pattern=question.pattern(),
            schema_name="verdicts",
        )

    def key_of(self, question: Question) -> str:
        """The cache key of a question: everything that its answer depends on."""
        settings = self.client.settings
        return cache_key(
            {
                "kind": "verdicts",
                "parser": PARSER,
                "model": settings.model,
                "revision": self._revision,
                "server": self._server,
                "template": question.template.digest,
                "parameters": settings.sampling.parameters(settings.dialect),
                "constraint": settings.sent_constraint,
                "max_tokens": self.request_of(question).max_tokens,
                "choices": question.choices,
                "messages": question.messages,
            }
        )

    def is_cached(self, question: Question) -> bool:
        """Whether every claim of a question is answered in the cache."""
        if self.cache is None:
            return False
        record = self.cache.get(self.key_of(question))
        return record is not None and len(_answers_in(record)) == len(question.claims)

    async def close(self) -> None:
        """Closes the connections; the cache stays open, it may be shared."""
        await self.client.close()

    def _jobs(self, drafts: Sequence[_Draft]) -> Iterator[tuple[_Draft, Question]]:
        for draft in drafts:
            for question in self.questions(draft.item):
                yield draft, question

    async def _answer(self, draft: _Draft, question: Question, *, has_fallback: bool) -> None:
        key = self.key_of(question)
        record = self._from_cache(draft, question, key)
        if record is not None and all(index in draft.answers for index in question.claims):
            draft.usage = draft.usage + _usage_in(record)
            return
        try:
            answer = await self._flights.do(
                f"{key}:{has_fallback}",
                lambda: self.client.ask(self.request_of(question), has_fallback=has_fallback),
            )
        except CallFailedError as failure:
            for index in question.claims:
                missing = ReadAnswer("", None, failure.kind.value, failure.detail)
                draft.answers.setdefault(index, missing)
            return
        self._take(draft, question, key, answer)

    def _take(self, draft: _Draft, question: Question, key: str, answer: Answer) -> None:
        read = (
            read_keyed(answer.reply, len(question.claims), question.choices)
            if question.keyed
            else [read_choice(answer.reply, question.choices)]
        )
        for index, one in zip(question.claims, read, strict=True):
            draft.answers.setdefault(index, one)
        if not any(one.choice for one in read):
            return
        draft.usage = draft.usage + answer.usage
        if self.cache is not None:
            history = draft.item.fallback_history or ((),) * len(draft.item.claims)
            record = _record_of(
                [draft.answers[i] for i in question.claims],
                [history[i] for i in question.claims],
                answer.usage,
            )
            self.cache.put(key, self._label, record)

    def _from_cache(self, draft: _Draft, question: Question, key: str) -> Record | None:
        """The cache's record of a question; the claims that it answers are in the draft."""
        record = self.cache.get(key) if self.cache is not None else None
        if record is None:
            return None
        answers = _answers_in(record)
        for position, (answer, history) in answers.items():
            if position < len(question.claims) and answer.choice in question.choices:
                draft.answers[question.claims[position]] = answer
                draft.fallback_history[question.claims[position]] = history
        return record

    def _judged(self, draft: _Draft) -> JudgedItem:
        verdicts = tuple(
            _verdict(claim, draft.answers[index], self.name)
            for index, claim in enumerate(draft.item.claims)
        )
        declined = tuple(
            Declined(self.name, verdict.reason, verdict.detail)
            for verdict in verdicts
            if verdict.verdict is Verdict.UNSCORED
        )
        asked = Asked(
            judge=self.name,
            answered=len(verdicts) - len(declined),
            declined=declined,
            usage=draft.usage,
        )
        return JudgedItem(verdicts=verdicts, asked=(asked,))

    def _recalled(self, draft: _Draft) -> Recalled:
        count = range(len(draft.item.claims))
        return Recalled(
            verdicts=tuple(
                _verdict(draft.item.claims[i], draft.answers[i], self.name)
                if i in draft.answers
                else None
                for i in count
            ),
            fallback_history=tuple(draft.fallback_history.get(i, ()) for i in count),
            usage=draft.usage,
        )


def _verdict(claim: ClaimParts, answer: ReadAnswer, judge: str) -> ClaimVerdict:
    if not answer.choice:
        return unscored_claim(claim, answer.reason, answer.detail, judge)
    supported = answer.choice == "supported"
    return ClaimVerdict(
        triplet=claim,
        verdict=Verdict.SUPPORTED if supported else Verdict.NOT_SUPPORTED,
        part=WRONG_PARTS.get(answer.choice),
        margin=answer.margin,
        judge=judge,
    )


def _nothing(item: JudgeRequestItem) -> Recalled:
    return Recalled(
        verdicts=(None,) * len(item.claims),
        fallback_history=((),) * len(item.claims),
        usage=Usage(),
    )


def _shown(value: object) -> str:
    return json.dumps(value)


def _version_of(body: bytes) -> str:
    try:
        version = json.loads(body)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f"vllm {version}" if isinstance(version, str) else ""


def _record_of(
    read: Sequence[ReadAnswer], history: Sequence[tuple[Declined, ...]], usage: Usage
) -> Record:
    """What the cache keeps: answered claims only."""
    answers: dict[str, JsonValue] = {
        str(position): {
            "choice": answer.choice,
            "margin": answer.margin,
            "fallback_history": [list(declined) for declined in history],
        }
        for position, (answer, history) in enumerate(zip(read, history, strict=True))
        if answer.choice
    }
    return {
        "answers": answers,
        "usage": {
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
            "latency_seconds": usage.latency_seconds,
            "cost": usage.cost,
        },
    }


def _answers_in(record: Mapping[str, object]) -> dict[int, tuple[ReadAnswer, tuple[Declined, ...]]]:
    """The answers of a record; one that can't be read counts as not there."""
    entries = record.get("answers")
    found = {}
    for position, entry in entries.items() if isinstance(entries, dict) else ():
        try:
            margin = entry["margin"]
            history = tuple(Declined(*map(str, declined)) for declined in entry["fallback_history"])
            answer = ReadAnswer(str(entry["choice"]), None if margin is None else float(margin))
            found[int(position)] = (answer, history)
        except (KeyError, TypeError, ValueError):
            continue
    return found


def _usage_in(record: Mapping[str, object]) -> Usage:
    usage = record.get("usage")
    try:
        return Usage(**usage) if isinstance(usage, dict) else Usage()
    except TypeError:
        return Usage()
