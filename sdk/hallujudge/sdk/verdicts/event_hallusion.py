"""Verdicts of an EventHallusion run: one for each judged description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hallujudge.metrics.framework.metric import SOFT, YES

from .values import DecidedClaim

__all__ = ["claims_of"]


def claims_of(
    evidence: Mapping[str, Any],
    settings: Mapping[str, str],
) -> Iterator[DecidedClaim]:
    """Yield the description of a video, which the HTML page shows after its questions."""
    correct = evidence["description_correct"]
    if correct is not None:
        margin = evidence.get("margin")
        right = evidence.get("probability") if settings.get(SOFT) == YES else None
        yield DecidedClaim(
            index=len(evidence["answers"]),
            text="description",
            hallucinated=not correct,
            probability=None if right is None else 1.0 - float(right),
            margin=None if margin is None else float(margin),
        )
