"""Checks of one ability of a judge's server each: constraints, other settings, schemas and sight.

Whether a judge sees: it is shown pictures of one colour and asked which colour that is.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

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
from ..llm.chat import ChatImage, ChatRequest, Dialect
from ..llm.chat_replies import shown, without_thought
from ..llm.chat_settings import ChatSettings
from ..llm.client import ChatClient
from ..llm.failures import SERVE_SIGHT, CallFailedError, FailureKind
from ..llm.prompt_templates import choice_schema
from . import JudgeRequestItem
from .llm_judge import LlmJudge
from .questions import VERDICT_KEY
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
# Several ways are tried in a row, and none that fails is waited for.
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
# Enough to see whether a schema is accepted, and for a colour.
_FEW_TOKENS = 16


class Check(Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    """What was checked."""
    ok: bool | None
    """Whether it passed; None if this cannot be decided, or is not required."""
    detail: str
    """What was found, and what to do if it did not pass."""


async def first_verdict(judge: LlmJudge) -> ClaimVerdict:
    """Return the verdict on a claim, for which the judge is called in any case."""
    # Without the cache, so that the server is called; with any version, so that none is asked for.
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
            schema=choice_schema(VERDICT_KEY, (word,)),
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


_COLOURS: Mapping[str, tuple[int, int, int]] = {
    "red": (220, 20, 20),
    "green": (20, 160, 40),
    "blue": (20, 40, 220),
    "yellow": (250, 220, 20),
}
# A model that sees nothing says the same of both.
_SHOWN = ("blue", "yellow")
# Above the least size of vision models' processors.
_SIDE = 224
_NAME = "pictures"


async def check_sight(client: ChatClient) -> Check:
    """Show a server two pictures that are made here; return whether it tells their colours.

    A judge that only reads text passes all other checks, so that this one is never required.

    Args:
        client: Calls the judge.
    """
    if (api := client.settings.api) != "chat":
        detail = f"not shown: llm.api is {api!r}; set it to chat for a judge that sees"
        return Check(name=_NAME, ok=None, detail=detail)
    for colour in _SHOWN:
        try:
            await client.settle(asks=True)
            reply = without_thought((await client.ask(_coloured(colour))).reply)
        except (CallFailedError, HallujudgeError) as err:
            return Check(name=_NAME, ok=None, detail=_refusal(err))
        # Only the text counts, and no log-probability.
        said = read_choice(replace(reply, logit=""), tuple(_COLOURS)).choice
        if said != colour:
            found = said or (shown(reply.content) if reply.content else "nothing")
            detail = f"not seen: of a picture that is all {colour} it says {found}; {SERVE_SIGHT}"
            return Check(name=_NAME, ok=None, detail=detail)
    detail = f"seen: it tells a {_SHOWN[0]} picture from a {_SHOWN[1]} one"
    return Check(name=_NAME, ok=True, detail=detail)


def _refusal(err: CallFailedError | HallujudgeError) -> str:
    """Return why a call with a picture failed, and what to do if pictures are what failed it."""
    if not isinstance(err, CallFailedError) or err.kind is not FailureKind.REFUSED_REQUEST:
        return f"not known: {err}"
    return err.detail if SERVE_SIGHT in err.detail else f"refused: {err.detail}; {SERVE_SIGHT}"


def _coloured(colour: str) -> ChatRequest:
    choices = tuple(_COLOURS)
    asked = f"Which colour is this picture? Answer with one word: {', '.join(choices)}."
    image = ChatImage(
        data=picture_of(_COLOURS[colour]), media_type="image/png", width=_SIDE, height=_SIDE
    )
    return ChatRequest(
        messages=[{"role": "user", "content": asked}],
        max_tokens=_FEW_TOKENS,
        choices=choices,
        schema=choice_schema(VERDICT_KEY, choices),
        images=(image,),
    )


def picture_of(colour: tuple[int, int, int], side: int = _SIDE) -> bytes:
    """Return a square PNG of one colour."""
    # Eight bits a channel and colour type 2, which is RGB in the PNG specification.
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    # A row begins with the number of its filter; 0 is none.
    rows = (b"\0" + bytes(colour) * side) * side
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
