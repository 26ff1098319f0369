"""What a chat message says: the answer, and the thought that servers report apart from it.

DeepSeek's API, SGLang, llama.cpp and older vLLM name a thought ``reasoning_content``; vLLM since
November 2025 and OpenRouter ``reasoning``; Ollama ``thinking``; MiniMax ``reasoning_details``.
Mistral and Anthropic send parts of the types ``thinking`` and ``text``, Inspect AI ``reasoning``.
Marks within a text, such as ``<think>``, are not read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""The keys of a message that may hold a thought."""
_THOUGHT_PARTS = ("reasoning", "thinking")
# A part whose own key has no readable text may have a summary. Signatures are not texts to read.
_TEXTS_OF_PARTS = ("thinking", "reasoning", "text", "content", "summary")
# A list of parts, each with a list of parts with texts; deeper values are of no known server.
_MOST_LEVELS = 6


class Said(NamedTuple):
    """What a message says."""

    answer: str | None
    """The text; None without one."""
    thought: str
    """The thought before it; empty without one, or if the server does not show it."""


def said_in(message: Mapping[str, object]) -> Said:
    """Return what a message says.

    Args:
        message: The message of a chat completion.

    Raises:
        ValueError: Its content is neither a text nor parts with texts and thoughts.
    """
    content = message.get("content")
    reported = [_text_of(message.get(key)) for key in THOUGHT_KEYS]
    answers = []
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in _THOUGHT_PARTS:
            reported.append(_text_of(part))
        elif kind == "text" and isinstance(part["text"], str):
            answers.append(part["text"])
        elif kind != "redacted_thinking":
            raise ValueError("its content is not a text")
    if isinstance(content, list):
        content = "".join(answers) if answers else None
    if content is not None and not isinstance(content, str):
        raise ValueError("its content is not a text")
    return Said(content, next(filter(None, reported), ""))


def tool_arguments(message: Mapping[str, object]) -> str:
    """Return the arguments of the only tool that a message calls; empty without one.

    Gateways ask models without a mode for JSON to call a tool whose parameters are the schema.

    Args:
        message: The message of a chat completion.
    """
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or len(calls) != 1 or not isinstance(calls[0], Mapping):
        return ""
    function = calls[0].get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    # Ollama sends an object in place of its text.
    return json.dumps(arguments) if isinstance(arguments, dict) else _text_of(arguments)


def _text_of(value: object, levels: int = _MOST_LEVELS) -> str:
    """Return the text of a thought: a text, a part, or a list of parts; empty without one."""
    if isinstance(value, str):
        return value if value.strip() else ""
    if not levels:
        return ""
    if isinstance(value, list):
        return "".join(_text_of(part, levels - 1) for part in value)
    if not isinstance(value, Mapping):
        return ""
    keys = ("summary",) if value.get("redacted") is True else _TEXTS_OF_PARTS
    return next(filter(None, (_text_of(value.get(key), levels - 1) for key in keys)), "")


# Beyond this bound, values are impossible, and lists that have one are ignored.
_MAX_LOGPROB = 1e6
# vLLM writes this for what the grammar of a constraint rules out, as JSON has no minus infinity.
_RULED_OUT = -9_999.0
# Servers round; a logit is far above.
_ROUNDING = 1e-3
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """A generated token and what else it could have been."""

    text: str
    """The token's text."""
    logprob: float
    """Natural logarithm of its probability."""
    top: tuple[tuple[str, float], ...]
    """Text and log-probability of the likeliest tokens in its place."""


def read_tokens(logprobs: object) -> tuple[tuple[TokenChoice, ...], str]:
    """Return the reported tokens, and the first one whose number is above 0; empty without one.

    Tokens that cannot be read are none, which costs only the margin.

    Args:
        logprobs: The field of a chat completion.
    """
    entries = logprobs.get("content") if isinstance(logprobs, dict) else None
    try:
        read = tuple(map(_choice_of, entries or ()))
    except (KeyError, TypeError, ValueError, AttributeError):
        return (), ""
    named = [pair for one in read for pair in ((one.text, one.logprob), *one.top)]
    logits = (f"{text[:_SHOWN]!r}: {number:.6g}" for text, number in named if number > _ROUNDING)
    return read, next(logits, "")


def _choice_of(entry: Mapping[str, Any]) -> TokenChoice:
    text, logprob = _token_of(entry)
    if logprob <= _RULED_OUT:
        raise ValueError("a token that was ruled out")
    top = filter(_is_possible, entry.get("top_logprobs") or ())
    return TokenChoice(text, logprob, tuple(map(_token_of, top)))


def _token_of(entry: Mapping[str, object]) -> tuple[str, float]:
    token, logprob = entry["token"], entry["logprob"]
    if not isinstance(token, str) or not isinstance(logprob, (int, float)):
        raise TypeError("a token without text or log-probability")
    if not abs(logprob) <= _MAX_LOGPROB:
        raise ValueError(f"the log-probability {logprob!r:.40}")
    return token, float(logprob)


def _is_possible(entry: Mapping[str, Any]) -> bool:
    """Whether a token was possible; servers may list those that a constraint rules out."""
    return not entry["logprob"] <= _RULED_OUT
