"""What goes over the wire comes back the same."""

from __future__ import annotations

import re

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.messages import expected_message

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.judge_service.engine import InlineGraph, ScoreSpec, ShippedGraph
from hallujudge.judge_service.errors import REASONS, HallujudgeError, InvalidInputError, Violation
from hallujudge.judge_service.server.request_checks import items_from_proto
from hallujudge.judge_service.wire import convert as _convert
from hallujudge.judge_service.wire.errors import error_from_rpc, pushback, status_of
from hallujudge.metrics import (
    Bound,
    ChairEvidence,
    ChairItem,
    Coverage,
    IntervalSettings,
    Item,
    ItemResult,
    MentionVerdict,
    Outcome,
    Report,
    Score,
)
from hallujudge.metrics.framework.report import JudgeShare

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
fields = st.dictionaries(texts, texts, max_size=3)
offsets = st.integers(min_value=0, max_value=2**31)
chair_items = st.builds(
    ChairItem,
    id=texts,
    group_id=texts,
    fields=fields,
    response=st.none() | texts,
    reference_objects=st.none() | st.lists(texts, max_size=3).map(tuple),
)
evidence = st.builds(
    ChairEvidence,
    mentions=st.lists(
        st.builds(MentionVerdict, texts, texts, offsets, offsets, st.booleans()), max_size=3
    ).map(tuple),
    missed=st.lists(texts, max_size=3).map(tuple),
)
results = st.builds(
    ItemResult,
    id=texts,
    group_id=texts,
    outcome=st.sampled_from(Outcome),
    reason=texts,
    detail=texts,
    statistics=st.lists(numbers, max_size=6).map(tuple),
    scores=st.dictionaries(texts, st.none() | numbers, max_size=3),
    evidence=st.none() | evidence,
    fields=fields,
)
scores = st.builds(
    Score,
    name=st.just(""),
    value=st.none() | numbers,
    ci_low=st.none() | numbers,
    ci_high=st.none() | numbers,
    n=offsets,
)


def named_scores(keys: dict[str, Score]) -> dict[str, Score]:
    return {
        name: Score(name=name, value=s.value, ci_low=s.ci_low, ci_high=s.ci_high, n=s.n)
        for name, s in keys.items()
    }


score_maps = st.dictionaries(texts, scores, max_size=3).map(named_scores)
reports = st.builds(
    Report,
    metric=texts,
    variant=texts,
    signature=texts,
    scores=score_maps,
    groups=st.dictionaries(
        texts, st.dictionaries(texts, score_maps, min_size=1, max_size=2), max_size=2
    ),
    coverage=st.builds(
        Coverage,
        items=offsets,
        scored=offsets,
        unscored=offsets,
        reasons=st.dictionaries(texts, offsets, max_size=2),
        bounds=st.dictionaries(texts, st.builds(Bound, best=numbers, worst=numbers), max_size=2),
    ),
    totals=st.dictionaries(texts, numbers, max_size=3),
    settings=fields,
    judging=st.lists(
        st.builds(
            JudgeShare,
            judge=texts,
            decided=st.integers(0, 2**40),
            declined=st.dictionaries(texts, st.integers(0, 2**40), max_size=2),
            calls=st.integers(0, 2**40),
            cost=st.none() | numbers,
        ),
        max_size=2,
    ).map(tuple),
)
graphs = st.builds(ShippedGraph, name=texts) | st.builds(
    InlineGraph, name=texts, text=texts, layout=st.sampled_from(["auto", "json", "table"])
)
specs = st.builds(
    ScoreSpec,
    metric=texts.filter(bool),
    variant=texts,
    graphs=st.dictionaries(texts, graphs, max_size=2),
    options=fields,
    group_by=st.lists(texts, max_size=3).map(tuple),
    interval=st.builds(
        IntervalSettings,
        confidence=st.floats(0.01, 0.99),
    ),
)


@given(chair_items)
def test_items(item: Item) -> None:
    message = pb.Item.FromString(_convert.item_to_proto(item).SerializeToString())
    assert _convert.item_from_proto(message) == item


@given(results)
def test_results(result: ItemResult) -> None:
    message = pb.ItemResult.FromString(_convert.result_to_proto(result).SerializeToString())
    assert _convert.result_from_proto(message) == result


@given(reports)
def test_reports(report: Report) -> None:
    message = scoring_pb2.Report.FromString(_convert.report_to_proto(report).SerializeToString())
    assert _convert.report_from_proto(message) == report


@given(specs)
def test_specs(spec: ScoreSpec) -> None:
    message = scoring_pb2.ScoreSpec.FromString(_convert.spec_to_proto(spec).SerializeToString())
    assert _convert.spec_from_proto(message) == spec


@pytest.mark.parametrize(
    "message",
    [
        scoring_pb2.ScoreSpec(),
        scoring_pb2.ScoreSpec(metric="chair", graphs={"objects": scoring_pb2.GraphSource()}),
        scoring_pb2.ScoreSpec(metric="chair", interval=scoring_pb2.IntervalSpec(confidence=7)),
        scoring_pb2.ScoreSpec(
            metric="chair",
            graphs={
                "objects": scoring_pb2.GraphSource(inline=scoring_pb2.InlineGraph(layout="yaml"))
            },
        ),
    ],
)
def test_bad_specs_are_refused(message: scoring_pb2.ScoreSpec) -> None:
    with pytest.raises(InvalidInputError):
        _convert.spec_from_proto(message)


def test_an_item_without_a_task_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"item\.task: is missing"):
        _convert.item_from_proto(pb.Item(id="1"))


def failed(error: HallujudgeError) -> grpc.aio.AioRpcError:
    """A failed call as gRPC raises it."""
    status = status_of(error)
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    trailers = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailers, status.message, None)


