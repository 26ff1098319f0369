"""Judges: claims in, verdicts out.

Importing this package imports no client library and opens no connection.
"""

from .choice_judge import ChoiceJudge, Chosen
from .judge_checks import Check, check_endpoint, check_small
from .judge_interface import (
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
from .llm_judge import LlmJudge
from .router import Router

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
    "unscored_claim",
]
