"""Where values of Tri-HE have another shape than their messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hallujudge.metrics import JsonValue
from hallujudge.metrics.framework.claims import ClaimVerdict
from hallujudge.metrics.framework.triplets import ClaimParts, Sentence, Triplet, WrittenTriplet
from hallujudge.metrics.tri_he.evidence import TriHeEvidence

from .fields import Codec, FieldShape, Parts, Rearranged
from .places import MalformedError

__all__ = ["REARRANGED", "SHAPES", "TYPES"]

_PARTS = ("subject", "relation", "object")


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


def _write_triplet(triplet: Any) -> Parts:
    parts: Parts = dict(zip(_PARTS, triplet, strict=True))
    if isinstance(triplet, WrittenTriplet):
        parts["written"] = triplet.written
    return parts


def _read_triplet(message: Any) -> Triplet:
    parts = (message.subject, message.relation, message.object)
    return WrittenTriplet(*parts, written=message.written) if message.written else Triplet(*parts)


def _write_given(claim: Any) -> Parts:
    if isinstance(claim, Sentence):
        raise MalformedError("claims that are given must be triplets, not sentences")
    return _write_triplet(claim)


def _write_claim(claim: Any) -> Parts:
    if isinstance(claim, Sentence):
        return {"sentence": claim.text}
    return {"triplet": _write_triplet(claim)}


def _read_claim(message: Any) -> ClaimParts:
    kind = message.WhichOneof("claim")
    if kind is None:
        raise MalformedError("needs a triplet or a sentence", "claim")
    return Sentence(message.sentence) if kind == "sentence" else _read_triplet(message.triplet)


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


TYPES: Mapping[tuple[Any, str], Codec] = {
    (Triplet, "Triplet"): Codec(_write_triplet, _read_triplet),
    (ClaimParts, "Triplet"): Codec(_write_given, _read_triplet),
}
"""A triplet keeps the text of its file, which is no part of it."""

SHAPES: Mapping[tuple[Any, str], FieldShape] = {
    (ClaimVerdict, "triplet"): FieldShape(("triplet", "sentence"), _write_claim, _read_claim)
}
"""A claim is a triplet or a sentence."""

REARRANGED: Mapping[tuple[Any, str], Rearranged] = {
    (TriHeEvidence, "judging"): Rearranged(tuple[_JudgePart, ...], _write_judging, _read_judging)
}
"""Evidence keeps the judges' parts as JSON."""
