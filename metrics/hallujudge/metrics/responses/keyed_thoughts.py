"""Thoughts under keys of their own: in records, and in messages of chat servers."""

from __future__ import annotations

from collections.abc import Mapping

from .thoughts import with_thought

THOUGHT_KEYS = ("thought", "reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Keys of thoughts: of ``ask``, of chat servers, of VLMEvalKit and of OpenRouter."""
_PART_KEYS = ("thinking", "reasoning", "text", "reasoning_text", "summary_text", "summary")
_PARTS = ("reasoning", "thinking", "redacted_thinking")
"""Types of a message's parts that hold its thought."""
# Texts within objects within lists.
_MOST_DEEP = 3


def thought_in(values: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the key and the text of a thought that a record or message has; None without one."""
    for key in THOUGHT_KEYS:
        # A word is the value of a field, such as the kind of reasoning that a question needs.
        text = _text_of(values.get(key), _MOST_DEEP)
        if text is not None and " " in text.strip():
            return key, text
    content = values.get("content")
    if isinstance(content, (list, tuple)):
        parts = [part for part in content if isinstance(part, Mapping)]
        kinds = [part for part in parts if part.get("type") in _PARTS]
        texts = [_text_of(part, _MOST_DEEP) for part in kinds]
        if text := "\n".join(filter(None, texts)):
            return str(kinds[0]["type"]), text
    return None


def _text_of(held: object, deep: int) -> str | None:
    """Return the text of a thought: a text, an object with one, or a list of these."""
    if isinstance(held, str) or not deep:
        return held if isinstance(held, str) else None
    if isinstance(held, Mapping):
        # The readable part of a thought whose text is encrypted is its summary.
        keys = _PART_KEYS[-2:] if held.get("redacted") else _PART_KEYS
        found = (_text_of(held.get(key), deep - 1) for key in keys)
        return next(filter(None, found), None)
    if isinstance(held, (list, tuple)):
        return "\n".join(filter(None, (_text_of(part, deep - 1) for part in held))) or None
    return None


def message_text(message: Mapping[str, object]) -> object:
    """Return the text of a chat message with its thought; what its content is without a text."""
    content, found = message.get("content"), thought_in(message)
    if isinstance(content, (list, tuple)):
        parts = [part for part in content if isinstance(part, Mapping)]
        texts = [part for part in parts if part.get("type") not in _PARTS]
        content = "".join(str(part.get("text") or "") for part in texts) if texts else None
    if found is None or not (content is None or isinstance(content, str)):
        return content
    return with_thought(found[1], content, found[0])
