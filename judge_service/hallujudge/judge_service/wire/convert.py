"""Protobuf messages <-> values; beside the servicer and the client, nothing else sees both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from hallujudge.judge.v1 import judge_service_pb2 as service_pb
from hallujudge.judge.v1 import scoring_pb2 as pb
from hallujudge.metrics import (
    Bound,
    ChairEvidence,
    ChairItem,
    Coverage,
    Evidence,
    IntervalSettings,
    Item,
    ItemResult,
    MentionVerdict,
    Outcome,
    Report,
    Score,
)
from hallujudge.metrics.framework.triplets import Triplet
from hallujudge.synonym_graphs import Mention

from ..engine.entry import FoundClaim
from ..engine.spec import GraphLayout, GraphSource, InlineGraph, ScoreSpec, ShippedGraph
from ..errors import InvalidInputError, Violation
from . import mementos as _convert_mementos
from . import qa as _convert_qa
from . import tri_he as _convert_tri_he

__all__ = [
    "found_claim_from_proto",
    "found_claim_to_proto",
    "graph_from_proto",
    "graph_to_proto",
    "item_from_proto",
    "item_to_proto",
    "items_from_proto",
    "report_from_proto",
    "report_to_proto",
    "result_from_proto",
    "result_to_proto",
    "spec_from_proto",
    "spec_to_proto",
]

_OUTCOMES = {Outcome.SCORED: pb.OUTCOME_SCORED, Outcome.UNSCORED: pb.OUTCOME_UNSCORED}
_OUTCOMES_BACK = {code: outcome for outcome, code in _OUTCOMES.items()}


# Specs


def graph_to_proto(source: GraphSource) -> pb.GraphSource:
    """A graph source as a message."""
    if isinstance(source, ShippedGraph):
        return pb.GraphSource(shipped=source.name)
    return pb.GraphSource(
        inline=pb.InlineGraph(name=source.name, text=source.text, layout=source.layout)
    )


def graph_from_proto(message: pb.GraphSource) -> GraphSource:
    """A graph source from its message.

    Raises:
        InvalidInputError: The message names no source.
    """
    kind = message.WhichOneof("source")
    if kind == "shipped":
        return ShippedGraph(name=message.shipped)
    if kind == "inline":
        inline = message.inline
        return InlineGraph(name=inline.name, text=inline.text, layout=_layout(inline.layout))
    raise InvalidInputError("a graph needs a source: set 'shipped' or 'inline'")


def _layout(name: str) -> GraphLayout:
    if name in {"json", "table"}:
        return cast(GraphLayout, name)
    if name in {"", "auto"}:
        return "auto"
    raise _invalid("graph.inline.layout", f"{name!r} is not one of json, table, auto")


def spec_to_proto(spec: ScoreSpec) -> pb.ScoreSpec:
    """A spec as a message."""
    return pb.ScoreSpec(
        metric=spec.metric,
        variant=spec.variant,
        graphs={role: graph_to_proto(source) for role, source in spec.graphs.items()},
        options=dict(spec.options),
        group_by=list(spec.group_by),
        interval=pb.IntervalSpec(confidence=spec.interval.confidence),
    )


def spec_from_proto(message: pb.ScoreSpec) -> ScoreSpec:
    """A spec from its message.

    Raises:
        InvalidInputError: The metric is not named, or intervals can't be made as asked.
    """
    if not message.metric:
        raise _invalid("spec.metric", "name a metric, such as 'chair'")
    return ScoreSpec(
        metric=message.metric,
        variant=message.variant,
        graphs={role: graph_from_proto(source) for role, source in message.graphs.items()},
        options=dict(message.options),
        group_by=tuple(message.group_by),
        interval=_interval_from_proto(message),
    )


def _interval_from_proto(message: pb.ScoreSpec) -> IntervalSettings:
    if not message.HasField("interval"):
        return IntervalSettings()
    try:
        return IntervalSettings(confidence=message.interval.confidence)
    except ValueError as err:
        raise _invalid("spec.interval", str(err)) from err


def _invalid(field: str, description: str) -> InvalidInputError:
    return InvalidInputError(
        f"{field}: {description}", violations=(Violation(field=field, description=description),)
    )


# Items


def item_to_proto(item: Item) -> pb.Item:
    """An item as a message."""
    message = pb.Item(id=item.id, group_id=item.group_id, fields=dict(item.fields))
    _ITEMS_OUT[type(item)](item, message)
    return message


def item_from_proto(message: pb.Item) -> Item:
    """An item from its message.

    Raises:
        InvalidInputError: The message has no task.
    """
    kind = message.WhichOneof("task")
    if kind not in _ITEMS_IN:
        raise _invalid("item.task", f"item {message.id!r} has no task that this release scores")
    return _ITEMS_IN[kind](message)


def items_from_proto(messages: Iterable[pb.Item]) -> list[Item]:
    """Items from their messages."""
    return [item_from_proto(message) for message in messages]


def _chair_out(item: Item, message: pb.Item) -> None:
    assert isinstance(item, ChairItem)
    message.chair.SetInParent()
    if item.response is not None:
        message.chair.response = item.response
    if item.reference_objects is not None:
        message.chair.reference_objects.SetInParent()
        message.chair.reference_objects.values.extend(item.reference_objects)


def _chair_in(message: pb.Item) -> ChairItem:
    task = message.chair
    return ChairItem(
        id=message.id,
        group_id=message.group_id,
        fields=dict(message.fields),
        response=task.response if task.HasField("response") else None,
        reference_objects=_string_list(task),
    )


def _string_list(task: pb.ChairTask) -> tuple[str, ...] | None:
    if not task.HasField("reference_objects"):
        return None
    return tuple(task.reference_objects.values)


_ITEMS_OUT: Mapping[type[Item], Callable[[Item, pb.Item], None]] = {
    ChairItem: _chair_out,
    **_convert_qa.ITEMS_OUT,
    **_convert_tri_he.ITEMS_OUT,
    **_convert_mementos.ITEMS_OUT,
}
_ITEMS_IN: Mapping[str | None, Callable[[pb.Item], Item]] = {
    "chair": _chair_in,
    **_convert_qa.ITEMS_IN,
    **_convert_tri_he.ITEMS_IN,
    **_convert_mementos.ITEMS_IN,
}


# Results


def result_to_proto(result: ItemResult) -> pb.ItemResult:
    """A result as a message."""
    message = pb.ItemResult(
        id=result.id,
        group_id=result.group_id,
        outcome=_OUTCOMES[result.outcome],
        reason=result.reason,
        detail=result.detail,
        statistics=result.statistics,
        scores=[pb.ItemScore(name=name, value=value) for name, value in result.scores.items()],
        fields=dict(result.fields),
    )
    if result.evidence is not None:
        _EVIDENCE_OUT[type(result.evidence)](result.evidence, message)
    return message


def result_from_proto(message: pb.ItemResult) -> ItemResult:
    """A result from its message."""
    kind = message.WhichOneof("evidence")
    return ItemResult(
        id=message.id,
        group_id=message.group_id,
        outcome=_OUTCOMES_BACK[message.outcome],
        reason=message.reason,
        detail=message.detail,
        statistics=tuple(message.statistics),
        scores={
            score.name: score.value if score.HasField("value") else None for score in message.scores
        },
        evidence=_EVIDENCE_IN[kind](message) if kind else None,
        fields=dict(message.fields),
    )


def _chair_evidence_out(evidence: Evidence, message: pb.ItemResult) -> None:
    assert isinstance(evidence, ChairEvidence)
    message.chair.SetInParent()
    message.chair.mentions.extend(
        [
            pb.Mention(word=word, object=name, start=start, end=end, hallucinated=hallucinated)
            for word, name, start, end, hallucinated in evidence.mentions
        ]
    )
    message.chair.missed.extend(evidence.missed)


def _chair_evidence_in(message: pb.ItemResult) -> ChairEvidence:
    return ChairEvidence(
        mentions=tuple(
            MentionVerdict(m.word, m.object, m.start, m.end, m.hallucinated)
            for m in message.chair.mentions
        ),
        missed=tuple(message.chair.missed),
    )


_EVIDENCE_OUT: Mapping[type[Evidence], Callable[[Evidence, pb.ItemResult], None]] = {
    ChairEvidence: _chair_evidence_out,
    **_convert_qa.EVIDENCE_OUT,
    **_convert_tri_he.EVIDENCE_OUT,
    **_convert_mementos.EVIDENCE_OUT,
}
_EVIDENCE_IN: Mapping[str, Callable[[pb.ItemResult], Evidence]] = {
    "chair": _chair_evidence_in,
    **_convert_qa.EVIDENCE_IN,
    **_convert_tri_he.EVIDENCE_IN,
    **_convert_mementos.EVIDENCE_IN,
}


# Claims without verdicts


def found_claim_to_proto(found: FoundClaim) -> service_pb.Claim:
    """A claim as a message."""
    message = service_pb.Claim(start=found.start, end=found.end, kind=found.kind)
    claim = found.claim
    if isinstance(claim, Mention):
        message.mention.CopyFrom(
            pb.Mention(word=claim.word, object=claim.object, start=claim.start, end=claim.end)
        )
    elif isinstance(claim, Triplet):
        message.triplet.CopyFrom(_convert_tri_he.triplet_to_proto(claim))
    else:
        message.keyword = claim
    return message


def found_claim_from_proto(message: service_pb.Claim) -> FoundClaim:
    """A claim from its message."""
    kind = message.WhichOneof("claim")
    claim: Mention | Triplet | str = message.keyword
    if kind == "mention":
        found = message.mention
        claim = Mention(found.word, found.object, found.start, found.end)
    elif kind == "triplet":
        claim = _convert_tri_he.triplet_from_proto(message.triplet)
    return FoundClaim(start=message.start, end=message.end, claim=claim, kind=message.kind)


# Reports


def report_to_proto(report: Report) -> pb.Report:
    """A report as a message."""
    return pb.Report(
        metric=report.metric,
        variant=report.variant,
        signature=report.signature,
        scores=[_score_to_proto(score) for score in report.scores.values()],
        groups=[
            pb.GroupScores(
                key=key, value=value, scores=[_score_to_proto(score) for score in scores.values()]
            )
            for key, values in report.groups.items()
            for value, scores in values.items()
        ],
        coverage=_coverage_to_proto(report.coverage),
        totals=[pb.Total(name=name, value=value) for name, value in report.totals.items()],
        settings=dict(report.settings),
        notes=report.notes,
    )


def report_from_proto(message: pb.Report) -> Report:
    """A report from its message."""
    groups: dict[str, dict[str, dict[str, Score]]] = {}
    for group in message.groups:
        groups.setdefault(group.key, {})[group.value] = _scores_from_proto(group.scores)
    return Report(
        metric=message.metric,
        variant=message.variant,
        signature=message.signature,
        scores=_scores_from_proto(message.scores),
        groups=groups,
        coverage=_coverage_from_proto(message.coverage),
        totals={total.name: total.value for total in message.totals},
        # Maps have no order on the wire; sorted, they have the same one everywhere.
        settings=dict(sorted(message.settings.items())),
        notes=tuple(message.notes),
    )


def _score_to_proto(score: Score) -> pb.Score:
    return pb.Score(
        name=score.name,
        value=score.value,
        ci_low=score.ci_low,
        ci_high=score.ci_high,
        n=score.n,
    )


def _scores_from_proto(messages: Iterable[pb.Score]) -> dict[str, Score]:
    return {
        message.name: Score(
            name=message.name,
            value=message.value if message.HasField("value") else None,
            ci_low=message.ci_low if message.HasField("ci_low") else None,
            ci_high=message.ci_high if message.HasField("ci_high") else None,
            n=message.n,
        )
        for message in messages
    }


def _coverage_to_proto(coverage: Coverage) -> pb.Coverage:
    return pb.Coverage(
        items=coverage.items,
        scored=coverage.scored,
        unscored=coverage.unscored,
        reasons=[pb.ReasonCount(reason=r, count=count) for r, count in coverage.reasons.items()],
        bounds=[
            pb.Bound(name=name, best=bound.best, worst=bound.worst)
            for name, bound in coverage.bounds.items()
        ],
    )


def _coverage_from_proto(message: pb.Coverage) -> Coverage:
    return Coverage(
        items=message.items,
        scored=message.scored,
        unscored=message.unscored,
        reasons={row.reason: row.count for row in message.reasons},
        bounds={b.name: Bound(best=b.best, worst=b.worst) for b in message.bounds},
    )
