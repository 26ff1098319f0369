"""What calls would cost, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from importlib import import_module
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..errors import InvalidInputError, MissingExtraError
from .budget import Prices
from .chat import ChatRequest
from .client import ChatClient
from .failures import CallFailedError
from .prompt_templates import Message

# Rough averages for English text and common chat templates; estimates are labelled as such.
_BYTES_PER_TOKEN = 4
_MESSAGE_TOKENS = 8


class TokenCounter(Struct, frozen=True, kw_only=True):
    """Counts a prompt's tokens."""

    count: Callable[[list[Message]], Awaitable[int]]
    """Counts one prompt."""
    exact: bool
    """Whether it is the model's own tokenizer and chat template."""
    label: str
    """How it counts, in words."""


class PlannedCall(Struct, frozen=True, kw_only=True):
    """A call that a run would make."""

    key: str
    """Its cache key: equal calls have equal keys."""
    cached: bool
    """Whether the cache answers it."""
    request: ChatRequest
    """What would be sent."""
    measures: bool = False
    """Whether it measures the share of the choices, if the judge has margins at all."""


class Estimate(Struct, frozen=True, kw_only=True):
    """The calls of one judge or extractor, if it were asked about everything."""

    judge: str
    """Its name."""
    calls: int
    """Calls that would be sent."""
    cached: int
    """Calls that the cache answers."""
    repeated: int
    """Calls equal to another one of the run; such calls are sent once."""
    prompt_tokens: int
    """Tokens that would be sent."""
    most_completion_tokens: int
    """Tokens that could be generated at most; a choice mostly takes two or three."""
    cost_at_most: float | None
    """Price of both; None without prices."""
    exact: bool
    """Whether prompts were counted by the model's own tokenizer."""
    counter: str
    """How they were counted."""
    unknown_texts: int = 0
    """Texts whose claims are not known yet; calls about them are not counted."""
    measuring: Estimate | None = None
    """The calls for one token each that measure the share of the choices, if there may be any; they
    are made where the server reports log-probabilities, and are not in the other figures."""


async def estimate_calls(
    name: str,
    client: ChatClient,
    calls: AsyncIterable[PlannedCall] | Iterable[PlannedCall],
    counter: TokenCounter | None = None,
    prices: Prices | None = None,
) -> Estimate:
    """Count calls that would be made.

    Args:
        name: The judge's or extractor's name.
        client: The client that would make them.
        calls: The calls.
        counter: Counts prompts.
        prices: What tokens cost.
    """
    prices = prices or client.budget.prices
    counter = counter or await counter_of(client)
    verdicts, measuring = _Sums(), _Sums()
    async for call in _each(calls):
        most = client.limited(call.request).max_tokens
        await (measuring if call.measures else verdicts).add(call, counter, most)
    found = verdicts.estimate(name, counter, prices)
    if not measuring.seen:
        return found
    return replace(found, measuring=measuring.estimate(name, counter, prices))


class _Sums(Struct):
    """Sums over calls."""

    seen: set[str] = set()
    cached: int = 0
    repeated: int = 0
    tokens: int = 0
    completion: int = 0

    async def add(self, call: PlannedCall, counter: TokenCounter, most_completion: int) -> None:
        if call.cached:
            self.cached += 1
        # Equal calls of a run are sent once, and share the reply.
        elif call.key in self.seen:
            self.repeated += 1
        else:
            self.seen.add(call.key)
            counts = [await counter.count(prompt) for prompt in call.request.prompts]
            self.tokens += sum(counts) * call.request.reads
            self.tokens += sum(image.tokens for image in call.request.images)
            self.completion += most_completion

    def estimate(self, name: str, counter: TokenCounter, prices: Prices | None) -> Estimate:
        cost = prices.cost(self.tokens, self.completion) if prices else None
        return Estimate(
            judge=name,
            calls=len(self.seen),
            cached=self.cached,
            repeated=self.repeated,
            prompt_tokens=self.tokens,
            most_completion_tokens=self.completion,
            cost_at_most=cost,
            exact=counter.exact,
            counter=counter.label,
        )


async def _each(
    calls: AsyncIterable[PlannedCall] | Iterable[PlannedCall],
) -> AsyncIterator[PlannedCall]:
    if isinstance(calls, AsyncIterable):
        async for call in calls:
            yield call
    else:
        for call in calls:
            yield call


def approximate_counter() -> TokenCounter:
    """Return a counter of four bytes per token: close for English, far off for other scripts."""

    async def count(messages: list[Message]) -> int:
        size = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
        return -(-size // _BYTES_PER_TOKEN) + _MESSAGE_TOKENS * len(messages)

    return TokenCounter(count=count, exact=False, label="approximation: four bytes a token")


def file_counter(path: str | Path) -> TokenCounter:
    """Return a counter by a ``tokenizer.json``; the chat template is approximated.

    Raises:
        MissingExtraError: The tokenizers package is not installed.
        InvalidInputError: The file cannot be read.
    """
    with MissingExtraError.unless_installed("counting tokens by a tokenizer file", "matcher-onnx"):
        tokenizers = import_module("tokenizers")
    file = Path(path)
    file = file / "tokenizer.json" if file.is_dir() else file
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as err:  # the library raises bare exceptions
        raise InvalidInputError(
            f"tokenizer {str(file)!r} cannot be read: {err}; give the model's tokenizer.json"
        ) from err

    async def count(messages: list[Message]) -> int:
        encoded = tokenizer.encode_batch([message["content"] for message in messages])
        return sum(len(entry.ids) for entry in encoded) + _MESSAGE_TOKENS * len(messages)

    return TokenCounter(
        count=count, exact=False, label=f"{file}, {_MESSAGE_TOKENS} more for each message"
    )


async def counter_of(client: ChatClient) -> TokenCounter:
    """Return the best counter for a model's prompts: tokenizer file, server, or approximation.

    Raises:
        MissingExtraError: A file is named, and the tokenizers package is not installed.
        InvalidInputError: The file cannot be read.
    """
    if client.settings.tokenizer:
        return file_counter(client.settings.tokenizer)
    return await _server_counter(client) or approximate_counter()


async def _server_counter(client: ChatClient) -> TokenCounter | None:
    """The counter of a vLLM server, chat template included; None if it has none."""

    async def count(messages: list[Message]) -> int:
        body = {"model": client.settings.model, "messages": messages}
        return int(json.loads(await client.servers[0].sender.post("/tokenize", body))["count"])

    if client.settings.dialect != "vllm":
        return None
    try:
        await count([{"role": "user", "content": "hello"}])
    # A proxy may let only /v1 pass; the approximation then serves.
    except (CallFailedError, ValueError, KeyError, TypeError):
        return None
    return TokenCounter(count=count, exact=True, label="the server's own tokenizer")
