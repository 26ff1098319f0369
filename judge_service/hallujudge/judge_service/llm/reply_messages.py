"""What a chat message says: the answer, and the thought that servers report apart from it.

DeepSeek's API, SGLang, llama.cpp and older vLLM name a thought ``reasoning_content``; vLLM since
November 2025 and OpenRouter ``reasoning``; Ollama ``thinking``; MiniMax ``reasoning_details``.
Mistral and Anthropic send parts of the types ``thinking`` and ``text``, Inspect AI ``reasoning``.
Marks within a text, such as ``<think>``, are not read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

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
