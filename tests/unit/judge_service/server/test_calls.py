"""Reports that are too large for one message."""

from __future__ import annotations

import pytest

from hallujudge.judge.v1 import chair_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.server.calls import pieces_of, shrink


def response() -> pb.ScoreResponse:
    """About 60 kB of groups, 30 kB of evidence, and little else."""
    evidence = chair_pb2.ChairEvidence(missed=["x" * 300])
    return pb.ScoreResponse(
        results=[pb.ItemResult(id=str(n), chair=evidence) for n in range(100)],
        report=scoring_pb2.Report(
            groups=[scoring_pb2.GroupScores(key="k", value="y" * 600) for _ in range(100)]
        ),
    )


@pytest.mark.parametrize(
    ("limit", "left_out"),
    [
        (200_000, []),
        (60_000, ["groups"]),
        (20_000, ["groups", "the evidence of items"]),
    ],
)
def test_a_response_leaves_out_what_does_not_fit(limit: int, left_out: list[str]) -> None:
    made = response()
    shrink(made, limit)
    assert made.ByteSize() <= limit
    assert [result.id for result in made.results] == [str(n) for n in range(100)]
    notes = made.report.notes
    assert len(notes) == len(left_out)
    assert all(f"leaves out {name}: " in note for name, note in zip(left_out, notes, strict=True))
    assert bool(made.report.groups) == ("groups" not in left_out)
    assert made.results[0].HasField("chair") == (len(left_out) < 2)


def test_a_report_is_sent_in_messages_that_fit() -> None:
    report = response().report
    report.metric = "chair"
    pieces = list(pieces_of(report, 10_000))
    assert max(piece.ByteSize() for piece in pieces) < 10_100, "a few bytes around its groups"
    groups = [group for piece in pieces for group in piece.groups.groups]
    assert groups == list(response().report.groups)
    assert [piece.HasField("report") for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[-1].report.metric == "chair"


def test_a_report_that_fits_is_one_message() -> None:
    [piece] = pieces_of(response().report, 200_000)
    assert len(piece.report.groups) == 100
