"""Messages of Tri-HE <-> values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hallujudge.judge.v1 import scoring_pb2 as pb
from hallujudge.metrics import Evidence, Item, JsonValue
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Verdict
from hallujudge.metrics.framework.triplets import ClaimParts, Sentence, Triplet, WrittenTriplet
from hallujudge.metrics.tri_he.evidence import TriHeEvidence
from hallujudge.metrics.tri_he.items import TriHeItem

from ..errors import InvalidInputError

__all__ = [
    "EVIDENCE_IN",
    "EVIDENCE_OUT",
    "ITEMS_IN",
    "ITEMS_OUT",
    "triplet_from_proto",
    "triplet_to_proto",
]

_VERDICTS = {
    Verdict.SUPPORTED: pb.VERDICT_SUPPORTED,
    Verdict.NOT_SUPPORTED: pb.VERDICT_NOT_SUPPORTED,
    Verdict.UNSCORED: pb.VERDICT_UNSCORED,
}
_PARTS = {
    Part.SUBJECT: pb.CLAIM_PART_SUBJECT,
    Part.OBJECT: pb.CLAIM_PART_OBJECT,
    Part.RELATION: pb.CLAIM_PART_RELATION,
}
_VERDICTS_BACK = {code: verdict for verdict, code in _VERDICTS.items()}
_PARTS_BACK = {code: part for part, code in _PARTS.items()}


def triplet_to_proto(triplet: Triplet) -> pb.Triplet:
    """A triplet as a message; its written form where the parts don't tell it."""
    written = triplet.written if isinstance(triplet, WrittenTriplet) else ""
    return pb.Triplet(
        subject=triplet.subject, relation=triplet.relation, object=triplet.object, written=written
    )


def triplet_from_proto(message: pb.Triplet) -> Triplet:
    """A triplet from its message."""
    parts = (message.subject, message.relation, message.object)
    return WrittenTriplet(*parts, written=message.written) if message.written else Triplet(*parts)


def _triplets(messages: Iterable[pb.Triplet]) -> tuple[Triplet, ...]:
    return tuple(triplet_from_proto(message) for message in messages)


def _item_out(item: Item, message: pb.Item) -> None:
    assert isinstance(item, TriHeItem)
    task = message.tri_he
    task.SetInParent()
    task.question = item.question
    task.reference_objects.extend(item.reference_objects)
    task.human_scores.extend(item.human_scores)
    if item.response is not None:
        task.response = item.response
    if item.claims is not None:
        task.claims.SetInParent()
        task.claims.values.extend(_claim_to_proto(claim) for claim in item.claims)
    if item.reference_triplets is not None:
        task.reference_triplets.SetInParent()
        task.reference_triplets.values.extend(map(triplet_to_proto, item.reference_triplets))


def _claim_to_proto(claim: ClaimParts) -> pb.Triplet:
    if isinstance(claim, Triplet):
        return triplet_to_proto(claim)
    raise InvalidInputError("claims that are given must be triplets, not sentences")


def _item_in(message: pb.Item) -> TriHeItem:
    task = message.tri_he
    graph = task.reference_triplets
    return TriHeItem(
        id=message.id,
        group_id=message.group_id,
        fields=dict(message.fields),
        question=task.question,
        response=task.response if task.HasField("response") else None,
        claims=_triplets(task.claims.values) if task.HasField("claims") else None,
        reference_triplets=(
            _triplets(graph.values) if task.HasField("reference_triplets") else None
        ),
        reference_objects=tuple(task.reference_objects),
        human_scores=tuple(task.human_scores),
    )


def _evidence_out(evidence: Evidence, message: pb.ItemResult) -> None:
    assert isinstance(evidence, TriHeEvidence)
    found = message.tri_he
    found.SetInParent()
    found.extractor = evidence.extractor
    found.human_scores.extend(evidence.human_scores)
    found.claims.extend(_verdict_to_proto(claim) for claim in evidence.claims)
    found.judging.extend(_judging_to_proto(part) for part in evidence.judging)


def _verdict_to_proto(claim: ClaimVerdict) -> pb.ClaimVerdict:
    message = pb.ClaimVerdict(
        parts=list(claim.triplet),
        verdict=_VERDICTS[claim.verdict],
        part=_PARTS[claim.part] if claim.part else pb.CLAIM_PART_UNSPECIFIED,
        score=claim.score,
        margin=claim.margin,
        judge=claim.judge,
        references=[triplet_to_proto(triplet) for triplet in claim.references],
        reason=claim.reason,
        detail=claim.detail,
        within_words=claim.within_words,
        prediction_error=claim.prediction_error,
    )
    if claim.span is not None:
        message.span.start, message.span.end = claim.span
        message.span.SetInParent()
    return message


def _judging_to_proto(part: Mapping[str, JsonValue]) -> pb.JudgePart:
    declined = part["declined"]
    assert isinstance(declined, dict), "Asked.to_json makes it so"
    return pb.JudgePart(
        declined=[
            pb.DeclinedClaims(reason=reason, claims=row["claims"], detail=row["detail"])  # type: ignore[arg-type,index,call-overload]  # as Asked.to_json makes it
            for reason, row in declined.items()
        ],
        **{name: value for name, value in part.items() if name != "declined"},  # type: ignore[arg-type]  # fields of the same names
    )


def _evidence_in(message: pb.ItemResult) -> TriHeEvidence:
    found = message.tri_he
    return TriHeEvidence(
        claims=tuple(_verdict_from_proto(claim) for claim in found.claims),
        extractor=found.extractor,
        judging=tuple(_judging_from_proto(part) for part in found.judging),
        human_scores=tuple(found.human_scores),
    )


def _verdict_from_proto(message: pb.ClaimVerdict) -> ClaimVerdict:
    parts = tuple(message.parts)
    return ClaimVerdict(
        triplet=Triplet(*parts) if len(parts) == 3 else Sentence(*parts),
        verdict=_VERDICTS_BACK[message.verdict],
        part=_PARTS_BACK.get(message.part),
        score=message.score if message.HasField("score") else None,
        margin=message.margin if message.HasField("margin") else None,
        judge=message.judge,
        references=_triplets(message.references),
        span=(message.span.start, message.span.end) if message.HasField("span") else None,
        reason=message.reason,
        detail=message.detail,
        within_words=message.within_words if message.HasField("within_words") else None,
        prediction_error=message.prediction_error,
    )


def _judging_from_proto(message: pb.JudgePart) -> dict[str, JsonValue]:
    return {
        "judge": message.judge,
        "answered": message.answered,
        "declined": {
            row.reason: {"claims": row.claims, "detail": row.detail} for row in message.declined
        },
        "calls": message.calls,
        "prompt_tokens": message.prompt_tokens,
        "cached_tokens": message.cached_tokens,
        "completion_tokens": message.completion_tokens,
        "latency_seconds": message.latency_seconds,
        "cost": message.cost if message.HasField("cost") else None,
    }


ITEMS_OUT: Mapping[type[Item], Callable[[Item, pb.Item], None]] = {TriHeItem: _item_out}
ITEMS_IN: Mapping[str | None, Callable[[pb.Item], Item]] = {"tri_he": _item_in}
EVIDENCE_OUT: Mapping[type[Evidence], Callable[[Evidence, pb.ItemResult], None]] = {
    TriHeEvidence: _evidence_out
}
EVIDENCE_IN: Mapping[str, Callable[[pb.ItemResult], Evidence]] = {"tri_he": _evidence_in}
