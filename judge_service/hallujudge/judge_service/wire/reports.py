"""Where reports have another shape than their messages, and how large reports are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Report, Score

from .fields import Rearranged

__all__ = ["REARRANGED", "pieces_of", "shrink"]

_NOTE_BYTES = 1024
_Groups = Mapping[str, Mapping[str, Mapping[str, Score]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupScores:
    """The scores of the items that share a value of a field."""

    key: str
    value: str
    scores: Mapping[str, Score]


def _write_groups(groups: _Groups) -> tuple[_GroupScores, ...]:
    return tuple(
        _GroupScores(key=key, value=value, scores=scores)
        for key, values in groups.items()
        for value, scores in values.items()
    )


def _read_groups(rows: Iterable[_GroupScores]) -> _Groups:
    groups: dict[str, dict[str, Mapping[str, Score]]] = {}
    for row in rows:
        groups.setdefault(row.key, {})[row.value] = row.scores
    return groups


REARRANGED: Mapping[tuple[Any, str], Rearranged] = {
    (Report, "groups"): Rearranged(tuple[_GroupScores, ...], _write_groups, _read_groups)
}
"""Groups are sent as rows with their field and value."""


def pieces_of(report: scoring_pb2.Report, max_bytes: int) -> Iterator[pb.ScoreStreamResponse]:
    """Yield the messages that carry a report: batches of its groups, then the report.

    Only groups can be many: a report has as many as the items have different values.

    Args:
        report: The report; its groups are removed if they are sent by themselves.
        max_bytes: Size from which groups are sent by themselves, and size of their batches.
    """
    if report.ByteSize() > max_bytes:
        batch, size = pb.GroupBatch(), 0
        for group in report.groups:
            if batch.groups and size + group.ByteSize() > max_bytes:
                yield pb.ScoreStreamResponse(groups=batch)
                batch, size = pb.GroupBatch(), 0
            batch.groups.append(group)
            size += group.ByteSize()
        yield pb.ScoreStreamResponse(groups=batch)
        report.ClearField("groups")
    yield pb.ScoreStreamResponse(report=report)


def shrink(response: pb.ScoreResponse, max_bytes: int) -> None:
    """Leave out what does not fit into one message, and say so in the report's notes.

    First the groups of the report, then the evidence of items: what was scored is kept.

    Args:
        response: The response; it is changed.
        max_bytes: The largest message.
    """
    for name, remove in (("groups", _remove_groups), ("the evidence of items", _remove_evidence)):
        # A note is a few hundred bytes.
        if (size := response.ByteSize()) <= max_bytes - _NOTE_BYTES:
            return
        remove(response)
        response.report.notes.append(
            f"This response leaves out {name}: with them it has {size} bytes, and a message may "
            f"have {max_bytes} (max_message_bytes). ScoreStream sends them in pieces."
        )


def _remove_groups(response: pb.ScoreResponse) -> None:
    response.report.ClearField("groups")


def _remove_evidence(response: pb.ScoreResponse) -> None:
    for result in response.results:
        if (kind := result.WhichOneof("evidence")) is not None:
            result.ClearField(kind)
