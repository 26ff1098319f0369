"""How often a judge contradicts itself: the same claims are judged again in other ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hallujudge.metrics.framework.claims import Verdict

from .llm import LlmJudge
from .prompts import WORDINGS
from .values import JudgeRequestItem

__all__ = ["Retrial", "retry_claims"]

_MANY = (5, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrial:
    """Verdicts on the same claims, judged in another way."""

    change: str
    """What differs, such as ``repetition``."""
    compared_with: str
    """What it is compared with, such as ``one claim a call``."""
    claims: int
    """Claims with a verdict in both."""
    flips: int
    """Those of them with opposite verdicts."""
    unanswered: int
    """Claims without a verdict in either."""


async def retry_claims(judge: LlmJudge, items: Sequence[JudgeRequestItem]) -> list[Retrial]:
    """Return how verdicts change on repetition, on rewording, with more claims a call, by order.

    Each way asks about every claim; replies of other ways and of the verdict cache are not used.
    Verdicts flip between supported and not supported; another wrong part is no flip.

    Args:
        judge: The judge.
        items: Claims and references, one item for each image.

    Raises:
        InvalidInputError: The key is rejected, or there is no such model.
        UnavailableError: The judge answered no call for a long time.
    """
    alone = "one claim a call"
    first = await _judged(judge.anew(), items)
    ways = {"repetition": judge.anew()}
    ways |= {f"rewording {n}": judge.anew(wording=w) for n, w in enumerate(WORDINGS, start=1)}
    ways |= {f"{size} claims a call": judge.anew(claims_per_call=size) for size in _MANY}
    found, together = [], first
    for change, way in ways.items():
        together = await _judged(way, items)
        found.append(_compared(change, alone, first, together))
    turned = [replace(item, claims=item.claims[::-1]) for item in items]
    back = [v[::-1] for v in await _judged(judge.anew(claims_per_call=_MANY[-1]), turned)]
    found.append(_compared("reversed order", f"{_MANY[-1]} claims a call", together, back))
    return found


async def _judged(judge: LlmJudge, items: Sequence[JudgeRequestItem]) -> list[list[Verdict]]:
    return [[claim.verdict for claim in one.verdicts] for one in await judge.judge(items)]


def _compared(
    change: str, base: str, one: Sequence[Sequence[Verdict]], other: Sequence[Sequence[Verdict]]
) -> Retrial:
    pairs = [
        pair
        for mine, theirs in zip(one, other, strict=True)
        for pair in zip(mine, theirs, strict=True)
    ]
    both = [pair for pair in pairs if Verdict.UNSCORED not in pair]
    return Retrial(
        change=change,
        compared_with=base,
        claims=len(both),
        flips=sum(mine is not theirs for mine, theirs in both),
        unanswered=len(pairs) - len(both),
    )
