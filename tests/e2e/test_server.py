"""A real server: health, errors on the wire, admission, deadlines, drain."""

from __future__ import annotations

import math
import signal
import socket
import threading
import time
from collections.abc import Iterator

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from support.messages import expected_message
from support.rpc import health_stub, refused
from support.running import ServerProcess, cli, here
from support.threads import PATIENCE

from hallujudge.judge.v1 import chair_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.metrics import ChairItem
from hallujudge.sdk import Client

ITEM = pb.Item(
    id="1",
    chair=chair_pb2.ChairTask(
        response="A dog and a cat.", reference_objects=scoring_pb2.StringList(values=["dog"])
    ),
)
SPEC = scoring_pb2.ScoreSpec(metric="chair", interval=scoring_pb2.IntervalSpec(confidence=0.9))


@pytest.fixture
def stub(server: str) -> Iterator[pb_grpc.JudgeServiceStub]:
    with grpc.insecure_channel(server) as channel:
        yield pb_grpc.JudgeServiceStub(channel)


def test_unary_score(stub: pb_grpc.JudgeServiceStub) -> None:
    response = stub.Score(pb.ScoreRequest(spec=SPEC, items=[ITEM]), timeout=PATIENCE)
    assert response.statistic_names[:2] == ["mentioned", "hallucinated"]
    assert list(response.results[0].statistics[:2]) == [2, 1]
    mention = response.results[0].chair.mentions[1]
    assert (mention.word, mention.object, mention.hallucinated) == ("cat", "cat", True)
    assert response.report.scores[0].value == 0.5


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (pb.ScoreRequest(), "INVALID_ARGUMENT", "INVALID_INPUT"),
        (
            pb.ScoreRequest(spec=scoring_pb2.ScoreSpec(metric="bleu")),
            "NOT_FOUND",
            "METRIC_UNKNOWN",
        ),
        (
            pb.ScoreRequest(
                spec=scoring_pb2.ScoreSpec(
                    metric="chair",
                    graphs={"objects": scoring_pb2.GraphSource(shipped="/etc/passwd")},
                )
            ),
            "NOT_FOUND",
            "GRAPH_UNKNOWN",
        ),
        (
            pb.ScoreRequest(
                spec=scoring_pb2.ScoreSpec(
                    metric="chair",
                    graphs={
                        "objects": scoring_pb2.GraphSource(
                            inline=scoring_pb2.InlineGraph(name="x", text="{", layout="json")
                        )
                    },
                )
            ),
            "INVALID_ARGUMENT",
            "GRAPH_INVALID",
        ),
        (
            pb.ScoreRequest(
                spec=scoring_pb2.ScoreSpec(
                    metric="chair", variant="best", options={"count": "x", "colour": "red"}
                )
            ),
            "INVALID_ARGUMENT",
            "INVALID_INPUT",
        ),
        (pb.ScoreRequest(spec=SPEC, items=[ITEM, ITEM]), "INVALID_ARGUMENT", "INVALID_INPUT"),
        (
            pb.ScoreRequest(spec=SPEC, items=[ITEM], scores=["chair_x"]),
            "INVALID_ARGUMENT",
            "INVALID_INPUT",
        ),
        (
            pb.ScoreRequest(spec=SPEC, items=[pb.Item(id="1")]),
            "INVALID_ARGUMENT",
            "INVALID_INPUT",
        ),
    ],
)
def test_refusals(
    stub: pb_grpc.JudgeServiceStub, request_: pb.ScoreRequest, code: str, reason: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(request_, timeout=PATIENCE)
    assert refused(caught.value) == (grpc.StatusCode[code], reason)


@pytest.mark.parametrize("words", [1, 2_000])
def test_scores_that_are_named_come_without_results_and_report(
    stub: pb_grpc.JudgeServiceStub, words: int
) -> None:
    """In this process, and in a worker, which gets longer messages."""
    texts = ["A dog and a cat. " * words, "A dog.", "", "A view."]
    items = [pb.Item(id=str(at), chair=ITEM.chair) for at in range(len(texts))]
    for item, text in zip(items, texts, strict=True):
        item.chair.response = text
    request = pb.ScoreRequest(spec=SPEC, items=items, scores=["recall", "chair_i"])
    found = stub.Score(request, timeout=PATIENCE)
    request.ClearField("scores")
    whole = stub.Score(request, timeout=PATIENCE)
    assert [column.name for column in found.columns] == ["recall", "chair_i"]
    for column in found.columns:
        own = [{s.name: s.value for s in r.scores if s.HasField("value")} for r in whole.results]
        values = [None if math.isnan(value) else value for value in column.values]
        assert values == [scores.get(column.name) for scores in own]
    assert [(one.position, one.reason) for one in found.unscored] == [(2, "RESPONSE_EMPTY")]
    assert (len(found.results), found.HasField("report")) == (0, False)


def test_every_violation_is_listed(stub: pb_grpc.JudgeServiceStub) -> None:
    from hallujudge.judge_service.wire.errors import error_from_rpc

    spec = scoring_pb2.ScoreSpec(metric="chair", variant="v", options={"count": "x", "hue": "red"})
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(pb.ScoreRequest(spec=spec), timeout=PATIENCE)
    error = error_from_rpc(caught.value, target="t")
    assert isinstance(error, InvalidInputError)
    assert {violation.field for violation in error.violations} == {
        "spec.variant",
        "spec.options['count']",
        "spec.options['hue']",
    }


def test_a_stream_must_begin_with_a_spec(stub: pb_grpc.JudgeServiceStub) -> None:
    batch = pb.ScoreStreamRequest(batch=pb.ItemBatch(items=[ITEM]))
    spec = pb.ScoreStreamRequest(spec=SPEC)
    for messages in ([], [batch], [spec, spec]):
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.ScoreStream(iter(messages), timeout=PATIENCE))
        assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


