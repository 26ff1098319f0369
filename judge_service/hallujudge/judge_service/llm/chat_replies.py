"""What a chat model's reply says: the answer, the thought before it, its tokens, or what is wrong.

DeepSeek's API, SGLang, llama.cpp and older vLLM name a thought ``reasoning_content``; vLLM since
November 2025 and OpenRouter ``reasoning``; Ollama ``thinking``; MiniMax ``reasoning_details``.
Mistral and Anthropic send parts of the types ``thinking`` and ``text``, Inspect AI ``reasoning``.
Marks within a text, such as ``<think>``, are read by :func:`without_thought` only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.responses.forms import JSON
from hallujudge.metrics.responses.leftovers import without_ends
from hallujudge.metrics.responses.thoughts import divided

from ..errors import fault_of
from .failures import CallFailedError, FailureKind, shown_text

THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""The keys of a message that may hold a thought."""
_THOUGHT_PARTS = ("reasoning", "thinking")
# A part whose own key has no readable text may have a summary. Signatures are not texts to read.
_TEXTS_OF_PARTS = ("thinking", "reasoning", "text", "content", "summary")
# A list of parts, each with a list of parts with texts; deeper values are of no known server.
_MOST_LEVELS = 6


# Verdicts and claims may be objects, which their readers know.
_OWN_OBJECTS = frozenset({JSON})
_FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


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
        # Anthropic sends thoughts that it hides as encrypted parts, which hold no text.
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


class TokenChoice(Struct, frozen=True):
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
    # Asked for in this way because NaN fails every comparison.
    if not abs(logprob) <= _MAX_LOGPROB:
        raise ValueError(f"the log-probability {logprob!r:.40}")
    return token, float(logprob)


def _is_possible(entry: Mapping[str, Any]) -> bool:
    """Whether a token was possible; servers may list those that a constraint rules out."""
    return not entry["logprob"] <= _RULED_OUT


# Servers report impossible values now and then; beyond these bounds they are ignored.
_MAX_TOKENS = 1_000_000_000
TIED = "CHOICES_TIED"
"""The reason of an answer for which two choices are exactly equally likely."""


class Stated(NamedTuple):
    """The answer to one question, reported as probabilities without text."""

    choice: str
    """The choice; empty if there is none."""
    probabilities: tuple[float, ...] = ()
    """The probability of each offered choice, in their order; empty if not reported."""
    reason: str = ""
    """The reason if there is no choice, such as ``JUDGE_REFUSED``."""
    detail: str = ""
    """The reason in words."""
    share: float | None = None
    """Probability of all choices together, where nothing else was ruled out; None if unknown."""


class ChatReply(Struct, frozen=True, kw_only=True):
    """A model's reply."""

    content: str
    """The text; empty where the model refused, or was cut off in its thought."""
    thought: str = ""
    """The thought before the text, where the server reports it apart."""
    finish_reason: str = ""
    """Why it ended: ``stop``, ``length``, ``content_filter``."""
    refusal: str = ""
    """The model's words if it refused to answer."""
    tokens: tuple[TokenChoice, ...] = ()
    """The text's tokens, where log-probabilities were reported."""
    logit: str = ""
    """A token whose number is above 0, and so no log-probability; empty if there is none."""
    prompt_tokens: int = 0
    """Tokens sent."""
    cached_tokens: int = 0
    """Those that the server had already."""
    completion_tokens: int = 0
    """Tokens received."""
    thought_tokens: int = 0
    """Those of the received tokens that are a thought, if the server reports them."""
    model: str = ""
    """What the server calls the model."""
    no_room: str = ""
    """Why more room for a thought that was cut off does not help, and what does."""
    stated: tuple[Stated, ...] | None = None
    """The answer to each question, where probabilities were asked for; None for a text."""

    @property
    def is_counted(self) -> bool:
        """Whether the server says how many tokens it took."""
        generated = self.content or self.thought
        return self.prompt_tokens > 0 and (self.completion_tokens > 0 or not generated)

    @property
    def has_thought(self) -> bool:
        """Whether the model thought, also where the server does not show the thought."""
        return bool(self.thought) or self.thought_tokens > 0

    @property
    def is_unfinished_thought(self) -> bool:
        """Whether the model thought, and gave no answer."""
        return self.has_thought and not self.content.strip()

    @property
    def is_cut_off(self) -> bool:
        """Whether it ended at its limit of tokens."""
        return self.finish_reason == "length"


def parse_reply(body: bytes, *, constrained: bool = False) -> ChatReply:
    """Parse a server's reply strictly.

    Args:
        body: The reply.
        constrained: Whether the answer is a choice or follows a schema, which some servers ask a
            model for as the arguments of a tool.

    Raises:
        CallFailedError: It is not a chat completion: truncated, another layout, no choice.
    """
    content = content_of(body, "choices")
    try:
        return _reply_of(content, constrained=constrained)
    except (LookupError, TypeError, ValueError, AttributeError) as err:
        raise CallFailedError(
            FailureKind.BAD_REPLY, f"the reply is not a chat completion: {fault_of(err)}"
        ) from err


