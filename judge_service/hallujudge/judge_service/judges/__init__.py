"""Judges: claims in, verdicts out.

Importing this package imports no client library and opens no connection.
"""

from .choices import ChoiceJudge, Chosen
from .doctor import Check, check_endpoint, check_small
from .estimate import estimate
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
    unscored_claim,
)

__all__ = [
    "Asked",
    "Check",
    "ChoiceJudge",
    "Chosen",
    "Declined",
    "Judge",
    "JudgeIdentity",
    "JudgeRequestItem",
    "JudgedItem",
    "LlmJudge",
    "Recalled",
    "RecallingJudge",
    "Router",
    "check_endpoint",
    "check_small",
    "estimate",
    "unscored_claim",
]
