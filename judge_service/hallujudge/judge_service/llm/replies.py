"""Why a whole reply cannot be read: the model refused, or the reply was cut off."""

from __future__ import annotations

from typing import NamedTuple

from .chat import ChatReply

__all__ = ["SHOWN_CHARS", "ReplyProblem", "reply_problem", "shown"]

SHOWN_CHARS = 80
"""How many characters of a reply a message quotes."""


class ReplyProblem(NamedTuple):
    """Why a reply cannot be read."""

    reason: str
    """The reason, such as ``REPLY_TRUNCATED``."""
    detail: str
    """The reason in words."""


def reply_problem(reply: ChatReply) -> ReplyProblem | None:
    """Return why a whole reply cannot be read; None if it can."""
    if reply.refusal or reply.finish_reason == "content_filter":
        said = f": {reply.refusal[:SHOWN_CHARS]!r}" if reply.refusal else ""
        return ReplyProblem("JUDGE_REFUSED", f"the model refused to answer{said}")
    if reply.finish_reason == "length":
        return ReplyProblem("REPLY_TRUNCATED", f"the reply was cut off: {shown(reply.content)}")
    return None


def shown(text: str) -> str:
    """Quote the beginning of a text for a message."""
    return repr(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")
