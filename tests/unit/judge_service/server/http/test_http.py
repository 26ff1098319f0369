"""Messages as JSON, and errors as HTTP."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.rpc import status_pb2

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.judge_service.errors import REASONS, InvalidInputError, OverloadedError
from hallujudge.judge_service.server.http.compatible_calls import parsed_json
from hallujudge.judge_service.server.http.exchange import (
    HTTP_STATUSES,
    error_body,
    error_headers,
    http_status,
)
from hallujudge.judge_service.server.http.json_messages import JsonForm, find_misfit, json_text
from hallujudge.judge_service.wire.errors import status_of


def report_of(groups: int) -> scoring_pb2.Report:
    return scoring_pb2.Report(
        metric="chair",
        settings={"b": "1", "a": '\u00fc\u2028"\\'},
        notes=["One.", ""],
        coverage=scoring_pb2.Coverage(items=2**60, bounds=[scoring_pb2.Bound(name="x")]),
        groups=[
            scoring_pb2.GroupScores(
                key="model",
                value=f"m{number}",
                scores=[scoring_pb2.Score(name="x", value=float("nan"), ci_low=0.0, n=number)],
            )
            for number in range(groups)
        ],
    )


@pytest.mark.parametrize(
    "message",
    [
        pb.ScoreResponse(),
        pb.ScoreResponse(report=scoring_pb2.Report()),
        pb.ScoreResponse(report=report_of(1), statistic_names=["a", "b"]),
        pb.ScoreResponse(
            report=report_of(2000),
            statistic_names=["a"] * 10,
            results=[
                pb.ItemResult(
                    id=str(number),
                    outcome=pb.OUTCOME_SCORED,
                    statistics=[0.1, 1e-9, 1e22],
                    fields={"z": "1", "a": "2"},
                )
                for number in range(500)
            ],
        ),
        pb.ScoreStreamResponse(report=report_of(2000)),
    ],
    ids=lambda message: f"{type(message).__name__} {message.ByteSize()}",
)
def test_messages_are_written_as_protobuf_writes_them(message: Message) -> None:
    expected = json_format.MessageToJson(message, indent=None, sort_keys=True, ensure_ascii=False)
    assert json_text(message).decode() == expected


def test_a_list_in_place_of_its_message_is_told_how_it_is_written() -> None:
    item = {"chair": {"response": "A cat.", "reference_objects": ["cat"]}}
    found = find_misfit({"items": [item]}, pb.ScoreRequest.DESCRIPTOR)
    assert found is not None
    assert found.field == "items[0].chair.reference_objects"
    assert found.description == 'must be {"values": […]}, not a list'
    other = find_misfit({"items": [[]]}, pb.ScoreRequest.DESCRIPTOR)
    assert other is not None
    assert other.description == "must be an object, not a list"


def test_every_status_of_grpc_has_one_of_http() -> None:
    assert set(HTTP_STATUSES) == {code.name for code in grpc.StatusCode} - {"OK"}
    assert {HTTP_STATUSES[row.code] for row in REASONS.values()} >= {400, 401, 403, 404, 429, 503}


def test_an_error_says_when_to_try_again() -> None:
    status = status_of(OverloadedError("full", retry_after=1.2))
    assert http_status(status) == 429
    assert error_headers(status) == [("retry-after", "2")]
    assert b'"code": "resource_exhausted"' in error_body(status)


def test_an_unknown_code_is_no_traceback() -> None:
    status = status_pb2.Status(code=99, message="x")
    assert (http_status(status), error_body(status)) == (
        500, b'{"code": "unknown", "message": "x"}',
    )  # fmt: skip


async def test_lists_within_lists_by_the_thousand_are_named_as_such() -> None:
    deep = "[" * 20_000 + "]" * 20_000
    with pytest.raises(InvalidInputError, match=r"^the body is nested too deeply$"):
        parsed_json(deep)
    with pytest.raises(InvalidInputError, match="the body is nested too deeply"):
        await JsonForm(scoring_pb2.Report.FromString).parse(f'{{"groups": {deep}}}'.encode())
