"""Responses as models write them: their text, what of it is scored, and the rest.

The text is taken from what model servers send: messages, chat completions, and lists of contents. A
thought that has a place of its own in them comes before the text, between marks. Thoughts, marks of
templates, repeated prompts and cut sentences are told from the answer that is scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from ..framework.metric import OptionDefinition
from ..framework.response_traits import (
    CUT,
    DROPPED,
    FORM,
    KEPT,
    LEFT_OUT,
    PROMPT,
    REFUSAL,
    SCORED,
    THOUGHT,
    TOKENS,
    UNFINISHED,
    WORDS,
)
from .forms import Form, own_forms
from .leftovers import BARE_END, REFUSALS_BEGIN, cleaned, is_cut, is_refusal, without_cut_sentence
from .thoughts import Division, Said, divided, with_thought, without_keyed_thought

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


THOUGHTS, MARKS = "thoughts", "thought_marks"
READER_OPTIONS = (
    OptionDefinition(
        name=THOUGHTS,
        choices=(LEFT_OUT, KEPT, SCORED),
        meaning="Thoughts of models that reason.",
        details="keep scores them with the answer; score scores them apart.",
        purpose="input",
    ),
    OptionDefinition(
        name=MARKS,
        meaning="More marks of thoughts.",
        details="An opening and a closing one a line.",
        purpose="input",
    ),
    OptionDefinition(
        name="template_tokens",
        choices=(LEFT_OUT, KEPT),
        meaning="Template tokens, and repeated prompts.",
        purpose="input",
    ),
    OptionDefinition(
        name="drop_cut_sentence",
        choices=("false", "true"),
        meaning="Leave out unfinished last sentences.",
        details="Published numbers at 64 tokens need it.",
        purpose="input",
    ),
)
"""Options that say how every metric reads responses."""


class Reading(NamedTuple):
    """A response as it is scored."""

    answer: str | None
    """The text that is scored; None without a response, and for a thought without an end."""
    thought: str = ""
    """The thought, which is not part of the answer; empty without one."""
    finished: bool = True
    """Whether there is an answer after the thought."""
    traits: Mapping[str, int] = {}
    """What was found: trait -> 1, or a number of words."""
    whole: str | None = None
    """The text with the thought that it has; None without one."""


_PLAIN: Mapping[str, int] = {}
# What tokenizers that skip special tokens leave of templates and empty thoughts.
_BEGINNINGS = ("system\n", "user\n", "thought\n", "analysis", "assistantanalysis")


def is_plain(text: str | None) -> bool:
    """Return whether a response is an answer as it is, as nearly all are.

    It has no marks of thoughts, answers or templates, ends a sentence, and is not a refusal.
    """
    # Searches in C, which take less time than one pattern or than a function for each question.
    return (
        text is not None
        and text[-1:] == "."
        and text[:4].lower() not in REFUSALS_BEGIN
        and _has_no_marks(text)
    )


def _has_no_marks(text: str) -> bool:
    # Forms of thoughts and templates have one of these characters, or are among the beginnings. The
    # two words are what is left between a thought and an answer of gpt-oss and of Kimi-K3.
    return not (
        "<" in text
        or ":" in text
        or "]" in text
        or "◁" in text
        or "\\" in text
        or "assistantfinal" in text
        or "thinkresponse" in text
        or "...done thinking." in text
        or text.lstrip().startswith(_BEGINNINGS)
    )


class ResponseReader(Struct, frozen=True, kw_only=True):
    """Divides responses into thoughts and answers, and leaves out what is not the model's."""

    keeps: bool = False
    """Whether thoughts are kept, and scored with the answer."""
    own: tuple[Form, ...] = ()
    """Further marks of thoughts."""
    keeps_tokens: bool = False
    """Whether tokens of templates and repeated prompts stay."""
    drops_cut: bool = False
    """Whether unfinished last sentences are left out."""
    division: Division | None = None
    """The rule of a variant whose tool knows marks of its own."""
    is_open: bool = False
    """Whether responses are texts with sentences, such as captions."""

    @classmethod
    def of(cls, options: Mapping[str, str], *, is_open: bool = False) -> ResponseReader:
        """Return the reader of a spec's options.

        Raises:
            ValueError: A mark of the user is not a pair.
        """
        return cls(
            keeps=options.get(THOUGHTS) == KEPT,
            own=own_forms(options.get(MARKS, "")),
            keeps_tokens=options.get("template_tokens") == KEPT,
            drops_cut=options.get("drop_cut_sentence") == "true",
            is_open=is_open,
        )

    def read(self, text: str | None) -> Reading:
        """Return a response as it is scored."""
        if text is None:
            return Reading(None)
        if _has_no_marks(text) and not self.own and not text.endswith(BARE_END):
            traits = dict[str, int]()
            return Reading(self._checked(text, traits), traits=traits or _PLAIN)
        return self._read(text)

    def _read(self, text: str) -> Reading:
        traits = dict[str, int]()
        whole = text if self.keeps_tokens else self._cleaned(text, traits)
        said = self._said(whole)
        if not said.form:
            return Reading(self._checked(said.answer, traits), traits=traits or _PLAIN)
        traits |= {THOUGHT: 1, WORDS: len(said.thought.split()), FORM + said.form: 1}
        # What the model server gave as content: the thought under its key was never a part of it.
        written = without_keyed_thought(whole)
        if self.keeps and written is not None:
            return Reading(self._checked(written, traits), said.thought, True, traits, written)
        if not said.finished:
            return Reading(None, said.thought, False, {**traits, UNFINISHED: 1}, written)
        answer = said.answer if self.keeps_tokens else self._cleaned(said.answer, traits)
        return Reading(self._checked(answer, traits), said.thought, True, traits, written)

    def _said(self, text: str) -> Said:
        return divided(text, self.own) if self.division is None else self.division(text)

    def _cleaned(self, text: str, traits: dict[str, int]) -> str:
        found = cleaned(text)
        if found.tokens:
            traits[TOKENS] = 1
        if found.prompt:
            traits[PROMPT] = 1
        return found.text

    def _checked(self, answer: str, traits: dict[str, int]) -> str:
        """Return the answer after a look at refusals and cut sentences."""
        if is_refusal(answer):
            traits[REFUSAL] = 1
        # Answers to closed questions often end without a full stop: "Yes. It is red".
        if (self.is_open or self.drops_cut) and is_cut(answer):
            traits[CUT] = 1
            if self.drops_cut:
                traits[DROPPED] = 1
                return without_cut_sentence(answer)
        return answer


PLAIN_READER = ResponseReader()
"""The reader without options, for checks of archives before anything is scored."""


def answer_of(text: str | None) -> str:
    """Return the answer of a response by the default rules; empty without one."""
    if text is None or (_has_no_marks(text) and not text.endswith(BARE_END)):
        return text or ""
    return PLAIN_READER.read(text).answer or ""
