"""With which settings a judge's server answers: dialects, constraints and schemas, in turn."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from hallujudge.metrics.framework.claims import ClaimVerdict, Triplet

from ..errors import HallujudgeError
from ..extractors import DescriptionPair
from ..extractors.llm_extractors import (
    AskedAnswer,
    LlmKeywordExtractor,
    LlmObjectExtractor,
    LlmTripletExtractor,
)
from ..llm.call_policy import RetryPolicy
from ..llm.chat import ChatRequest, Dialect
from ..llm.chat_settings import ChatSettings
from ..llm.client import ChatClient
from ..llm.failures import CallFailedError, FailureKind
from ..llm.reply_problems import shown, without_thought
from . import JudgeRequestItem
from .llm_judge import LlmJudge
from .replies import read_choice

CHECKED_ITEM = JudgeRequestItem(
    id="doctor",
    # An unconstrained model is likely to reply with more than one word to this claim.
    claims=(Triplet("lamp", "stands beside, in at least two sentences,", "open book"),),
    reference_triplets=(
        Triplet("lamp", "on", "desk"),
        Triplet("book", "on", "desk"),
        Triplet("book", "is", "open"),
    ),
    reference_objects=("lamp", "desk", "book", "chair"),
)
"""The claim and the scene graph that judges are asked about."""
# Dialects and constraints in the order in which they are tried.
_WAYS: tuple[tuple[Dialect, str], ...] = (
    ("plain", "json_schema"),
    ("vllm", "structured_outputs"),
    ("openai", "json_schema"),
    ("plain", "none"),
)
_ONCE = RetryPolicy(attempts=1, outage_seconds=0, give_up_after=20)
_ENFORCED, _ANSWERED = "enforced", "answered"
# What no dialect changes.
_NOT_OF_SETTINGS = frozenset(
    kind.value
    for kind in (
        FailureKind.AUTH,
        FailureKind.MODEL,
        FailureKind.CONNECTION,
        FailureKind.TIMEOUT,
        FailureKind.RATE,
        FailureKind.QUOTA,
        FailureKind.NOT_THE_API,
        FailureKind.TRUNCATED,
    )
)
# Without the reason of a reply that was cut off, which is an answer.
_CALL_REASONS = frozenset(kind.value for kind in FailureKind if kind is not FailureKind.TRUNCATED)
# White space, which JSON may have, takes most of them where a model likes it.
_BRIEF_TOKENS = 128
# Enough to see whether a schema is accepted.
_FEW_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check."""

    name: str
    """What was checked."""
    ok: bool | None
    """Whether it passed; None if this cannot be decided, or is not required."""
    detail: str
    """What was found, and what to do if it did not pass."""


async def first_verdict(judge: LlmJudge) -> ClaimVerdict:
    """Return the verdict on a claim, for which the judge is called in any case."""
    # Without the cache, so that the server is called.
    plain = LlmJudge(judge.name, judge.client, server=judge.identity.server or "unknown")
    return (await plain.judge([CHECKED_ITEM]))[0].verdicts[0]


async def constraint_check(client: ChatClient) -> Check:
    """Check that the server enforces a schema that no model would follow by itself."""
    if client.settings.sent_constraint == "none":
        return Check(
            name="structured output", ok=None, detail="not requested, according to the settings"
        )
    word = "zyzzyva"
    answer = await client.ask(
        ChatRequest(
            messages=[{"role": "user", "content": "Which city is the capital of France?"}],
            max_tokens=_BRIEF_TOKENS,
            choices=(word,),
            schema={
                "type": "object",
                "properties": {"verdict": {"type": "string", "enum": [word]}},
                "required": ["verdict"],
                "additionalProperties": False,
            },
        )
    )
    # Only the text counts: logits in place of log-probabilities are said elsewhere.
    reply = replace(without_thought(answer.reply), logit="")
    if read_choice(reply, (word,)).choice:
        return Check(name="structured output", ok=True, detail="enforced")
    if reply.is_unfinished_thought:
        detail = "not known: the reply has reasoning only, which is no answer"
        return Check(name="structured output", ok=None, detail=detail)
    found = f"it replied {shown(reply.content)}" if reply.content else "its reply is empty"
    return Check(
        name="structured output",
        ok=False,
        detail=f"the server accepts the constraint and ignores it: asked for {word!r} only, "
        f"{found}. Verdicts are still read strictly; what is none is unscored",
    )


async def other_settings(judge: LlmJudge, reason: str = "") -> list[Check]:
    """Say with which settings the server enforces the choices, or answers at all.

    Args:
        judge: The judge, with other settings.
        reason: Why its call failed; empty if it was answered.
    """
    if reason in _NOT_OF_SETTINGS or judge.client.settings.api != "chat":
        return []
    asked, answers = judge.client.settings, ""
    for dialect, constraint in _WAYS:
        if (dialect, constraint) == (asked.dialect, asked.sent_constraint):
            continue
        way = replace(asked, dialect=dialect, constraint=constraint, retry=_ONCE)
        found, line = await _found_with(way), f"llm.dialect={dialect} llm.constraint={constraint}"
        if found == _ENFORCED:
            detail = f"set {line}; the server then enforces the choices"
            return [Check(name="settings", ok=False, detail=detail)]
        answers = answers or (line if found == _ANSWERED else "")
    if not reason:
        detail = "no llm.dialect and llm.constraint was found that makes it enforce the choices"
        return [Check(name="settings", ok=None, detail=detail)]
    detail = f"set {answers}; the server then answers, but does not enforce the choices"
    if not answers:
        detail = "no llm.dialect and llm.constraint was found with which the server answers"
    return [Check(name="settings", ok=False, detail=detail)]


async def _found_with(settings: ChatSettings) -> str:
    """Return what a server does with other settings; empty if it refuses the calls."""
    # No time is spent on a thought: the settings decide how it begins.
    most = settings.max_tokens or _BRIEF_TOKENS
    client = ChatClient(replace(settings, max_tokens=most))
    judge = LlmJudge("llm", client, server="unknown")
    try:
        async with asyncio.timeout(_ONCE.give_up_after):
            verdict = await first_verdict(judge)
            if verdict.reason in _CALL_REASONS:
                return ""
            is_enforced = not verdict.reason and (await constraint_check(judge.client)).ok
            return _ENFORCED if is_enforced else _ANSWERED
    except (CallFailedError, HallujudgeError, TimeoutError):
        return ""
    finally:
        await judge.close()


async def extraction_check(client: ChatClient) -> Check:
    """Check that the server takes the schemas of the extractors that ask a language model."""
    text = "A man rides a horse."
    for call in (
        await LlmTripletExtractor(client).planned(text),
        await LlmKeywordExtractor(client).planned(DescriptionPair(predicted=text)),
        await LlmObjectExtractor(client).planned(AskedAnswer("", text)),
    ):
        assert call is not None, "the texts are not empty"
        await client.ask(replace(call.request, max_tokens=_FEW_TOKENS), takes_room=False)
    return Check(name="extraction", ok=True, detail="the schemas of LLM extraction are accepted")
