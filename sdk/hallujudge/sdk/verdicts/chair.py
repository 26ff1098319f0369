"""Verdicts of a CHAIR run: one for each mention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .values import DecidedClaim

__all__ = ["claims_of"]


def claims_of(evidence: Mapping[str, Any], settings: Mapping[str, str]) -> Iterator[DecidedClaim]:
    """Yield the mentions of a caption.

    Args:
        evidence: The item's evidence.
        settings: Settings of the run; with ``count: objects``, mentions of one object share its
            weight.
    """
    wrong = {tuple(span) for span in evidence["hallucinated_spans"]}
    pairs = evidence["mentioned"]
    times = Counter(name for _, name in pairs)
    once = settings.get("count") == "objects"
    spans = evidence["mentioned_spans"]
    for index, ((word, name), span) in enumerate(zip(pairs, spans, strict=True)):
        start, end = span
        yield DecidedClaim(
            index=index,
            text=word if word == name else f"{word} → {name}",
            hallucinated=(start, end) in wrong,
            span=(int(start), int(end)),
            weight=1 / times[name] if once else 1.0,
        )
