"""The text of what model servers send: messages, chat completions, and lists of contents.

A thought that has a place of its own in them comes before the text, between marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .thoughts import with_thought

THOUGHT_KEYS = ("thought", "reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Keys of thoughts: of ``ask``, of chat servers, of VLMEvalKit and of OpenRouter."""
_PART_KEYS = ("thinking", "reasoning", "text", "reasoning_text", "summary_text", "summary")
_PARTS = ("reasoning", "thinking", "redacted_thinking")
# Parts of a message that hold its text, in chats and in OpenAI's API of responses.
_TEXT_PARTS = ("text", "output_text")
# Records under "outputs" have a text too, but not these.
_OF_VLLM = frozenset({"token_ids", "finish_reason", "cumulative_logprob"})
_OF_COMPLETIONS = frozenset({"object", "usage"})
# Texts within objects within lists.
_MOST_DEEP = 3


def sent_text(sent: object) -> object:
    """Return the text of what a server sent, after its thought; None without a text.

    Args:
        sent: A message, a list of its contents, or the body of a reply: of chat completions, of
            OpenAI's API of responses, of Gemini, of Ollama, or of vLLM without a server. Anything
            else is returned as it is.
    """
    if isinstance(sent, Mapping):
        message = _message_in(sent)
        return sent if message is None else message_text(message)
    return message_text({"content": sent}) if _is_content(sent) else sent


def _message_in(body: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the message of a reply; None for an object that is none."""
    first = _first(body.get("choices"))
    # The choices of a question are objects too.
    if isinstance(first, Mapping) and ("message" in first or body.keys() & _OF_COMPLETIONS):
        message = first.get("message")
        return message if isinstance(message, Mapping) else {"content": first.get("text")}
    if isinstance(first := _first(body.get("candidates")), Mapping):
        content = first.get("content")
        return {"content": content.get("parts") if isinstance(content, Mapping) else None}
    if isinstance(first := _first(body.get("outputs")), Mapping) and first.keys() & _OF_VLLM:
        return {"content": first.get("text")}
    if isinstance(output := body.get("output"), list):
        return {"content": _contents(output)}
    if isinstance(message := body.get("message"), Mapping) and "done" in body:
        return message
    marked = body.get("type") == "message" or not body.keys().isdisjoint(("role", *THOUGHT_KEYS))
    return body if "content" in body and marked else None


def _first(held: object) -> object:
    """Return the first value of nested lists; requests and repeats have lists of their own."""
    for _ in range(_MOST_DEEP):
        if not isinstance(held, (list, tuple)):
            return held
        held = held[0] if held else None
    return None


def _contents(output: Sequence[object]) -> Sequence[object]:
    """Return the thoughts, and the contents of the last message, of OpenAI's API of responses."""
    entries = [entry for entry in output if isinstance(entry, Mapping)]
    thoughts = [entry for entry in entries if entry.get("type") in _PARTS]
    said = [entry.get("content") for entry in entries if entry.get("type") == "message"]
    return [*thoughts, *(said[-1] if said and isinstance(said[-1], list) else ())]


def message_text(message: Mapping[str, object]) -> object:
    """Return the text of a chat message with its thought; what its content is without a text."""
    content, found = message.get("content"), thought_in(message)
    if isinstance(content, (list, tuple)):
        content = content_text(content)
    if content is None:
        content = message.get("refusal")
    if found is None or not (content is None or isinstance(content, str)):
        return content
    return with_thought(found[1], content, found[0])


def content_text(content: object) -> str | None:
    """Return the text of a message's content: a text, or the texts and text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    # Clients such as LangChain's have texts among the parts.
    texts = [
        part if isinstance(part, str) else part["text"]
        for part in parts
        if isinstance(part, str) or (_is_part(part) and not _is_thought(part))
    ]
    return "".join(texts) if texts else None


def _is_content(held: object) -> bool:
    """Return whether a list is the content of a message, in which calls of tools may be too."""
    parts = held if isinstance(held, (list, tuple)) else ()
    typed = all(isinstance(part, Mapping) and isinstance(part.get("type"), str) for part in parts)
    return typed and any(map(_is_part, parts))


def _is_part(part: object) -> bool:
    if not isinstance(part, Mapping):
        return False
    # Gemini's parts have no type.
    kind = part.get("type", "text")
    return kind in _PARTS or (kind in _TEXT_PARTS and isinstance(part.get("text"), str))


def _is_thought(part: Mapping[str, object]) -> bool:
    return part.get("type") in _PARTS or part.get("thought") is True


def thought_in(values: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the key and the text of a thought that a record or message has; None without one."""
    for key in THOUGHT_KEYS:
        # A word is the value of a field, such as the kind of reasoning that a question needs.
        text = _text_of(values.get(key), _MOST_DEEP)
        if text is not None and " " in text.strip():
            return key, text
    content = values.get("content")
    if isinstance(content, (list, tuple)):
        kinds = [part for part in content if isinstance(part, Mapping) and _is_thought(part)]
        texts = [_text_of(part, _MOST_DEEP) for part in kinds]
        if text := "\n".join(filter(None, texts)):
            return str(kinds[0].get("type", "thought")), text
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
