"""What the job database stores: specs, items, results and reports as the bytes of messages."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Item, ItemResult, Report

from ..engine.spec import ScoreSpec
from ..wire.convert import (
    item_from_proto,
    report_from_proto,
    report_to_proto,
    result_from_proto,
    result_to_proto,
    spec_from_proto,
    without_graphs,
)


def spec_of(content: bytes) -> ScoreSpec:
    """Return a spec."""
    return spec_from_proto(scoring_pb2.ScoreSpec.FromString(content))


def items_of(contents: Sequence[bytes]) -> list[Item]:
    """Return items."""
    return [item_from_proto(pb.Item.FromString(content)) for content in contents]


def result_of(content: bytes) -> ItemResult:
    """Return a result."""
    return result_from_proto(pb.ItemResult.FromString(content))


def result_bytes(result: ItemResult) -> bytes:
    """Return a result as bytes."""
    # The stored item has the scene graph.
    (kept,) = without_graphs([result])
    return result_to_proto(kept).SerializeToString()


def report_of(content: bytes) -> Report:
    """Return a report."""
    return report_from_proto(scoring_pb2.Report.FromString(content))


def report_bytes(report: Report) -> bytes:
    """Return a report as bytes."""
    return report_to_proto(report).SerializeToString()
