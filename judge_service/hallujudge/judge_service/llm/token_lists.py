"""The lists of tokens in chat completions: log-probabilities as servers really report them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Beyond this bound, values are impossible, and lists that have one are ignored.
_MAX_LOGPROB = 1e6
# vLLM writes this for what the grammar of a constraint rules out, as JSON has no minus infinity.
_RULED_OUT = -9_999.0
# Servers round; a logit is far above.
_ROUNDING = 1e-3
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class TokenChoice:
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
    if not abs(logprob) <= _MAX_LOGPROB:
        raise ValueError(f"the log-probability {logprob!r:.40}")
    return token, float(logprob)


def _is_possible(entry: Mapping[str, Any]) -> bool:
    """Whether a token was possible; servers may list those that a constraint rules out."""
    return not entry["logprob"] <= _RULED_OUT