def test_equal_ids_in_a_message_of_a_stream_are_refused(stub: pb_grpc.JudgeServiceStub) -> None:
    batch = pb.ScoreStreamRequest(batch=pb.ItemBatch(items=[ITEM, ITEM]))
    messages = [pb.ScoreStreamRequest(spec=SPEC), batch]
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.ScoreStream(iter(messages), timeout=PATIENCE))
    assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
    # Places are counted over all messages of the stream.
    assert "items[1].id: '1' is also the id of items[0]" in str(caught.value.details())


def test_a_stream_answers_in_order_and_ends_with_the_report(
    stub: pb_grpc.JudgeServiceStub,
) -> None:
    messages = [pb.ScoreStreamRequest(spec=SPEC)] + [
        pb.ScoreStreamRequest(
            batch=pb.ItemBatch(items=[pb.Item(id=f"{b}-{i}", chair=ITEM.chair) for i in range(3)])
        )
        for b in range(40)
    ]
    answers = list(stub.ScoreStream(iter(messages), timeout=PATIENCE))
    assert answers[0].WhichOneof("message") == "accepted"
    ids = [result.id for answer in answers[1:-1] for result in answer.batch.results]
    assert ids == [f"{b}-{i}" for b in range(40) for i in range(3)]
    assert answers[-1].report.coverage.items == 120


def test_a_stream_leaves_the_report_out_for_clients_that_make_it(
    stub: pb_grpc.JudgeServiceStub,
) -> None:
    messages = [
        pb.ScoreStreamRequest(spec=SPEC, results_only=True),
        pb.ScoreStreamRequest(batch=pb.ItemBatch(items=[ITEM])),
    ]
    answers = list(stub.ScoreStream(iter(messages), timeout=PATIENCE))
    kinds = [answer.WhichOneof("message") for answer in answers]
    assert [kind for kind in kinds if kind != "progress"] == ["accepted", "batch"]


def test_extract_normalize_and_list(stub: pb_grpc.JudgeServiceStub) -> None:
    claims = stub.Extract(pb.ExtractRequest(spec=SPEC, texts=["Two dogs."]), timeout=PATIENCE)
    found = claims.texts[0].claims[0]
    assert (found.mention.object, found.start, found.end) == ("dog", 4, 8)
    words = stub.Normalize(
        pb.NormalizeRequest(
            graph=scoring_pb2.GraphSource(shipped="coco"), words=["puppy", "nothing at all"]
        ),
        timeout=PATIENCE,
    )
    assert [list(word.roots) for word in words.words] == [["dog"], []]
    metrics = stub.ListMetrics(pb.ListMetricsRequest(), timeout=PATIENCE).metrics
    assert "chair" in {metric.name for metric in metrics}
    with pytest.raises(grpc.RpcError) as caught:
        stub.Judge(pb.JudgeRequest(spec=SPEC), timeout=PATIENCE)
    assert refused(caught.value)[0] is grpc.StatusCode.UNIMPLEMENTED


