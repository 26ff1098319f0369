"""Why a reply has no answer, and the thought that stands before one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from hallujudge.metrics.responses.thoughts import divided

from .chat import ChatReply

SHOWN_CHARS = 80
"""How many characters of a reply a message quotes."""
# A shorter beginning says nothing about the white space in a reply.
_FEW_CHARS = 16
NO_THOUGHT = (
    "turn thinking off at the server "
    '(vLLM: default-chat-template-kwargs with {"enable_thinking": false})'
)
"""What to do at the server of a model that is not to think."""
ROOM_ADVICE = f"raise llm.max_tokens and llm.timeout_seconds, or {NO_THOUGHT}"
"""What to set for a model whose thoughts are cut off, or take too long."""
TIME_ADVICE = f"raise llm.timeout_seconds, allow fewer tokens, or {NO_THOUGHT}"
"""What to set for a model whose texts take too long, because it thinks before it writes."""


def without_thought(reply: ChatReply) -> ChatReply:
    """Return a reply whose thought, which a server without a reasoning parser sends, is apart."""
    said = divided(reply.content)
    if not said.thought:
        # Other marks are no part of an answer: a judge may repeat them from a judged text.
        return reply
    answer = said.answer if said.finished else ""
    return replace(reply, content=answer, thought=reply.thought or said.thought)


def is_cut_thought(reply: ChatReply) -> bool:
    """Return whether a reply was cut off before its answer, which more tokens may add."""
    return reply.is_cut_off and without_thought(reply).is_unfinished_thought


class ReplyProblem(NamedTuple):
    """Why a reply cannot be read."""

    reason: str
    """The reason, such as ``REPLY_TRUNCATED``."""
    detail: str
    """The reason in words."""


def reply_problem(reply: ChatReply) -> ReplyProblem | None:
    """Return why a whole reply cannot be read; None if it can."""
    if reply.refusal or reply.finish_reason == "content_filter":
        quoted = f": {reply.refusal[:SHOWN_CHARS]!r}" if reply.refusal else ""
        return ReplyProblem("JUDGE_REFUSED", f"the model refused to answer{quoted}")
    if reply.is_unfinished_thought:
        thought = f": {shown(reply.thought)}" if reply.thought else ""
        if reply.is_cut_off:
            why = f"; {reply.no_room}" if reply.no_room else ""
            detail = f"the reply was cut off in its reasoning, before an answer{thought}{why}"
            return ReplyProblem("REPLY_TRUNCATED", detail)
        return ReplyProblem("REPLY_ONLY_THOUGHT", f"the reply has reasoning and no answer{thought}")
    if reply.is_cut_off:
        return ReplyProblem("REPLY_TRUNCATED", _cut_off(reply.content))
    return None


def _cut_off(content: str) -> str:
    """Why a reply ended too early; white space is what some servers let a model fill JSON with."""
    told = f"the reply was cut off: {shown(content)}"
    if not any(map(_is_mostly_white, (content, content[:SHOWN_CHARS]))):
        return told
    return (
        f"{told}, with much white space; give vLLM structured-outputs-config "
        "'{\"disable_any_whitespace\": true}'"
    )


def _is_mostly_white(text: str) -> bool:
    return len(text) >= _FEW_CHARS and 2 * len("".join(text.split())) <= len(text)


def shown(text: str) -> str:
    """Quote the beginning of a text for a message."""
    return repr(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")
