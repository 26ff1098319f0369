"""Chat completions as values: requests, replies, and their JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

from .prompt_templates import Message

Dialect: TypeAlias = Literal["openai", "vllm", "plain"]
"""Whose extensions a server understands: OpenAI's names, vLLM's in addition, or neither."""
ApiName: TypeAlias = Literal["chat", "scoring", "decisions", "classify", "score"]
"""How a choice is asked for: as a written answer, or as probabilities without text; the last two
are those of classifiers."""

# OpenAI's API accepts at most 20 alternatives.
_MAX_TOP = 20

# More than any chat template adds to a message: reservations must not be too small.
_MESSAGE_TOKENS = 16
# Models spend 196 to 784 pixels on a token, and cut small images into up to 13 tiles of 256 tokens.
_PIXELS_PER_TOKEN, _FEWEST_PIXELS_PER_TOKEN = 784, 196
_FEWEST_IMAGE_TOKENS, _MOST_TILE_TOKENS = 256, 3_328
# Gemini spends 25 to 32 tokens on a second of sound, Qwen-Omni 25 and OpenAI's models 10.
_TOKENS_PER_SECOND, _MOST_TOKENS_PER_SECOND = 25, 50


class Sampling(Struct, frozen=True, kw_only=True):
    """Every parameter that decides how a reply is drawn. All are sent.

    vLLM, for example, takes what is not sent from the model folder's ``generation_config.json``.
    """

    temperature: float = 0.0
    """0: always the most likely token."""
    top_p: float = 1.0
    """1: no nucleus."""
    seed: int = 0
    """For servers that draw with a temperature."""
    presence_penalty: float = 0.0
    """0: none."""
    frequency_penalty: float = 0.0
    """0: none."""
    top_k: int = 0
    """0: no limit. Sent to vLLM only, as are the next two."""
    min_p: float = 0.0
    """0: no limit."""
    repetition_penalty: float = 1.0
    """1: none."""
    top_logprobs: int = 8
    """Alternatives reported for each token, for margins; 0 to ask for none."""
    omit: tuple[str, ...] = ()
    """Names of parameters that are left out because the server rejects them."""

    def parameters(self, dialect: Dialect) -> dict[str, object]:
        """Return the parameters as they are sent."""
        values: dict[str, object] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "n": 1,
            "stream": False,
            "logprobs": self.top_logprobs > 0,
        }
        if self.top_logprobs:
            values["top_logprobs"] = min(self.top_logprobs, _MAX_TOP)
        if dialect == "vllm":
            values |= {
                "top_k": self.top_k,
                "min_p": self.min_p,
                "repetition_penalty": self.repetition_penalty,
            }
        return {name: value for name, value in values.items() if name not in self.omit}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatImage:
    """An image that a model is asked about; its bytes are sent as they are."""

    data: bytes = field(repr=False)
    """The encoded image."""
    media_type: str
    """Its type, such as ``image/jpeg``."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""

    @property
    def tokens(self) -> int:
        """About how many tokens it takes: models differ, and servers count them only later."""
        return max(_FEWEST_IMAGE_TOKENS, -(-self.width * self.height // _PIXELS_PER_TOKEN))

    @property
    def most_tokens(self) -> int:
        """How many tokens it takes at most, for reservations."""
        return _MOST_TILE_TOKENS + self.width * self.height // _FEWEST_PIXELS_PER_TOKEN

    def to_part(self) -> dict[str, object]:
        """Return it as a part of a message, with its bytes in a data URL."""
        url = f"data:{self.media_type};base64,{b64encode(self.data).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAudio:
    """A sound that a model is asked about; its bytes are sent as they are."""

    data: bytes = field(repr=False)
    """The encoded sound."""
    format: str
    """``wav`` or ``mp3``, the formats that every server takes."""
    seconds: float
    """Its length, or more where only its size is known."""

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return 1 + round(self.seconds * _TOKENS_PER_SECOND)

    @property
    def most_tokens(self) -> int:
        """How many tokens it takes at most, for reservations."""
        return 1 + round(self.seconds * _MOST_TOKENS_PER_SECOND)

    def to_part(self) -> dict[str, object]:
        """Return it as a part of a message.

        OpenAI, vLLM and Gemini's chat completions take the same part: openai-python,
        ``types/chat/chat_completion_content_part_input_audio_param.py``; vLLM's documentation,
        "Multimodal Inputs", "Audio Inputs"; Google Distributed Cloud's documentation, Gemini,
        "Understand audio".
        """
        sound = {"data": b64encode(self.data).decode(), "format": self.format}
        return {"type": "input_audio", "input_audio": sound}


ChatMedia: TypeAlias = ChatImage | ChatAudio
"""What a model is shown or hears."""


class ChatRequest(Struct, frozen=True, kw_only=True):
    """A request to a chat model."""

    messages: list[Message]
    """The conversation so far."""
    max_tokens: int
    """Tokens generated at most."""
    choices: tuple[str, ...] = ()
    """The answers allowed; empty if the schema constrains the answer."""
    schema: Mapping[str, object] | None = None
    """The JSON schema that the answer follows; None for no constraint but the choices."""
    pattern: str = ""
    """The same schema as a regular expression without white space, for servers that take one."""
    schema_name: str = "answer"
    """What the schema is called."""
    extra: Mapping[str, object] = {}
    """More parameters, for models of a format of their own."""
    affinity: str = ""
    """What it has in common with other requests: equal ones go to one server."""
    images: tuple[ChatMedia, ...] = ()
    """Images, and sounds, that the last message begins with."""
    api: ApiName = "chat"
    """How the choice is asked for; everything but ``chat`` needs choices."""
    parts: tuple[str, ...] = ()
    """What each of several questions adds to the messages; ``chat`` has none."""

    @property
    def is_constrained(self) -> bool:
        """Whether a program reads the answer, which is a choice or follows a schema."""
        return bool(self.choices) or self.schema is not None

    @property
    def prompts(self) -> list[list[Message]]:
        """The prompts that the model reads."""
        if self.api == "scoring":
            return [_lettered(prompt, self.choices) for prompt in self._by_part]
        more: list[Message] = [{"role": "user", "content": part} for part in self.parts]
        return [[*self.messages, *more]]

    @property
    def reads(self) -> int:
        """How often it reads each of them."""
        return len(self.choices) if self.api == "scoring" else 1

    @property
    def _by_part(self) -> list[list[Message]]:
        *before, last = self.messages
        return [
            [*before, {**last, "content": f"{last['content']}\n{part}"}] for part in self.parts
        ] or [self.messages]


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What replaces the choices, in their order, where a choice must be one token."""


def _lettered(messages: Sequence[Message], choices: Sequence[str]) -> list[Message]:
    """Ask for letters at the end of the first message, which prompts of an image share."""
    first, *others = messages
    listed = ", ".join(f"{letter} = {word}" for letter, word in zip(LETTERS, choices, strict=False))
    content = f"{first['content']}\n\nIn place of the word, answer with its letter: {listed}."
    return [{**first, "content": content}, *others]


def payload_of(
    request: ChatRequest, model: str, sampling: Sampling, dialect: Dialect, constraint: str
) -> dict[str, object]:
    """Return the body of a chat completion request.

    Args:
        request: What is asked.
        model: The model's name at the server.
        sampling: How the answer is drawn.
        dialect: Whose extensions the server understands.
        constraint: ``json_schema``, ``structured_outputs`` (vLLM's) or ``none``.
    """
    # OpenAI's newer models refuse max_tokens; most other servers know no other name.
    length = "max_completion_tokens" if dialect == "openai" else "max_tokens"
    body: dict[str, object] = {
        "model": model,
        "messages": _with_images(request) if request.images else request.messages,
        length: request.max_tokens,
        **sampling.parameters(dialect),
        **request.extra,
    }
    if constraint == "none" or (request.schema is None and not request.choices):
        return body
    if constraint == "structured_outputs":
        body["structured_outputs"] = _structured(request)
    elif request.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": request.schema_name,
                # Without it OpenAI takes the schema as a wish and may leave out keys.
                "strict": True,
                "schema": dict(request.schema),
            },
        }
    return body


def _with_images(request: ChatRequest) -> list[object]:
    *before, last = request.messages
    text = {"type": "text", "text": last["content"]}
    parts = [*(image.to_part() for image in request.images), text]
    return [*before, {"role": last["role"], "content": parts}]


def _structured(request: ChatRequest) -> dict[str, object]:
    """Constraints in vLLM's own parameters, which allow no white space.

    A schema alone lets a model write line breaks between two keys until its tokens are used up;
    small models do so.
    """
    if request.choices:
        return {"choice": list(request.choices)}
    if request.pattern:
        return {"regex": request.pattern}
    return {"json": dict(request.schema or {}), "disable_any_whitespace": True}


def most_prompt_tokens(request: ChatRequest) -> int:
    """Return how many tokens a prompt has at most.

    No tokenizer makes more tokens than bytes; a chat template adds a few to each message.
    """
    texts = [message["content"] for prompt in request.prompts for message in prompt]
    if request.schema is not None:
        texts.append(json.dumps(request.schema))
    shown = sum(image.most_tokens for image in request.images)
    read = sum(len(text.encode("utf-8", "replace")) + _MESSAGE_TOKENS for text in texts)
    return shown + read * request.reads
