"""Where values of Tri-HE have another shape than their messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallujudge.metrics.framework.claims import (
    ClaimParts,
    ClaimVerdict,
    Sentence,
    Triplet,
    WrittenTriplet,
)

from .fields import Codec, FieldShape
from .places import MalformedError

__all__ = ["SHAPES", "TYPES"]


def _write_triplet(triplet: Any, message: Any) -> None:
    message.subject, message.relation, message.object = triplet
    if isinstance(triplet, WrittenTriplet):
        message.written = triplet.written


def _read_triplet(message: Any) -> Triplet:
    parts = (message.subject, message.relation, message.object)
    return WrittenTriplet(*parts, written=message.written) if message.written else Triplet(*parts)


def _write_given(claim: Any, message: Any) -> None:
    if isinstance(claim, Sentence):
        raise MalformedError("given claims must be triplets, not sentences")
    _write_triplet(claim, message)


def _write_claim(claim: Any, message: Any) -> None:
    if isinstance(claim, Sentence):
        message.sentence = claim.text
    else:
        message.triplet.SetInParent()
        _write_triplet(claim, message.triplet)


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
