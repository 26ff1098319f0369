"""How a chat model is called, and what its servers say of themselves.

A judge's servers are vLLM or not, have a version, and refuse some requests. vLLM names itself as
the owner in its list of models, also through proxies that forward ``/v1`` alone, and gives its
version at ``/version``. Others have another owner (``llamacpp``, ``openai`` at LiteLLM) or none,
and no such route. Neither request costs anything. Only a reply shows whether a server takes a
constraint, so others than vLLM are asked a short question with it.

"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .budget import CONSTRAINT, DIALECT, SERVER_VERSION, VerdictStore
from .call_policy import RetryPolicy
from .chat import ApiName, Dialect, Sampling
from .chat_servers import BatchFiles, ChatServer
from .failures import CallFailedError, FailureKind
from .http import Endpoint
from .protocols import Exchanges


class ChatSettings(Struct, frozen=True, kw_only=True):
    """How a chat model is called."""

    endpoint: Endpoint
    """Where it is."""
    replicas: tuple[Endpoint, ...] = ()
    """Further servers of the same model. Prompts of one image go to one of all servers."""
    model: str
    """Its name there."""
    reply_models: tuple[str, ...] = ()
    """Names that replies may carry instead of ``model``; ``*`` accepts any."""
    dialect: Dialect = "plain"
    """Whose extensions the server understands."""
    is_dialect_guessed: bool = False
    """Whether the dialect is a guess, until the servers tell whether they are vLLM."""
    api: ApiName = "chat"
    """How choices are asked for."""
    constraint: str = "auto"
    """``json_schema``, ``structured_outputs`` (vLLM's), ``none``, or ``auto`` by the dialect."""
    is_constraint_guessed: bool = False
    """Whether ``auto`` is a guess, until the servers take a constraint or refuse it."""
    sampling: Sampling = Sampling()
    """How replies are drawn."""
    retry: RetryPolicy = RetryPolicy()
    """When failed calls are made again."""
    max_tokens: int = 0
    """Limit of tokens of answers that a program reads; 0 for that of the question, with room for
    a thought where the model thinks."""
    max_concurrency: int = 64
    """Calls at the same time at most, for each server."""
    circuit_threshold: int = 8
    """Failures in a row after which the model is not called for a while."""
    circuit_seconds: float = 15.0
    """How long it is not called at most."""
    offline: BatchFiles | None = None
    """Files of requests and replies to use instead of the server, if any."""
    role: str = "judge"
    """What messages call it."""
    tokenizer: str = ""
    """File of its tokenizer, for counting prompts; empty to let the server count, if it can."""

    @property
    def has_guesses(self) -> bool:
        """Whether the servers may tell something in place of a guess."""
        return self.is_dialect_guessed or self.is_constraint_guessed

    @property
    def sent_constraint(self) -> str:
        """The constraint with ``auto`` resolved."""
        if self.constraint != "auto":
            return self.constraint
        return "structured_outputs" if self.dialect == "vllm" else "json_schema"

    def exchanges(self) -> Exchanges:
        """Return how requests are sent with these settings."""
        return Exchanges(self.model, self.sampling, self.dialect, self.sent_constraint)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All servers of the model."""
        return (self.endpoint, *self.replicas)

    @property
    def all_concurrency(self) -> int:
        """Calls at the same time at most, for all servers."""
        return self.max_concurrency * len(self.endpoints)


_LOG = logging.getLogger(__name__)
_VLLM = "vllm"
# The server answered, and has no such route.
_NO_SUCH_ROUTE = frozenset(
    {FailureKind.MODEL, FailureKind.NOT_THE_API, FailureKind.REFUSED_REQUEST}
)


async def dialect_at(
    servers: Sequence[ChatServer], model: str, store: VerdictStore | None
) -> Dialect | None:
    """Return the dialect of a judge's servers; None while that is not known.

    Where none of them answers, it is what an earlier process found.

    Args:
        servers: All servers of the judge.
        model: Its model.
        store: Keeps what was found, if anything does.
    """
    found = set(await asyncio.gather(*map(_is_vllm, servers))) - {None}
    # Equal servers are meant; vLLM's parameters would be refused by the others.
    dialect: Dialect | None = None if not found else "plain" if False in found else "vllm"
    url = servers[0].endpoint.url
    if store is None:
        return dialect
    if dialect is not None:
        await store.keep_fact(url, model, DIALECT, dialect)
        return dialect
    known = await store.fact_of(url, model, DIALECT)
    return "vllm" if known == "vllm" else "plain" if known == "plain" else None


async def settled(
    settings: ChatSettings,
    servers: Sequence[ChatServer],
    store: VerdictStore | None,
    refusal: Callable[[ChatSettings], Awaitable[CallFailedError | None]] | None,
) -> ChatSettings:
    """Return a judge's settings, with what is known of its servers in place of guesses.

    Args:
        settings: The settings.
        servers: All servers of the judge.
        store: Keeps what was found, if anything does.
        refusal: Asks a question with settings, and returns why it is not answered; None to ask
            nothing.
    """
    if settings.is_dialect_guessed:
        dialect = await dialect_at(servers, settings.model, store)
        if dialect is None:
            return settings
        settings = replace(settings, dialect=dialect, is_dialect_guessed=False)
    if not settings.is_constraint_guessed:
        return settings
    constraint = settings.sent_constraint
    # vLLM has its own constraint, and only chat completions have one.
    if settings.constraint == "auto" and settings.dialect != "vllm" and settings.api == "chat":
        url = settings.endpoint.url
        known = await store.fact_of(url, settings.model, CONSTRAINT) if store else None
        found = known or (await _constraint_taken(settings, refusal) if refusal else None)
        if found is None:
            return settings
        if store and not known:
            await store.keep_fact(url, settings.model, CONSTRAINT, found)
        constraint = found
    return replace(settings, constraint=constraint, is_constraint_guessed=False)


async def _constraint_taken(
    settings: ChatSettings,
    refusal: Callable[[ChatSettings], Awaitable[CallFailedError | None]],
) -> str | None:
    """Return the constraint that a server takes; None if it answers neither with nor without."""
    refused = await refusal(settings)
    # A reply that can't be read was written under the constraint.
    if refused is None or refused.kind is FailureKind.BAD_REPLY:
        return settings.sent_constraint
    if refused.kind is not FailureKind.REFUSED_REQUEST:
        return None
    if await refusal(replace(settings, constraint="none")) is not None:
        return None
    _LOG.warning(
        "%s %s at %s refuses the constraint %s and is called without one: %s",
        *(settings.role, settings.model, settings.endpoint.place, settings.sent_constraint),
        refused.detail,
    )
    return "none"


async def versions_at(servers: Sequence[ChatServer], model: str, store: VerdictStore | None) -> str:
    """Return the version of vLLM servers, or what an earlier process found while they are away.

    Equal servers have one version; replies do not say which of several answered.

    Args:
        servers: All servers of the judge.
        model: Its model.
        store: Keeps what was found, if anything does.
    """
    found = await asyncio.gather(*(_version_at(server, model, store) for server in servers))
    return "+".join(sorted(set(filter(None, found))))


async def _is_vllm(server: ChatServer) -> bool | None:
    """Whether a server is vLLM; None if it does not say."""
    try:
        owners = _owners_in(await server.sender.get("models"))
    except CallFailedError as failure:
        # A list that needs the right key says nothing; the version may.
        if failure.kind not in _NO_SUCH_ROUTE | {FailureKind.AUTH, FailureKind.REFUSED}:
            return None
        owners = set()
    if owners:
        return _VLLM in owners
    try:
        return bool(_version_in(await server.sender.get("/version")))
    except CallFailedError as failure:
        return False if failure.kind in _NO_SUCH_ROUTE else None


async def _version_at(server: ChatServer, model: str, store: VerdictStore | None) -> str:
    url = server.endpoint.url
    try:
        version = _version_in(await server.sender.get("/version"))
    except CallFailedError:
        # Not fatal: a call, if one is needed, will report what is wrong.
        known = await store.fact_of(url, model, SERVER_VERSION) if store is not None else None
        return known or ""
    if store is not None and version:
        await store.keep_fact(url, model, SERVER_VERSION, version)
    return version


def _version_in(body: bytes) -> str:
    version = _value_in(body, "version")
    return f"vllm {version}" if isinstance(version, str) else ""


def _owners_in(body: bytes) -> set[str]:
    models = _value_in(body, "data")
    owners = (model.get("owned_by") for model in models or () if isinstance(model, dict))
    return {owner for owner in owners if isinstance(owner, str)}


def _value_in(body: bytes, key: str) -> Any:
    try:
        return json.loads(body)[key]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
