"""How a chat model is called."""

from __future__ import annotations

from dataclasses import dataclass, field

from .call_policy import RetryPolicy
from .chat import ApiName, Dialect, Sampling
from .chat_servers import BatchFiles
from .http import Endpoint
from .protocols import Exchanges


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
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
    sampling: Sampling = field(default_factory=Sampling)
    """How replies are drawn."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
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
