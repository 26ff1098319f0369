"""Checks of judges: those of ``hallujudge doctor``, and how often a judge contradicts itself."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from hallujudge.metrics.framework.claims import LEAST_SHARE, ClaimVerdict, Triplet, Verdict

from ..errors import HallujudgeError, UnavailableError
from ..llm.chat import ChatRequest
from ..llm.chat_replies import (
    NO_THOUGHT,
    ChatReply,
    Stated,
    is_cut_thought,
    logits_problem,
    without_thought,
)
from ..llm.chat_servers import ChatServer
from ..llm.chat_settings import ChatSettings
from ..llm.client import Answer, ChatClient
from ..llm.failures import CallFailedError, FailureKind
from . import JudgeRequestItem
from .judge_calls import share_of
from .llm_judge import LlmJudge
from .questions import WORDINGS
from .replies import read_choice
from .several_judges import Router
from .single_checks import (
    CHECKED_ITEM,
    Check,
    constraint_check,
    extraction_check,
    first_verdict,
    other_settings,
)

# Two equal replies may be chance.
_REPEATS = 3
# Enough for most thoughts and for a first call that loads a model; `doctor` is not to take minutes.
_PATIENCE_SECONDS = 60.0
# Claims in a call whose verdicts are compared with those of one claim in a call.
_MANY = (5, 20)
# Why a call has no reply at all, whose text might be read.
_NO_REPLY = frozenset(
    kind.value for kind in FailureKind if kind.is_of_one_call or kind is FailureKind.REFUSED_REQUEST
)
_FOREIGN = Triplet("horse", "jumping over", "fence")


async def check_endpoint(judge: LlmJudge, *, patience: float = _PATIENCE_SECONDS) -> list[Check]:
    """Check the model, answers, structured output, log-probabilities and repeatability of a server.

    Makes at most ten calls and does not use the cache, and some more where other settings are
    tried because the choices are not enforced. One call is for one token without a constraint,
    which says how likely the judge would write one of the choices by itself.

    Args:
        judge: The judge as it would be used.
        patience: Seconds for which a first answer is waited for, and one after a thought.
    """
    client, before = judge.client, judge.client.settings
    request = judge.request_of(judge.questions(CHECKED_ITEM)[0])
    checks: list[Check] = []
    replies: list[ChatReply] = []
    try:
        async with asyncio.timeout(patience):
            await client.settle(asks=True)
            checks += [await _listed(client, server) for server in client.servers]
            if before.is_dialect_guessed:
                checks.append(_found_dialect(before, client.settings))
            # Without room for a thought, so that a model that thinks is found out at once.
            brief = await client.ask(request, takes_room=False)
        if not is_cut_thought(brief.reply):
            replies.append(brief.reply)
        elif slow := await _slow_thought(client, request, brief, patience):
            return checks + slow
        while len(replies) < _REPEATS:
            replies.append((await client.ask(request)).reply)
    except TimeoutError:
        return [*checks, _silence(client.settings, patience)]
    except (CallFailedError, HallujudgeError) as err:
        checks.append(Check(name="answer", ok=False, detail=str(err)))
        return checks + await other_settings(judge, _reason_of(err))
    first = replies[0]
    checks.append(Check(name="answer", ok=True, detail=f"{first.model or client.settings.model}"))
    checks.append(await _verdict(judge))
    if first.stated is not None:
        checks.append(_probabilities(first.stated))
    else:
        enforced = await _tried(lambda: constraint_check(client), "structured output")
        checks.append(enforced)
        if enforced.ok is False:
            checks += await other_settings(judge)
        checks.append(await _tried(lambda: _logprobs(judge, first), "log-probabilities"))
        checks.append(await _tried(lambda: extraction_check(client), "extraction"))
    checks += _thoughts(replies)
    checks.append(_repeats(replies))
    return checks


async def check_answer(judge: LlmJudge) -> str:
    """Ask a judge once, past the verdict cache; return why its reply has no verdict, else empty.

    Args:
        judge: The judge as it would be used.

    Raises:
        InvalidInputError: The model does not exist, or the server refuses the judge's parameters.
        UnavailableError: The call is not answered.
    """
    verdict = await first_verdict(judge)
    if verdict.reason in _NO_REPLY:
        raise UnavailableError(
            f"{judge.client.settings.model} does not answer: {verdict.detail}",
            reason="JUDGE_UNREACHABLE",
        )
    return f"{verdict.reason}: {verdict.detail}" if verdict.reason else ""


async def check_small(judge: Router) -> Check:
    """Check that a small judge supports a claim of the scene graph, and not a foreign one.

    Args:
        judge: The small judge as it would be used.
    """
    item = replace(CHECKED_ITEM, claims=(CHECKED_ITEM.reference_triplets[0], _FOREIGN))
    stated, foreign = (await judge.judge([item]))[0].verdicts
    for verdict in (stated, foreign):
        if verdict.verdict is Verdict.UNSCORED:
            return Check(name="verdict", ok=False, detail=f"{verdict.reason}: {verdict.detail}")
    found = f"{_chance(stated)} for a stated claim, {_chance(foreign)} for a foreign one"
    if (stated.verdict, foreign.verdict) == (Verdict.SUPPORTED, Verdict.NOT_SUPPORTED):
        return Check(name="verdict", ok=True, detail=found)
    return Check(
        name="verdict",
        ok=False,
        detail=f"decides a clear example wrongly: {found}; check that these are its weights",
    )


def _chance(verdict: ClaimVerdict) -> str:
    return verdict.verdict.value if verdict.score is None else f"probability {verdict.score:.3f}"


async def _tried(check: Callable[[], Awaitable[Check]], name: str) -> Check:
    try:
        return await check()
    except (CallFailedError, HallujudgeError) as err:
        return Check(name=name, ok=False, detail=str(err))


def _found_dialect(before: ChatSettings, settings: ChatSettings) -> Check:
    found = f"llm.dialect={settings.dialect} llm.constraint={settings.sent_constraint}"
    if settings.is_dialect_guessed:
        return Check(name="dialect", ok=None, detail=f"no server answers; guessed: {found}")
    if settings.sent_constraint == "none" != before.sent_constraint:
        found += "; the server refuses constraints"
    return Check(name="dialect", ok=True, detail=f"found by itself: {found}")


def _silence(settings: ChatSettings, patience: float) -> Check:
    detail = (
        f"none in {patience:g} s: the server takes the call and does not answer. It hangs, is "
        f"busy, or still loads its model; a run waits for {settings.endpoint.timeout_seconds:g} s "
        "(llm.timeout_seconds)"
    )
    return Check(name="answer", ok=False, detail=detail)


def _reason_of(err: CallFailedError | HallujudgeError) -> str:
    if isinstance(err, CallFailedError):
        return str(err.kind.value)
    return err.metadata.get("cause", err.reason)


async def _listed(client: ChatClient, server: ChatServer) -> Check:
    check = await _listed_there(client.settings.model, server)
    where = f"{server.endpoint.place}: " if len(client.servers) > 1 else ""
    return replace(check, detail=f"{where}{check.detail}")


async def _listed_there(model: str, server: ChatServer) -> Check:
    if server.endpoint.sender == "azure":
        return Check(name="model", ok=None, detail="Azure lists no deployments")
    try:
        listed = json.loads(await server.sender.get("models"))["data"]
        names = [str(entry["id"]) for entry in listed]
    except CallFailedError as failure:
        detail = f"the list of models cannot be read ({failure.detail})"
        return Check(name="model", ok=None, detail=detail)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Check(name="model", ok=None, detail="the list of models has another layout")
    known = ", ".join(names[:5]) or "none"
    detail = (
        f"{model!r} is served" if model in names else f"{model!r} is not listed; it has: {known}"
    )
    return Check(name="model", ok=model in names, detail=detail)


async def _verdict(judge: LlmJudge) -> Check:
    """Check that a reply, constrained as in a run, is parsed as a verdict."""
    verdict = await first_verdict(judge)
    if verdict.verdict is Verdict.UNSCORED:
        return Check(name="verdict", ok=False, detail=f"{verdict.reason}: {verdict.detail}")
    return Check(
        name="verdict", ok=True, detail=f"{verdict.verdict.value}, margin {verdict.margin}"
    )


async def _logprobs(judge: LlmJudge, reply: ChatReply) -> Check:
    """Check for margins, and how likely the judge would choose if nothing constrained it."""
    name, question = "log-probabilities", judge.questions(CHECKED_ITEM)[0]
    if reply.logit:
        return Check(name=name, ok=False, detail=logits_problem(reply.logit))
    if not any(token.top for token in reply.tokens):
        return Check(name=name, ok=None, detail="not reported: verdicts will have no margin")
    free = await judge.client.ask(judge.meter.request_of(question))
    share = share_of(free.reply, question.choices)
    read = read_choice(reply, question.choices, question.envelope)
    found = "reported: verdicts have margins, among the choices"
    if read.choice and read.margin is None:
        found = (
            "reported, but without the choices, as before the constraint: verdicts have no margin "
            "and no probability"
        )
    if share is None:
        ok = None if read.margin is None else True
        return Check(name=name, ok=ok, detail=f"{found}; choice_share is not known")
    found += f"; choice_share {share:.3f}"
    if share < LEAST_SHARE:
        found += ": the judge would rather write other words, which its margins do not show"
    ok = share >= LEAST_SHARE
    return Check(name=name, ok=None if ok and read.margin is None else ok, detail=found)


async def _slow_thought(
    client: ChatClient, request: ChatRequest, brief: Answer, patience: float
) -> list[Check]:
    """Say that a judge that thinks does not answer for a while; nothing if it does answer.

    Args:
        client: Calls the judge.
        request: What is asked.
        brief: The reply to the same with a limit at which its thought was cut off.
        patience: How long is waited.
    """
    try:
        await asyncio.wait_for(client.ask(request), patience)
    except TimeoutError:
        most, took = client.most_tokens(request), brief.usage
        seconds = client.settings.endpoint.timeout_seconds
        pace = ""
        if took.latency_seconds and took.completion_tokens:
            rate = took.completion_tokens / took.latency_seconds
            pace = f" at {rate:.3g} tokens/s they take {most / rate:,.0f} s;"
        told = (
            f"the judge thinks before it answers, and a reply may have {most:,} tokens;{pace} "
            f"llm.timeout_seconds is {seconds:g}: raise it to more than that, or {NO_THOUGHT}"
        )
        return [
            Check(name="answer", ok=False, detail=f"none in {patience:g} s: it still thinks"),
            Check(name="reasoning", ok=False, detail=told),
        ]
    return []


def _thoughts(replies: Sequence[ChatReply]) -> list[Check]:
    """Say what a model that thinks needs; nothing for another one."""
    thinking = [reply for reply in map(without_thought, replies) if reply.has_thought]
    if not thinking:
        return []
    first = thinking[0]
    tokens = max(reply.completion_tokens for reply in thinking)
    if not first.is_unfinished_thought:
        limit = "llm.max_tokens limits both, and choices are not enforced in a thought"
        detail = f"before the answer, {tokens} completion tokens together; {limit}"
        return [Check(name="reasoning", ok=None, detail=detail)]
    if first.is_cut_off:
        detail = f"cut off after {tokens} completion tokens; {first.no_room}"
    else:
        detail = (
            "the whole reply, without an answer: start the server without its reasoning parser "
            f"(vLLM: reasoning-parser), or {NO_THOUGHT}"
        )
    return [Check(name="reasoning", ok=False, detail=detail)]


def _probabilities(answers: Sequence[Stated]) -> Check:
    """Check how sure a model is that it answers with one of the choices."""
    answer = answers[0]
    if not answer.probabilities:
        return Check(name="probabilities", ok=None, detail="not reported")
    share = math.fsum(answer.probabilities)
    return Check(
        name="probabilities",
        ok=bool(answer.choice) and share >= LEAST_SHARE,
        detail=f"{share:.3f} for all choices together",
    )


def _repeats(replies: list[ChatReply]) -> Check:
    # Counts of cached tokens differ from call to call and do not matter here.
    distinct = {replace(reply, tokens=(), cached_tokens=0, model="") for reply in replies}
    if len(distinct) == 1:
        return Check(name="repeatability", ok=True, detail=f"{len(replies)} equal answers")
    detail = f"{len(distinct)} different answers to {len(replies)} equal requests"
    return Check(name="repeatability", ok=False, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrial:
    """Verdicts on the same claims, judged in another way."""

    change: str
    """What differs: ``repetition``, ``rewording 1``, ``5 claims a call``, ``reversed order``."""
    compared_with: str
    """What it is compared with, such as ``one claim a call``."""
    claims: int
    """Claims with a verdict in both."""
    flips: int
    """Those of them with opposite verdicts."""
    unanswered: int
    """Claims without a verdict in either."""


async def retry_claims(judge: LlmJudge, items: Sequence[JudgeRequestItem]) -> list[Retrial]:
    """Return how verdicts change on repetition, on rewording, with more claims a call, by order.

    Each way asks about every claim; replies of other ways and of the verdict cache are not used.
    Verdicts flip between supported and not supported; another wrong part is not a flip.

    Args:
        judge: The judge.
        items: Claims and references, one item for each image.

    Raises:
        InvalidInputError: The key is rejected, or there is no such model.
        UnavailableError: The judge answered no call for a long time.
    """
    chats = judge.client.settings.api == "chat"
    alone = "one claim a call" if chats else "one call an image"
    first = await _verdicts_of(judge.fresh(), items)
    ways = {"repetition": judge.fresh()}
    ways |= {f"rewording {n}": judge.fresh(wording=w) for n, w in enumerate(WORDINGS, start=1)}
    if chats:
        ways |= {f"{size} claims a call": judge.fresh(claims_per_call=size) for size in _MANY}
    found, together = [], first
    for change, way in ways.items():
        last = await _verdicts_of(way, items)
        found.append(_compared_verdicts(change, alone, first, last))
        # The last way has the most claims in a call; the reversed order is asked in such calls.
        together = last if chats else first
    turned = [replace(item, claims=item.claims[::-1]) for item in items]
    back = [v[::-1] for v in await _verdicts_of(judge.fresh(claims_per_call=_MANY[-1]), turned)]
    base = f"{_MANY[-1]} claims a call" if chats else alone
    found.append(_compared_verdicts("reversed order", base, together, back))
    return found


async def _verdicts_of(judge: LlmJudge, items: Sequence[JudgeRequestItem]) -> list[list[Verdict]]:
    return [[claim.verdict for claim in one.verdicts] for one in await judge.judge(items)]


def _compared_verdicts(
    change: str, base: str, one: Sequence[Sequence[Verdict]], other: Sequence[Sequence[Verdict]]
) -> Retrial:
    pairs = [
        pair
        for mine, theirs in zip(one, other, strict=True)
        for pair in zip(mine, theirs, strict=True)
    ]
    both = [pair for pair in pairs if Verdict.UNSCORED not in pair]
    return Retrial(
        change=change,
        compared_with=base,
        claims=len(both),
        flips=sum(mine is not theirs for mine, theirs in both),
        unanswered=len(pairs) - len(both),
    )
