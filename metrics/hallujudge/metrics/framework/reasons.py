"""Reasons why an item or a claim is unscored: one name and one sentence each."""

from __future__ import annotations

import enum
import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple


class ReasonWords(NamedTuple):
    """What messages say about a reason."""

    sentence: str
    """What happened."""
    next_step: str
    """What to do about it."""


class UnscoredReason(enum.StrEnum):
    """Why an item or a claim is unscored.

    The value is the name that results, reports and the wire carry. ``reasons.toml`` has the words,
    which only messages for people need.
    """

    # Responses ------------------------------------------------------------------------------------
    RESPONSE_MISSING = "RESPONSE_MISSING"
    RESPONSE_EMPTY = "RESPONSE_EMPTY"
    RESPONSE_FAILED = "RESPONSE_FAILED"
    RESPONSE_TOO_LONG = "RESPONSE_TOO_LONG"
    LANGUAGE_UNSUPPORTED = "LANGUAGE_UNSUPPORTED"
    # References -----------------------------------------------------------------------------------
    REFERENCE_MISSING = "REFERENCE_MISSING"
    REFERENCE_TOO_LONG = "REFERENCE_TOO_LONG"
    LABEL_INVALID = "LABEL_INVALID"
    PLACE_INVALID = "PLACE_INVALID"
    DISPLAY_MISSING = "DISPLAY_MISSING"
    DISPLAY_INVALID = "DISPLAY_INVALID"
    DOMAIN_UNKNOWN = "DOMAIN_UNKNOWN"
    # Questions under operators --------------------------------------------------------------------
    OPERATOR_UNKNOWN = "OPERATOR_UNKNOWN"
    BASE_MISSING = "BASE_MISSING"
    BASE_UNPARSED = "BASE_UNPARSED"
    CONFIDENCE_INVALID = "CONFIDENCE_INVALID"
    ANSWER_UNPARSED = "ANSWER_UNPARSED"
    # Claims and keywords --------------------------------------------------------------------------
    CLAIMS_MISSING = "CLAIMS_MISSING"
    CLAIMS_INVALID = "CLAIMS_INVALID"
    CLAIM_EMPTY = "CLAIM_EMPTY"
    CLAIM_TOO_LONG = "CLAIM_TOO_LONG"
    NO_CLAIMS = "NO_CLAIMS"
    NO_VERDICTS = "NO_VERDICTS"
    TOO_MANY_HEADINGS = "TOO_MANY_HEADINGS"
    COST_UNDEFINED = "COST_UNDEFINED"
    KEYWORDS_MISSING = "KEYWORDS_MISSING"
    KEYWORD_TOO_LONG = "KEYWORD_TOO_LONG"
    TOO_MANY_KEYWORDS = "TOO_MANY_KEYWORDS"
    EXTRACTION_FAILED = "EXTRACTION_FAILED"
    PROCESS_DIED = "PROCESS_DIED"
    # Verdicts -------------------------------------------------------------------------------------
    VERDICT_NULL = "VERDICT_NULL"
    NO_VERDICT = "NO_VERDICT"
    JUDGE_REFUSED = "JUDGE_REFUSED"
    REPLY_NOT_JSON = "REPLY_NOT_JSON"
    REPLY_WRONG_SCHEMA = "REPLY_WRONG_SCHEMA"
    REPLY_OUT_OF_CHOICE = "REPLY_OUT_OF_CHOICE"
    REPLY_TRUNCATED = "REPLY_TRUNCATED"
    MARGIN_TOO_SMALL = "MARGIN_TOO_SMALL"
    PANEL_TIED = "PANEL_TIED"
    # Judges ---------------------------------------------------------------------------------------
    JUDGE_AUTH_FAILED = "JUDGE_AUTH_FAILED"
    JUDGE_MODEL_UNKNOWN = "JUDGE_MODEL_UNKNOWN"
    JUDGE_QUOTA_EXHAUSTED = "JUDGE_QUOTA_EXHAUSTED"
    JUDGE_RATE_LIMITED = "JUDGE_RATE_LIMITED"
    JUDGE_SERVER_ERROR = "JUDGE_SERVER_ERROR"
    JUDGE_UNREACHABLE = "JUDGE_UNREACHABLE"
    JUDGE_TIMEOUT = "JUDGE_TIMEOUT"
    JUDGE_NOT_THE_API = "JUDGE_NOT_THE_API"
    JUDGE_BAD_REPLY = "JUDGE_BAD_REPLY"
    PROMPT_TOO_LONG = "PROMPT_TOO_LONG"
    JUDGE_REQUEST_REFUSED = "JUDGE_REQUEST_REFUSED"
    JUDGE_CIRCUIT_OPEN = "JUDGE_CIRCUIT_OPEN"
    JUDGE_OTHER_MODEL = "JUDGE_OTHER_MODEL"
    JUDGE_NO_REPLY = "JUDGE_NO_REPLY"
    JUDGE_BUDGET_EXHAUSTED = "JUDGE_BUDGET_EXHAUSTED"

    @property
    def sentence(self) -> str:
        """What happened."""
        return _words()[self].sentence

    @property
    def next_step(self) -> str:
        """What to do about it."""
        return _words()[self].next_step


@cache
def _words() -> dict[str, ReasonWords]:
    text = resources.files(__package__).joinpath("reasons.toml").read_text("utf-8")
    return {name: ReasonWords(**words) for name, words in tomllib.loads(text).items()}
