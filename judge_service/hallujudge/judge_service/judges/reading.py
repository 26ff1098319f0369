"""Parsing replies: only an offered choice is a verdict, and nothing is guessed.

A reply is compared with the choices as a whole. A choice inside a sentence does not count:
"I would not call it supported" contains one too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from ..llm.chat import ChatReply, TokenChoice
from ..llm.replies import reply_problem, shown

__all__ = [
    "NO_VERDICT",
    "VERDICT_KEY",
    "ReadAnswer",
    "read_choice",
    "read_keyed",
]

VERDICT_KEY = "verdict"
"""The key of a single choice in an answer that is an object."""
NO_VERDICT = "REPLY_OUT_OF_CHOICE"
"""The reason of a claim whose reply is not one of the offered choices."""

_WRAPPING = " \t\r\n\"'`*."


class ReadAnswer(NamedTuple):
    """What a reply says about one claim."""

    choice: str
    """The choice; empty: there is none."""
    margin: float | None = None
    """Its log-probability minus that of the best other choice, if reported."""
    reason: str = ""
    """Why there is no choice."""
    detail: str = ""
    """The reason in words."""


def read_choice(
    reply: ChatReply, choices: Sequence[str], envelope: tuple[str, str] = ("", "")
) -> ReadAnswer:
    """Return the choice that a whole reply consists of.

    White space, quotation marks, emphasis and a full stop around it are dropped and case is
    ignored, for servers that cannot constrain replies. A JSON string, and an object with
    ``verdict`` as its only key, are read as the text that they contain.

    Args:
        reply: The answer.
        choices: What was offered.
        envelope: What stands before and after the choice, and is dropped.
    """
    if problem := reply_problem(reply):
        return ReadAnswer("", None, *problem)
    text = reply.content.strip().removeprefix(envelope[0]).removesuffix(envelope[1])
    inner = _only_string(text)
    answer = (text if inner is None else inner).strip(_WRAPPING).casefold()
    if answer not in choices:
        return ReadAnswer("", None, NO_VERDICT, f"{shown(text)} is not one of {', '.join(choices)}")
    # Where the choice begins in the text, so that tokens can be followed from there.
    start = reply.content.casefold().find(answer)
    return ReadAnswer(answer, _margin(reply.tokens, start, answer, choices))


def read_keyed(reply: ChatReply, count: int, choices: Sequence[str]) -> list[ReadAnswer]:
    """Return the choices of a reply that is an object with keys ``1`` to ``count``.

    A claim whose entry is missing, duplicate or outside the choices has no verdict. Keys that were
    not asked for leave all claims without a verdict, because the numbering is then unclear.

    Args:
        reply: The answer.
        count: How many claims were asked about.
        choices: What was offered for each.
    """
    if problem := reply_problem(reply):
        return [ReadAnswer("", None, *problem)] * count
    try:
        pairs = json.loads(reply.content, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as err:
        return [ReadAnswer("", None, "REPLY_NOT_JSON", f"{shown(reply.content)}: {err}")] * count
    if not isinstance(pairs, _Pairs):
        detail = f"{shown(reply.content)} is not a JSON object"
        return [ReadAnswer("", None, "REPLY_WRONG_SCHEMA", detail)] * count
    keys = [str(number) for number in range(1, count + 1)]
    if unknown := [key for key, _ in pairs if key not in keys]:
        detail = f"keys that were not asked for: {shown(', '.join(unknown))}"
        return [ReadAnswer("", None, "REPLY_WRONG_SCHEMA", detail)] * count
    return [_entry(reply, pairs, key, choices) for key in keys]


class _Pairs(list[tuple[str, object]]):
    """An object's entries, duplicates included."""


def _entry(reply: ChatReply, pairs: _Pairs, key: str, choices: Sequence[str]) -> ReadAnswer:
    values = [value for name, value in pairs if name == key]
    if len(values) != 1:
        problem = "answered twice" if values else "not answered"
        return ReadAnswer("", None, "REPLY_WRONG_SCHEMA", f"claim {key} is {problem}")
    answer = values[0]
    if not isinstance(answer, str) or answer not in choices:
        told = shown(answer if isinstance(answer, str) else type(answer).__name__)
        return ReadAnswer(
            "", None, NO_VERDICT, f"claim {key}: {told} is not one of {', '.join(choices)}"
        )
    start = _value_start(reply.content, key)
    return ReadAnswer(answer, _margin(reply.tokens, start, answer, choices))


def _value_start(text: str, key: str) -> int:
    """Where the value of a key begins, after its quotation mark; keys and choices contain none."""
    at = text.find(f'"{key}"')
    colon = text.find(":", at)
    return text.find('"', colon) + 1 if at >= 0 and colon >= 0 else -1


def _only_string(text: str) -> str | None:
    if text.strip()[:1] not in ('"', "{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, _Pairs) and [key for key, _ in value] == [VERDICT_KEY]:
        value = value[0][1]
    return value if isinstance(value, str) else None


def _margin(
    tokens: Sequence[TokenChoice], start: int, answer: str, choices: Sequence[str]
) -> float | None:
    """Difference in log-probability between the reply and the best other choice.

    The answer's tokens are followed from its first character on. A rival leaves the path at the
    first token where it differs; its log-probability is that of the path so far and of the token
    that it would have had there (what it would need after that is left out, so that the margin is
    never too large). Where no rival is among the reported tokens, the least likely reported one
    is used instead: the true margin is larger.
    """
    path = _path(tokens, start) if start >= 0 else []
    text = "".join(token.text[skipped:] for skipped, token in path)
    if not text.casefold().startswith(answer) or not any(token.top for _, token in path):
        return None
    others = [choice for choice in choices if choice != answer]
    written, so_far, least = "", 0.0, 0.0
    rivals: list[float] = []
    for skipped, token in path:
        if len(written) >= len(answer):
            break
        for told, logprob in _alternatives(token, skipped, written):
            least = min(least, so_far + logprob)
            if not _leads(told, answer) and any(_leads(told, other) for other in others):
                rivals.append(so_far + logprob)
        written += token.text[skipped:].casefold()
        so_far += token.logprob
    return so_far - max(rivals, default=min(least, so_far))


def _alternatives(token: TokenChoice, skipped: int, written: str) -> list[tuple[str, float]]:
    """The text of the choice with each reported token in place of this one."""
    before = token.text[:skipped]
    return [
        ((written + text[skipped:]).casefold(), logprob)
        for text, logprob in token.top
        if text.startswith(before) and len(text) > skipped
    ]


def _leads(told: str, choice: str) -> bool:
    """Whether a text may become a choice, or is a choice followed by other text."""
    return choice.startswith(told) or (
        told.startswith(choice) and not told[len(choice) :][:1].isalnum()
    )


def _path(tokens: Sequence[TokenChoice], start: int) -> list[tuple[int, TokenChoice]]:
    """Tokens from a character on, with the number of characters of each that precede it."""
    path, offset = [], 0
    for token in tokens:
        end = offset + len(token.text)
        if end > start:
            path.append((max(0, start - offset), token))
        offset = end
    return path
