"""Where values of Tri-HE have another shape than their messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallujudge.metrics.framework.claims import ClaimVerdict
from hallujudge.metrics.framework.triplets import ClaimParts, Sentence, Triplet, WrittenTriplet

from .fields import Codec, FieldShape, Parts
from .places import MalformedError

__all__ = ["SHAPES", "TYPES"]

_PARTS = ("subject", "relation", "object")


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
        raise MalformedError("given claims must be triplets, not sentences")
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


TYPES: Mapping[tuple[Any, str], Codec] = {
    (Triplet, "Triplet"): Codec(_write_triplet, _read_triplet),
    (ClaimParts, "Triplet"): Codec(_write_given, _read_triplet),
}
"""A triplet keeps the text of its file, which is not one of its parts."""

SHAPES: Mapping[tuple[Any, str], FieldShape] = {
    (ClaimVerdict, "triplet"): FieldShape(("triplet", "sentence"), _write_claim, _read_claim)
}
"""A claim is a triplet or a sentence."""
