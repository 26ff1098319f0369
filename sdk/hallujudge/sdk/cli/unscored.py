"""Summary of the reasons for unscored items and claims."""

from __future__ import annotations

from hallujudge.metrics.framework.reasons import UnscoredReason

from ..runs.parts import ReasonCounts, UnscoredCounts

__all__ = ["unscored_notes"]

_SHOWN_REASONS = 5


def unscored_notes(counts: UnscoredCounts) -> tuple[str, ...]:
    """Return one sentence for each reason of a run, the most frequent first."""
    return (
        *_lines(counts.items, "items", "unscored"),
        *_lines(counts.claims, "claims", "without a verdict"),
    )


def _lines(reasons: ReasonCounts, what: str, failed: str) -> list[str]:
    return [
        f"{count:,} {what if count > 1 else what[:-1]} {failed}: "
        f"{_told(reason, *reasons.examples[reason])}"
        for reason, count in reasons.counts.most_common(_SHOWN_REASONS)
    ]


def _told(reason: str, item_id: str, detail: str) -> str:
    """Return a reason's sentence, an example and the next step."""
    known = UnscoredReason.__members__.get(reason)
    example = f"Example: item {item_id}: {detail}".rstrip(": ").rstrip(".")
    if known is None:
        return f"{reason}. {example}."
    return f"{reason}. {known.sentence} {example}. Next step: {known.next_step}"
