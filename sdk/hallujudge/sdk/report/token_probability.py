"""The probability of an answer by a language model's tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator

__all__ = ["percent_of", "token_probability"]

# Closer to none or all than this, digits would say more than the model's numbers do.
_LEAST = 0.001


def token_probability(
    answer: str, margin: float | None, *, given: bool, answers: int
) -> Iterator[tuple[str, str]]:
    """Yield the reason that tells how probable an answer is, if the margin is known.

    The margin is the log-probability of the given answer minus that of the runner-up, so that the
    two share a probability of 1. An answer that was not given is the runner-up if there are only
    two answers; among more it is at most as probable as the runner-up.

    Args:
        answer: The answer whose probability is wanted, such as ``supported``.
        margin: The margin of the answer that the model gave; None if it reported none.
        given: Whether the model gave this answer.
        answers: How many answers it could give.
    """
    if margin is None:
        return
    share = _logistic(margin if given else -margin)
    bound = "at most " if not given and answers > 2 and share >= _LEAST else ""
    yield "token probability", f"{answer}: {bound}{percent_of(share)}"


def _logistic(value: float) -> float:
    small = math.exp(-abs(value))
    return (1.0 if value >= 0 else small) / (1.0 + small)


def percent_of(share: float) -> str:
    """Return a probability in percent, with no more digits than it is worth."""
    if share < _LEAST:
        return "under 0.1 %"
    if share > 1 - _LEAST:
        return "over 99.9 %"
    return f"{100 * share:.1f} %"
