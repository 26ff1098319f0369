"""The judges' parts of evidence, which values hold as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hallujudge.metrics import JsonValue
from hallujudge.metrics.event_hallusion import EventHallusionEvidence
from hallujudge.metrics.hallusion_bench import HallusionBenchEvidence
from hallujudge.metrics.tri_he import TriHeEvidence

from .fields import Rearranged

__all__ = ["REARRANGED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declined:
    """Claims without a verdict, for one reason."""

    claims: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgePart:
    """The work of one judge, as evidence keeps it."""

    judge: str
    answered: int
    declined: Mapping[str, _Declined]
    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    latency_seconds: float
    cost: float | None


def _write_judging(judging: Any) -> tuple[_JudgePart, ...]:
    return tuple(
        _JudgePart(
            **part
            | {"declined": {name: _Declined(**row) for name, row in part["declined"].items()}}
        )
        for part in judging
    )


def _read_judging(judging: Any) -> tuple[dict[str, JsonValue], ...]:
    return tuple(_judge_json(part) for part in judging)


def _judge_json(part: _JudgePart) -> dict[str, JsonValue]:
    return {
        **{name: getattr(part, name) for name in _JudgePart.__slots__},
        "declined": {
            reason: {"claims": row.claims, "detail": row.detail}
            for reason, row in part.declined.items()
        },
    }


_PARTS = Rearranged(tuple[_JudgePart, ...], _write_judging, _read_judging)
REARRANGED: Mapping[tuple[Any, str], Rearranged] = {
    (evidence, "judging"): _PARTS
    for evidence in (TriHeEvidence, HallusionBenchEvidence, EventHallusionEvidence)
}
"""Evidence keeps the judges' parts as JSON."""