def content_of(body: bytes, name: str) -> dict[str, object]:
    """Return the JSON object of a reply. Anything else is not from the API.

    Args:
        body: The reply.
        name: A key that every such reply has.

    Raises:
        CallFailedError: It is not such an object.
    """
    problem = f"is JSON, but has no {name!r}"
    try:
        content = json.loads(body)
        if isinstance(content, dict) and name in content:
            return content
    # Too many open brackets end json.loads with a RecursionError, which is no ValueError.
    except (ValueError, RecursionError):
        problem = "is not JSON" if body else "is empty"
    raise CallFailedError(
        FailureKind.NOT_THE_API,
        f"the reply {problem}: its {len(body)} bytes begin {_beginning(body)!r}",
    )


def _beginning(body: bytes) -> str:
    # More than is shown, since white space shrinks and a key that is cut off isn't recognised as
    # one.
    return shown_text(body[:400].decode("utf-8", "replace"))[:60]


def _reply_of(content: dict[str, object], *, constrained: bool) -> ChatReply:
    choices = content["choices"]
    if not isinstance(choices, list) or not choices:
        raise ValueError("it has no choices")
    choice = choices[0]
    message = choice["message"]
    text, thought = said_in(message)
    if not text and constrained:
        text = tool_arguments(message) or text
    refusal = message.get("refusal") or ""
    # Servers that show no thoughts send nothing of a reply that was cut off in its thought.
    ended_early = choice.get("finish_reason") in ("content_filter", "length")
    thought_tokens = _thought_tokens(content.get("usage"))
    if text is None and not (thought or thought_tokens or refusal or ended_early):
        raise ValueError("it has neither content nor a thought nor a refusal")
    prompt, cached, completion = usage_of(content.get("usage"))
    tokens, logit = read_tokens(choice.get("logprobs"))
    return ChatReply(
        content=text or "",
        thought=thought,
        finish_reason=str(choice.get("finish_reason") or ""),
        refusal=str(refusal),
        tokens=tokens,
        logit=logit,
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        thought_tokens=thought_tokens,
        model=str(content.get("model") or ""),
    )


def usage_of(usage: object) -> tuple[int, int, int]:
    """Return prompt, cached and completion tokens, by the names of chat or of newer endpoints.

    Tokens of a thought are completion tokens, also at servers that count them in the total only.
    """
    if not isinstance(usage, dict):
        return 0, 0, 0
    prompt_name, completion_name = "prompt_tokens", "completion_tokens"
    if prompt_name not in usage:
        prompt_name, completion_name = "input_tokens", "output_tokens"
    details = usage.get(f"{prompt_name}_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    counts = (usage.get(prompt_name), cached, usage.get(completion_name))
    prompt, cached, completion = map(_count_of, counts)
    thought = _thought_tokens(usage)
    if thought and _count_of(usage.get("total_tokens")) == prompt + completion + thought:
        completion += thought
    # Prices subtract one from the other, and a wrong report must not make a cost negative.
    return prompt, min(cached, prompt), completion


def _thought_tokens(usage: object) -> int:
    """The tokens of a thought, where they are reported."""
    for name in ("completion_tokens_details", "output_tokens_details"):
        details = usage.get(name) if isinstance(usage, dict) else None
        if isinstance(details, dict):
            return _count_of(details.get("reasoning_tokens"))
    return 0


def _count_of(value: object) -> int:
    """A number of tokens; 0, which means "not reported", if it is not a number."""
    # In Python true is a number too.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if 0 <= value <= _MAX_TOKENS else 0


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
    """Return a reply whose thought, which a server without a reasoning parser sends, is apart.

    Tokens of templates at the end are dropped, and after a thought also marks of an answer and a
    fence around it. Without one they are no part of a reply: a judge may repeat them from a judged
    text.
    """
    text = without_ends(reply.content)
    if text == reply.content.rstrip():
        # No token was there. White space says why a reply was cut off.
        text = reply.content
    said = divided(text, kept=_OWN_OBJECTS)
    if said.thought or reply.thought:
        text = without_ends(said.answer) if said.finished else ""
        text = fence[1] if (fence := _FENCE.fullmatch(text)) else text
    if text == reply.content:
        return reply
    return replace(reply, content=text, thought=reply.thought or said.thought)


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


def logits_problem(token: str) -> str:
    """Return why a reply's log-probabilities are none, and what to do.

    Args:
        token: A token with a number above 0.
    """
    return (
        f"the log-probability of a token is above 0 ({token}), which none can be: the server sends "
        "logits, as vLLM does with --logprobs-mode raw_logits; start it with --logprobs-mode "
        "raw_logprobs"
    )
