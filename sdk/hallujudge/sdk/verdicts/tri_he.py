"""Verdicts of a Tri-HE run: one for each claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hallujudge.metrics.framework.claims import certainty, stated_probability
from hallujudge.metrics.framework.metric import SOFT, YES

from .values import DecidedClaim

__all__ = ["claims_of"]

_VERDICTS = {"supported": False, "not_supported": True, "unscored": None}


def claims_of(
    evidence: Mapping[str, Any],
    settings: Mapping[str, str],
) -> Iterator[DecidedClaim]:
    """Yield the claims of an answer."""
    soft = settings.get(SOFT) == YES
    for index, claim in enumerate(evidence["claims"]):
        span, margin = claim.get("span"), claim.get("margin")
        verdict = _VERDICTS[claim["verdict"]]
        supported = stated_probability(claim["judge"], claim["score"]) if soft else None
        yield DecidedClaim(
            index=index,
            text=" · ".join(claim["triplet"]),
            hallucinated=verdict,
            probability=None if supported is None or verdict is None else 1.0 - supported,
            margin=None if margin is None else certainty(float(margin), claim["judge"]),
            span=(int(span[0]), int(span[1])) if span else None,
        )
