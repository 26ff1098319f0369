"""What servers send in the place of a reply."""

from __future__ import annotations

import json

import pytest
from support import scripted_llm as llm
from support.messages import expected_message

from hallujudge.judge_service.llm.failures import FailureKind, failure_in_reply, failure_of_status

KEY = "sk-" + "a1" * 20


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (204, FailureKind.NOT_THE_API),
        (301, FailureKind.MODEL),
        (308, FailureKind.MODEL),
        (401, FailureKind.AUTH),
        (402, FailureKind.QUOTA),
        (403, FailureKind.REFUSED),
        (404, FailureKind.MODEL),
        (405, FailureKind.MODEL),
        (407, FailureKind.SERVER),
        (410, FailureKind.MODEL),
        (418, FailureKind.REFUSED_REQUEST),
        (421, FailureKind.MODEL),
        (425, FailureKind.SERVER),
        (429, FailureKind.RATE),
        (451, FailureKind.REFUSED_REQUEST),
        (499, FailureKind.SERVER),
        (501, FailureKind.MODEL),
        (504, FailureKind.TIMEOUT),
        (524, FailureKind.TIMEOUT),
        (529, FailureKind.SERVER),
    ],
)
def test_a_status_has_its_kind_and_the_message_of_the_server(
    status: int, kind: FailureKind
) -> None:
    body = json.dumps({"error": {"message": "No."}}).encode()
    failure = failure_of_status(status, {}, body, now=0)
    assert (failure.kind, failure.detail) == (kind, f"HTTP {status}: No.")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (llm.QUOTA_AT_LITELLM, FailureKind.QUOTA),
        (
            llm.error(429, "You exceeded your current quota. Please retry in 34.1s."),
            FailureKind.RATE,
        ),
        (
            llm.error(429, "You exceeded your current quota.", **{"Retry-After": "7"}),
            FailureKind.RATE,
        ),
        (
            llm.error(400, "litellm.ContentPolicyViolationError: filtered", "400"),
            FailureKind.REFUSED,
        ),
        (llm.error(413, "x", "context_length_exceeded"), FailureKind.TOO_LONG),
        (llm.UNREAD_AT_LLAMA, FailureKind.BAD_REPLY),
        (llm.NO_DECISIONS_AT_VLLM, FailureKind.MODEL),
    ],
)
def test_words_tell_kinds_where_a_server_hides_the_code(
    reply: llm.Reply, kind: FailureKind
) -> None:
    failure = failure_of_status(reply.status, reply.headers, reply.body, now=0)
    assert failure.kind is kind


def test_a_body_that_a_proxy_does_not_take_is_said_to_be_one() -> None:
    page = b"<html><head><title>413 Request Entity Too Large</title></head></html>"
    failure = failure_of_status(413, {}, page, now=0)
    assert failure.detail.startswith(
        "HTTP 413: the server, or a proxy in front of it, does not take"
    )
    assert failure.kind is FailureKind.REFUSED_REQUEST
    assert "client_max_body_size" in failure.detail


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        ({"code": 429, "message": "Slow down"}, FailureKind.RATE, "Slow down"),
        ({"code": "insufficient_quota", "message": "Pay"}, FailureKind.QUOTA, "Pay"),
        ({"message": "No provider"}, FailureKind.NOT_THE_API, "No provider"),
        ("No provider", FailureKind.NOT_THE_API, "No provider"),
        ({"code": "odd"}, FailureKind.NOT_THE_API, "odd"),
    ],
)
def test_gateways_send_errors_with_the_status_of_a_reply(
    error: object, kind: FailureKind, told: str
) -> None:
    failure = failure_in_reply(json.dumps({"error": error}).encode())
    assert failure is not None
    assert failure.kind is kind
    assert failure.detail == expected_message(
        "judge_service.llm.failures:an-error-in-place-of-reply", told
    )


@pytest.mark.parametrize(
    "reply",
    [{"error": None}, {"choices": [], "error": {"code": 500}}, {"x": 1}, ["error"], "error"],
)
def test_other_replies_are_left_to_their_reader(reply: object) -> None:
    assert failure_in_reply(json.dumps(reply).encode()) is None
    assert failure_in_reply(b'{"error": ' * 9_999) is None


@pytest.mark.parametrize(
    "message",
    [
        f"Incorrect API key provided: {KEY}.",
        f"header was 'Authorization: Bearer {KEY}'",
        "api_key=" + "0f" * 16,
        "x" * 290 + f" {KEY}",
    ],
)
@pytest.mark.parametrize("layout", ["object", "text"])
def test_messages_show_no_keys(message: str, layout: str) -> None:
    body = json.dumps({"error": {"message": message}}) if layout == "object" else message
    shown = failure_of_status(401, {}, body.encode(), now=0).detail
    assert "a1a1" not in shown
    assert "0f0f" not in shown
    assert len(shown) <= 310


def test_messages_are_one_line_that_no_terminal_obeys() -> None:
    body = json.dumps({"error": {"message": "\x1b[2Jgone\r\nerror: fake\u2028x\u202ey"}}).encode()
    assert failure_of_status(500, {}, body, now=0).detail == "HTTP 500: [2Jgone error: fake x y"


@pytest.mark.parametrize("layout", ["object", "text"])
def test_messages_are_shortened(layout: str) -> None:
    message = "no such parameter; " * 1000
    body = json.dumps({"error": {"message": message}}) if layout == "object" else message
    assert failure_of_status(500, {}, body.encode(), now=0).detail == f"HTTP 500: {message[:300]}"
