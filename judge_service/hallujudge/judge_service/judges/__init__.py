"""Judges: claims in, verdicts out, by language models behind an address, in an order of preference.

Importing this package imports no client library and opens nothing; a judge does on first use.
"""

from ..llm.budget import Budget, Prices
from ..llm.cache import VerdictCache
from ..llm.chat import Sampling
from ..llm.client import CallStatistics, ChatClient, ChatSettings
from ..llm.estimate import (
    Estimate,
    PlannedCall,
    TokenCounter,
    approximate_counter,
    counter_of,
    estimate,
    estimate_calls,
    file_counter,
)
from ..llm.http import Endpoint
from ..llm.retry import RetryPolicy
from ..llm.secret import Secret
from ..llm.templates import Template, load_template, template_names
from ..llm.vllm import VllmServer, VllmSettings
from .doctor import Check, check_endpoint
from .llm import LlmJudge
from .router import Router
from .values import (
    Asked,
    Declined,
    Judge,
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    Recalled,
    RecallingJudge,
    Usage,
    unscored_claim,
)

__all__ = [
    "Asked",
    "Budget",
    "CallStatistics",
    "ChatClient",
    "ChatSettings",
    "Check",
    "Declined",
    "Endpoint",
    "Estimate",
    "Judge",
    "JudgeIdentity",
    "JudgeRequestItem",
    "JudgedItem",
    "LlmJudge",
    "PlannedCall",
    "Prices",
    "Recalled",
    "RecallingJudge",
    "RetryPolicy",
    "Router",
    "Sampling",
    "Secret",
    "Template",
    "TokenCounter",
    "Usage",
    "VerdictCache",
    "VllmServer",
    "VllmSettings",
    "approximate_counter",
    "check_endpoint",
    "counter_of",
    "estimate",
    "estimate_calls",
    "file_counter",
    "load_template",
    "template_names",
    "unscored_claim",
]