def unreachable(details: str) -> grpc.aio.AioRpcError:
    """The error of gRPC where no server answers."""
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, nothing, nothing, details, None)


@pytest.mark.parametrize(("id", "size"), [("a" * 65_537, 65_537), ("€" * 21_846, 65_538)])
def test_an_id_of_more_than_65536_bytes_is_refused(id: str, size: int) -> None:
    def sent(name: str) -> list[Item]:
        item = ChairItem(id=name, response="A dog.", reference_objects=())
        return items_from_proto([_convert.item_to_proto(item)])

    assert [item.id for item in sent("€" * 21_845)] == ["€" * 21_845]
    with pytest.raises(InvalidInputError) as raised:
        sent(id)
    assert [one.field for one in raised.value.violations] == ["items[0].id"]
    problem = f"items[0].id: has {size} bytes; give an id of at most 65536"
    assert str(raised.value).startswith(problem)


def test_an_unknown_host_is_said_once() -> None:
    details = (
        "errors resolving nowhere.example:50051: [field:hostname lookup error:address lookup "
        "failed for nowhere.example:50051: Domain name not found]"
    )
    told = str(error_from_rpc(unreachable(details), target="nowhere.example:50051"))
    assert told.startswith(
        expected_message(
            "judge_service.wire.errors:no-hallujudge-server-answers-at-nowhere-example"
        )
    )


def test_an_address_of_ipv6_is_shown_with_its_brackets() -> None:
    details = (
        "failed to connect to all addresses; last error: UNKNOWN: ipv6:%5B::1%5D:50051: Failed to "
        "connect to remote host: Connection refused"
    )
    told = str(error_from_rpc(unreachable(details), target="localhost:50051"))
    assert "UNKNOWN: ipv6:[::1]:50051: Failed to connect" in told


def test_a_call_that_begins_while_its_connection_breaks_may_be_repeated() -> None:
    nothing = grpc.aio.Metadata()
    error = grpc.aio.AioRpcError(
        grpc.StatusCode.INTERNAL, nothing, nothing, "Internal error from Core", None
    )
    assert error_from_rpc(error, target="t").reason == "SERVER_UNREACHABLE"


def test_a_call_that_a_stopping_server_cancels_says_so() -> None:
    nothing = grpc.aio.Metadata()
    error = error_from_rpc(
        grpc.aio.AioRpcError(grpc.StatusCode.CANCELLED, nothing, nothing, "CANCELLED", None),
        target="lab:50051",
    )
    assert error.reason == "CALL_CANCELLED"
    assert "'lab:50051' ended the call without an answer" in str(error)


@pytest.mark.parametrize(
    ("code", "details", "reason", "said"),
    [
        # Recorded from nginx 1.22.1 through grpcio 1.78.
        (
            "UNKNOWN",
            "Received http2 header with status: 413",
            "MESSAGE_TOO_LARGE",
            "client_max_body_size",
        ),
        ("UNAVAILABLE", "Received http2 header with status: 502", "SERVER_UNREACHABLE", "502"),
        ("UNAVAILABLE", "Received http2 header with status: 504", "SERVER_UNREACHABLE", "504"),
        ("UNKNOWN", "Received http2 header with status: 408", "SERVER_UNREACHABLE", "408"),
        ("UNIMPLEMENTED", "Received http2 header with status: 404", "UNSUPPORTED", "grpc_pass"),
        ("UNKNOWN", "Received http2 header with status: 301", "INTERNAL", "grpc_pass"),
        (
            "INTERNAL",
            "Stream removed (RST_STREAM (Received RST_STREAM with error code 2))",
            "INTERNAL",
            "client_max_body_size",
        ),
        # Recorded from Envoy 1.40.0.
        (
            "UNAVAILABLE",
            "upstream connect error or disconnect/reset before headers. reset reason: remote "
            "connection failure",
            "SERVER_UNREACHABLE",
            "upstream",
        ),
        ("UNAVAILABLE", "upstream request timeout", "SERVER_UNREACHABLE", "timeout"),
    ],
)
def test_what_proxies_answer_is_said_to_be_theirs(
    code: str, details: str, reason: str, said: str
) -> None:
    nothing = grpc.aio.Metadata()
    sent = grpc.aio.AioRpcError(grpc.StatusCode[code], nothing, nothing, details, None)
    error = error_from_rpc(sent, target="lab:50051")
    assert error.reason == reason
    assert {"proxy", said, "'lab:50051'"} <= set(re.findall(r"'lab:50051'|[\w]+", str(error)))
    assert "hallujudge serve" not in str(error)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_comes_back_as_the_class_it_was(reason: str) -> None:
    row = REASONS[reason]
    sent = row.error(
        "what and where",
        reason=reason,
        metadata={"metric": "chair"},
        violations=(Violation(field="a.b", description="c"), Violation(field="d", description="e")),
        retry_after=1.25,
    )
    got = error_from_rpc(failed(sent), target="t")
    assert type(got) is row.error
    assert (got.reason, got.message, got.metadata) == (reason, "what and where", sent.metadata)
    assert (got.violations, got.retry_after) == (sent.violations, 1.25)
    assert failed(sent).code() is grpc.StatusCode[row.code]
    assert pushback(sent) == (("grpc-retry-pushback-ms", "1250"),)


def test_reasons_are_well_formed() -> None:
    import re

    for reason, row in REASONS.items():
        assert re.fullmatch(r"[A-Z][A-Z0-9_]+[A-Z0-9]", reason)
        assert len(reason) <= 63
        assert row.code in grpc.StatusCode.__members__
    classes = {row.error for row in REASONS.values()}
    assert {cls.default_reason for cls in classes} <= set(REASONS)
