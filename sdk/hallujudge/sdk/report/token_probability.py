"""The probability of an answer by a language model's tokens."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["percent_of", "token_probability"]

# Closer to none or all than this, digits would say more than the model's numbers do.
_LEAST = 0.001


def token_probability(answer: str, share: float | None) -> Iterator[tuple[str, str]]:
    """Yield the reason that tells how probable an answer is, if that is known.

    Args:
        answer: The answer, such as ``right``.
        share: Its probability; None if the judge reported none.
    """
    if share is not None:
        yield "token probability", f"{answer}: {percent_of(share)}"


def percent_of(share: float) -> str:
    """Return a probability in percent, with no more digits than it is worth."""
    if share < _LEAST:
        return "under 0.1 %"
    if share > 1 - _LEAST:
        return "over 99.9 %"
    return f"{100 * share:.1f} %"
