"""How often the judge of a run contradicts itself, by judging a part of its claims again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallujudge.metrics.calibration.judge_accuracy import jeffreys_interval
from hallujudge.metrics.framework.claims import ClaimParts, Sentence, Triplet
from hallujudge.metrics.framework.signature import judge_of

from ..errors import InvalidInputError
from ..runs.stored_runs import StoredRun

if TYPE_CHECKING:
    from hallujudge.judge_service.judges import JudgeRequestItem, LlmJudge
    from hallujudge.judge_service.judges.judge_checks import Retrial

__all__ = ["Flips", "measure_flips"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """How often verdicts flip if claims are judged in another way."""

    change: str
    """What differs: ``repetition``, ``rewording 1``, ``5 claims a call``, ``reversed order``."""
    compared_with: str
    """What it is compared with."""
    claims: int
    """Claims with a verdict in both."""
    flips: int
    """Those of them with opposite verdicts."""
    unanswered: int
    """Claims without a verdict in either."""
    share: float | None
    """Share of verdicts that flip; None without any."""
    ci_low: float | None
    """Lower end of its interval (Jeffreys)."""
    ci_high: float | None
    """Upper end of its interval."""

    @classmethod
    def of(cls, found: Retrial, confidence: float) -> Flips:
        """Return the share of what was judged again."""
        share = found.flips / found.claims if found.claims else None
        low, high = (
            (None, None)
            if share is None
            else jeffreys_interval(share, float(found.claims), confidence)
        )
        return cls(
            change=found.change,
            compared_with=found.compared_with,
            claims=found.claims,
            flips=found.flips,
            unanswered=found.unanswered,
            share=share,
            ci_low=None if low is None else round(low, 12),
            ci_high=None if high is None else round(high, 12),
        )


def measure_flips(run: StoredRun, count: int, judges: Mapping[str, object]) -> tuple[Flips, ...]:
    """Return how often a run's language model contradicts itself.

    Claims of whole images are drawn until there are enough. An image's claims are judged together,
    with its scene graph.

    Args:
        run: The run.
        count: Claims to judge again, at least.
        judges: Settings of the judge by name.

    Raises:
        InvalidInputError: The run's judge is another one, or its evidence has no scene graphs.
        UnavailableError: The judge answered no call for a long time.
    """
    items = list(_drawn(run, count))
    if not items:
        raise InvalidInputError(
            f"{run.folder}: no claim was compared with a whole scene graph; flips are measured on "
            "runs of tri-he that a language model judged"
        )
    found = asyncio.run(_retried(run, items, judges))
    return tuple(Flips.of(each, run.interval.confidence) for each in found)


async def _retried(
    run: StoredRun, items: list[JudgeRequestItem], judges: Mapping[str, object]
) -> list[Retrial]:
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.judges.judge_checks import retry_claims
    from hallujudge.judge_service.settings.server_settings import load_settings

    resolved = load_settings(judges)
    factory = JudgeFactory(resolved.judges, resolved.keys)
    judge = factory.llm()
    try:
        await judge.prepare()
        _refuse_other(run, judge)
        return await retry_claims(judge, items)
    finally:
        await factory.close()


def _refuse_other(run: StoredRun, judge: LlmJudge) -> None:
    """Refuse a judge that is not the run's: its model and server come first in the signature."""
    signature = judge_of(run.signature)
    if not signature.startswith(f"{judge.identity},"):
        raise InvalidInputError(
            f"{run.folder}: its judge is {signature.partition(',')[0]}, not {judge.identity}; "
            "give the run's own judge"
        )


def _drawn(run: StoredRun, count: int) -> Iterator[JudgeRequestItem]:
    """Yield the claims of images, in an order that depends on their names only."""
    from hallujudge.judge_service.judges import JudgeRequestItem

    images = _images(run)
    left = count
    for image in sorted(images, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if left <= 0:
            return
        scene, claims = images[image]
        left -= len(claims)
        yield JudgeRequestItem(id=image, claims=tuple(claims), reference_triplets=scene)


def _images(run: StoredRun) -> dict[str, tuple[tuple[Triplet, ...], dict[ClaimParts, None]]]:
    """Return the scene graph and the different claims of each image."""
    images: dict[str, tuple[tuple[Triplet, ...], dict[ClaimParts, None]]] = {}
    for line in run.lines():
        evidence = line.get("evidence")
        if not isinstance(evidence, dict) or not evidence.get("scene_graph"):
            continue
        scene = tuple(Triplet(*map(str, fact)) for fact in evidence["scene_graph"])
        _, claims = images.setdefault(str(line["group_id"]), (scene, {}))
        for claim in evidence["claims"]:
            claims[_parts(claim["triplet"])] = None
    return images


def _parts(values: Any) -> ClaimParts:
    return Triplet(*map(str, values)) if len(values) != 1 else Sentence(str(values[0]))
