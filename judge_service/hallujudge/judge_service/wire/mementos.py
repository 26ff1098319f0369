"""Messages of Mementos <-> values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hallujudge.judge.v1 import scoring_pb2 as pb
from hallujudge.metrics import Evidence, Item
from hallujudge.metrics.mementos.evidence import (
    KeywordEvidence,
    MatchedKeyword,
    MementosEvidence,
    NearKeyword,
)
from hallujudge.metrics.mementos.items import MementosItem

__all__ = ["EVIDENCE_IN", "EVIDENCE_OUT", "ITEMS_IN", "ITEMS_OUT"]

_LISTS = (
    "reference_objects",
    "predicted_objects",
    "reference_behaviors",
    "predicted_behaviors",
)


def _item_out(item: Item, message: pb.Item) -> None:
    assert isinstance(item, MementosItem)
    task = message.mementos
    task.SetInParent()
    task.domain = item.domain
    for name in ("response", "reference", "episode_length"):
        if (value := getattr(item, name)) is not None:
            setattr(task, name, value)
    for name in _LISTS:
        if (keywords := getattr(item, name)) is not None:
            getattr(task, name).SetInParent()
            getattr(task, name).values.extend(keywords)


def _item_in(message: pb.Item) -> MementosItem:
    task = message.mementos
    lists = {
        name: tuple(getattr(task, name).values) if task.HasField(name) else None  # type: ignore[arg-type]  # names of the message's own fields
        for name in _LISTS
    }
    return MementosItem(
        id=message.id,
        group_id=message.group_id,
        fields=dict(message.fields),
        response=task.response if task.HasField("response") else None,
        reference=task.reference if task.HasField("reference") else None,
        domain=task.domain,
        episode_length=task.episode_length if task.HasField("episode_length") else None,
        **lists,
    )


def _keywords_out(found: KeywordEvidence) -> pb.KeywordEvidence:
    return pb.KeywordEvidence(
        reference=found.reference,
        predicted=found.predicted,
        matched=[pb.KeywordPair(predicted=p, reference=r) for p, r in found.matched],
        hallucinated=found.hallucinated,
        missed=found.missed,
        unknown=found.unknown,
        near=[pb.KeywordPair(predicted=p, reference=r, why=why) for p, r, why in found.near],
        reference_spans=[pb.KeywordSpan(start=s, end=e) for s, e in found.reference_spans],
        predicted_spans=[pb.KeywordSpan(start=s, end=e) for s, e in found.predicted_spans],
    )


def _keywords_in(message: pb.KeywordEvidence) -> KeywordEvidence:
    return KeywordEvidence(
        reference=tuple(message.reference),
        predicted=tuple(message.predicted),
        matched=tuple(MatchedKeyword(p.predicted, p.reference) for p in message.matched),
        hallucinated=tuple(message.hallucinated),
        missed=tuple(message.missed),
        unknown=tuple(message.unknown),
        near=tuple(NearKeyword(p.predicted, p.reference, p.why) for p in message.near),
        reference_spans=_spans(message.reference_spans),
        predicted_spans=_spans(message.predicted_spans),
    )


def _spans(spans: Iterable[pb.KeywordSpan]) -> tuple[tuple[int, int], ...]:
    return tuple((span.start, span.end) for span in spans)


def _evidence_out(evidence: Evidence, message: pb.ItemResult) -> None:
    assert isinstance(evidence, MementosEvidence)
    message.mementos.CopyFrom(
        pb.MementosEvidence(
            domain=evidence.domain,
            extractor=evidence.extractor,
            episode_length=evidence.episode_length,
            objects=_keywords_out(evidence.objects),
            behaviors=_keywords_out(evidence.behaviors),
        )
    )


def _evidence_in(message: pb.ItemResult) -> MementosEvidence:
    evidence = message.mementos
    length = evidence.episode_length if evidence.HasField("episode_length") else None
    return MementosEvidence(
        domain=evidence.domain,
        extractor=evidence.extractor,
        episode_length=length,
        objects=_keywords_in(evidence.objects),
        behaviors=_keywords_in(evidence.behaviors),
    )


ITEMS_OUT: Mapping[type[Item], Callable[[Item, pb.Item], None]] = {MementosItem: _item_out}
ITEMS_IN: Mapping[str | None, Callable[[pb.Item], Item]] = {"mementos": _item_in}
EVIDENCE_OUT: Mapping[type[Evidence], Callable[[Evidence, pb.ItemResult], None]] = {
    MementosEvidence: _evidence_out
}
EVIDENCE_IN: Mapping[str, Callable[[pb.ItemResult], Evidence]] = {"mementos": _evidence_in}