def test_health_and_reflection(server: str) -> None:
    with grpc.insecure_channel(server) as channel:
        health = health_stub(channel)
        for name in ("", "hallujudge.judge.v1.JudgeService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=PATIENCE)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert "hallujudge.judge.v1.JudgeService" in services


def test_sigterm_lets_a_call_finish() -> None:
    running_server = ServerProcess("--drain-seconds", "600")
    working = threading.Event()

    def items() -> Iterator[ChairItem]:
        for n in range(400):
            time.sleep(0.005)
            yield ChairItem(id=str(n), response="A dog.", reference_objects=("dog",))

    reports: list[object] = []
    with Client(running_server.address) as client:
        thread = threading.Thread(
            target=lambda: reports.append(
                client.score_items(
                    ScoreSpec(metric="chair"), items(), on_batch=lambda _: working.set()
                )
            )
        )
        thread.start()
        assert working.wait(PATIENCE)
        running_server.process.send_signal(signal.SIGTERM)
        thread.join(PATIENCE)
    code, errors = running_server.stop()
    assert code == 0, errors
    assert len(reports) == 1
    assert "Traceback" not in errors


def test_a_port_in_use_is_an_error_in_one_sentence(server: str) -> None:
    run = cli("serve", "--port", server.rpartition(":")[2])
    assert run.returncode == 2
    assert "cannot listen on" in run.stderr
    assert run.stderr.count("\n") == 1, "gRPC's own log has no line here"


@pytest.mark.parametrize(
    "command",
    [
        ("serve", "--port", "0", "--http-port", "{}"),
        ("serve", "--port", "0", "--metrics-port", "{}"),
        ("view", ".", "--no-browser", "--port", "{}"),
    ],
)
def test_other_ports_in_use_are_one_line_too(command: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        run = cli(*(word.format(port) for word in command))
    assert run.returncode in (1, 2)
    assert port in run.stderr
    assert run.stderr.count("\n") == 1


def test_doctor_and_config(server: str) -> None:
    run = here("doctor", "--server", server)
    assert run.returncode == 0, run.stdout + run.stderr
    # Every metric is tried here and there; those whose parts are not installed are absent.
    assert run.stdout.count(expected_message("sdk.cli.installation_checks:as-it-should-be")) >= 12
    assert expected_message("studies.analysis.tri_he:metric-tri-he-here") in run.stdout
    assert f"metric chair at {server}" in run.stdout
    assert run.stdout.index(f"server {server}") < run.stdout.index("metric chair here")
    down = here("doctor", "--server", "127.0.0.1:1")
    assert down.returncode == 1
    assert "FAILED" in down.stdout
    assert down.stdout.endswith("\nfailed: server 127.0.0.1:1\n")
    shown = here("config", "show")
    assert shown.returncode == 0
    assert "port = 50051  # default" in shown.stdout
    assert cli("--version").stdout.startswith("hallujudge ")


@pytest.mark.parametrize("value", ["x" * 50_000, "ä" * 5_000, "\N{SNOWMAN}" * 5_000])
def test_an_error_that_no_header_can_hold_is_shortened(
    stub: pb_grpc.JudgeServiceStub, value: str
) -> None:
    spec = scoring_pb2.ScoreSpec(metric="tri-he", options={"extractor": value})
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(pb.ScoreRequest(spec=spec), timeout=PATIENCE)
    assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
    assert value[:100] in (caught.value.details() or "")
    assert (caught.value.details() or "").endswith("…")


def test_as_many_violations_are_listed_as_a_header_holds(stub: pb_grpc.JudgeServiceStub) -> None:
    from hallujudge.judge_service.wire.errors import error_from_rpc

    items = [pb.Item(id=f"{n}") for n in range(2_000)]
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(pb.ScoreRequest(spec=SPEC, items=items), timeout=PATIENCE)
    assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
    error = error_from_rpc(caught.value, target="t")
    assert [violation.field for violation in error.violations[:2]] == [
        "items[0].task",
        "items[1].task",
    ]
    assert "2000 of 2000 items" in error.message
