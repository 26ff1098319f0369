"""Responses that are too large for one message: reports in pieces, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2

# Room for the note that `shrink` adds; a note has a few hundred bytes.
_NOTE_BYTES = 1024


def pieces_of(report: scoring_pb2.Report, max_bytes: int) -> Iterator[pb.ScoreStreamResponse]:
    """Yield the messages that carry a report: batches of its groups, then the report.

    Only the groups can make a report large: there is one for each value of a field.

    Args:
        report: The report; its groups are removed if they are sent separately.
        max_bytes: Size from which groups are sent separately, and size of their batches.
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
    """Remove what does not fit into one message, and add a note to the report.

    The report's groups are removed first, then the items' evidence; scores are kept.

    Args:
        response: The response; it is changed.
        max_bytes: The largest message.
    """
    for name, remove in (("groups", _remove_groups), ("the evidence of items", _remove_evidence)):
        if (size := response.ByteSize()) <= max_bytes - _NOTE_BYTES:
            return
        remove(response)
        response.report.notes.append(
            f"This response leaves out {name}: with them it has {size} bytes, and a message may "
            f"have {max_bytes} (limits.max_message_bytes). ScoreStream sends them in pieces."
        )


def _remove_groups(response: pb.ScoreResponse) -> None:
    response.report.ClearField("groups")


def _remove_evidence(response: pb.ScoreResponse) -> None:
    for result in response.results:
        if (kind := result.WhichOneof("evidence")) is not None:
            result.ClearField(kind)
