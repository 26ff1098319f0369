"""Judges: claims in, verdicts out, by language models behind an address, in an order of preference.

Importing this package imports no client library and opens nothing; a judge does on first use.
"""

from ._budget import Budget, Prices
from ._chat import Sampling
from ._client import CallStatistics, ChatClient, ChatSettings
from ._http import Endpoint
from ._retry import RetryPolicy
from ._secret import Secret
from ._templates import Template, load_template, template_names
from .cache import VerdictCache
from .doctor import Check, check_endpoint
from .estimate import (
    Estimate,
    PlannedCall,
    TokenCounter,
    approximate_counter,
    counter_of,
    estimate,
    estimate_calls,
    file_counter,
)
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
from .vllm import VllmServer, VllmSettings

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
