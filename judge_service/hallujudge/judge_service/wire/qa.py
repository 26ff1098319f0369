"""Messages of the question-answering families <-> values: POPE, VidHal, INFACT."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hallujudge.judge.v1 import scoring_pb2 as pb
from hallujudge.metrics import Evidence, Item
from hallujudge.metrics.answers.evidence import AnswerEvidence
from hallujudge.metrics.infact.evidence import InfactEvidence, RunVerdict
from hallujudge.metrics.infact.items import InfactItem, InfactRun
from hallujudge.metrics.pope.items import PopeItem
from hallujudge.metrics.vidhal.evidence import OrderEvidence
from hallujudge.metrics.vidhal.items import VidhalItem

__all__ = ["EVIDENCE_IN", "EVIDENCE_OUT", "ITEMS_IN", "ITEMS_OUT"]


def _pope_out(item: Item, message: pb.Item) -> None:
    assert isinstance(item, PopeItem)
    message.pope.question = item.question
    message.pope.label = item.label
    message.pope.SetInParent()
    if item.response is not None:
        message.pope.response = item.response


def _pope_in(message: pb.Item) -> PopeItem:
    task = message.pope
    return PopeItem(
        id=message.id,
        group_id=message.group_id,
        fields=dict(message.fields),
        response=task.response if task.HasField("response") else None,
        question=task.question,
        label=task.label,
    )


def _vidhal_out(item: Item, message: pb.Item) -> None:
    assert isinstance(item, VidhalItem)
    message.vidhal.SetInParent()
    message.vidhal.captions.extend(item.captions)
    for letter, rank in item.display.items():
        message.vidhal.display[letter] = rank
    if item.response is not None:
        message.vidhal.response = item.response


def _vidhal_in(message: pb.Item) -> VidhalItem:
    task = message.vidhal
    return VidhalItem(
        id=message.id,
        group_id=message.group_id,
        fields=dict(message.fields),
        response=task.response if task.HasField("response") else None,
        captions=tuple(task.captions),
        # Maps have no order on the wire; sorted, they have the same one everywhere.
        display=dict(sorted(task.display.items())),
    )


def _infact_out(item: Item, message: pb.Item) -> None:
    assert isinstance(item, InfactItem)
    task = message.infact
    task.SetInParent()
    task.label, task.dimension, task.category = item.label, item.dimension, item.category
    task.order_sensitive = item.order_sensitive
    for letter, text in item.options.items():
        task.options[letter] = text
    for operator, run in item.runs.items():
        slot = task.runs[operator]
        if run.response is not None:
            slot.response = run.response
        if run.confidence is not None:
            slot.confidence = run.confidence


def _infact_in(message: pb.Item) -> InfactItem:
    task = message.infact
    return InfactItem(
        id=message.id,
        group_id=message.group_id,
        fields=dict(message.fields),
        label=task.label,
        dimension=task.dimension,
        category=task.category,
        order_sensitive=task.order_sensitive,
        options=dict(sorted(task.options.items())),
        runs={operator: _run_in(run) for operator, run in sorted(task.runs.items())},
    )


def _run_in(run: pb.InfactRun) -> InfactRun:
    return InfactRun(
        response=run.response if run.HasField("response") else None,
        confidence=run.confidence if run.HasField("confidence") else None,
    )


def _answer_out(evidence: Evidence, message: pb.ItemResult) -> None:
    assert isinstance(evidence, AnswerEvidence)
    message.answer.CopyFrom(
        pb.AnswerEvidence(
            answer=evidence.answer,
            label=evidence.label,
            correct=evidence.correct,
            how=evidence.how,
        )
    )


def _answer_in(message: pb.ItemResult) -> AnswerEvidence:
    answer = message.answer
    return AnswerEvidence(
        answer=answer.answer if answer.HasField("answer") else None,
        label=answer.label,
        correct=answer.correct,
        how=answer.how,
    )


def _order_out(evidence: Evidence, message: pb.ItemResult) -> None:
    assert isinstance(evidence, OrderEvidence)
    message.order.CopyFrom(
        pb.OrderEvidence(order=evidence.order, ranks=evidence.ranks, problem=evidence.problem)
    )


def _order_in(message: pb.ItemResult) -> OrderEvidence:
    order = message.order
    return OrderEvidence(order=tuple(order.order), ranks=tuple(order.ranks), problem=order.problem)


def _infact_evidence_out(evidence: Evidence, message: pb.ItemResult) -> None:
    assert isinstance(evidence, InfactEvidence)
    message.infact.label = evidence.label
    message.infact.SetInParent()
    message.infact.runs.extend(
        pb.RunVerdict(operator=run.operator, answer=run.answer, correct=run.correct, how=run.how)
        for run in evidence.runs
    )


def _infact_evidence_in(message: pb.ItemResult) -> InfactEvidence:
    return InfactEvidence(
        label=message.infact.label,
        runs=tuple(
            RunVerdict(
                run.operator,
                run.answer if run.HasField("answer") else None,
                run.correct if run.HasField("correct") else None,
                run.how,
            )
            for run in message.infact.runs
        ),
    )


ITEMS_OUT: Mapping[type[Item], Callable[[Item, pb.Item], None]] = {
    PopeItem: _pope_out,
    VidhalItem: _vidhal_out,
    InfactItem: _infact_out,
}
ITEMS_IN: Mapping[str | None, Callable[[pb.Item], Item]] = {
    "pope": _pope_in,
    "vidhal": _vidhal_in,
    "infact": _infact_in,
}
EVIDENCE_OUT: Mapping[type[Evidence], Callable[[Evidence, pb.ItemResult], None]] = {
    AnswerEvidence: _answer_out,
    OrderEvidence: _order_out,
    InfactEvidence: _infact_evidence_out,
}
EVIDENCE_IN: Mapping[str, Callable[[pb.ItemResult], Evidence]] = {
    "answer": _answer_in,
    "order": _order_in,
    "infact": _infact_evidence_in,
}
