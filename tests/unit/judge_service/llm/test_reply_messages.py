"""What messages of chat completions say, by the shapes of servers."""

from __future__ import annotations

from typing import Any

import pytest
from support import scripted_llm as llm

from hallujudge.judge_service.llm.chat import ChatReply, parse_reply, reply_problem
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.judge_service.llm.reply_messages import said_in

TEXT = {"type": "text", "text": "Yes."}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"content": "Yes."}, ("Yes.", "")),
        ({"content": ""}, ("", "")),
        ({"content": None}, (None, "")),
        ({}, (None, "")),
        ({"content": "<think>no</think>Yes."}, ("<think>no</think>Yes.", "")),
        ({"content": "Yes.", "reasoning_content": "Hm."}, ("Yes.", "Hm.")),
        ({"content": "Yes.", "reasoning": "Hm."}, ("Yes.", "Hm.")),
        ({"content": "Yes.", "thinking": "Hm."}, ("Yes.", "Hm.")),
        ({"content": "Yes.", "reasoning_content": " \n", "reasoning": "Hm."}, ("Yes.", "Hm.")),
        ({"content": "Yes.", "reasoning_content": "Hm.", "reasoning": "Hm."}, ("Yes.", "Hm.")),
        ({"content": "Yes.", "reasoning": {"effort": "low", "summary": None}}, ("Yes.", "")),
        (
            {"content": "Yes.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]},
            ("Yes.", "Hm."),
        ),
        ({"content": [TEXT]}, ("Yes.", "")),
        ({"content": [TEXT, TEXT]}, ("Yes.Yes.", "")),
        ({"content": []}, (None, "")),
        ({"content": [{"type": "thinking", "thinking": "Hm."}, TEXT]}, ("Yes.", "Hm.")),
        ({"content": [{"type": "thinking", "thinking": "Hm."}]}, (None, "Hm.")),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    TEXT,
                ]
            },
            ("Yes.", "Hm."),
        ),
        ({"content": [{"type": "redacted_thinking", "data": "c2ln"}, TEXT]}, ("Yes.", "")),
        (
            {
                "content": [
                    {"type": "reasoning", "reasoning": "c2ln", "redacted": True, "summary": "Hm."},
                    TEXT,
                ]
            },
            ("Yes.", "Hm."),
        ),
        (
            {
                "content": [
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                    TEXT,
                ]
            },
            ("Yes.", "Hm."),
        ),
    ],
)
def test_answer_and_thought(message: dict[str, Any], said: tuple[str | None, str]) -> None:
    assert said_in(message) == said


@pytest.mark.parametrize(
    "content", [7, {"text": "Yes."}, ["Yes."], [{"type": "image_url"}], [{"type": "text"}]]
)
def test_other_content_is_refused(content: object) -> None:
    with pytest.raises((ValueError, LookupError)):
        said_in({"content": content})


def test_a_thought_of_many_levels_is_not_followed() -> None:
    deep: object = "Hm."
    for _ in range(5_000):
        deep = [deep]
    assert said_in({"content": "Yes.", "thinking": deep}) == ("Yes.", "")


def reply_to(finish: str, **message: Any) -> ChatReply:
    choice = {"message": message, "finish_reason": finish}
    return parse_reply(llm.as_json({"choices": [choice]}).body)


def test_a_thought_alone_is_a_whole_reply_without_an_answer() -> None:
    for finish in ("length", "stop"):
        reply = reply_to(finish, content=None, reasoning_content="It may be.")
        assert (reply.content, reply.thought, reply.finish_reason) == ("", "It may be.", finish)
        assert reply.is_unfinished_thought
        problem = reply_problem(reply)
        assert problem is not None
        assert problem.reason == "REPLY_TRUNCATED"
        assert problem.detail == "the reply has reasoning and no answer: 'It may be.'"
    assert not reply_to("stop", content="Yes.", reasoning="It may be.").is_unfinished_thought
    refused = reply_problem(reply_to("stop", content=None, refusal="No.", reasoning="Hm."))
    assert refused is not None
    assert refused.reason == "JUDGE_REFUSED"


def test_nothing_at_all_is_a_reply_only_if_it_was_cut_off() -> None:
    cut = reply_problem(reply_to("length", content=None))
    assert cut is not None
    assert cut.reason == "REPLY_TRUNCATED"
    with pytest.raises(CallFailedError) as failed:
        reply_to("stop", content=None)
    assert failed.value.kind is FailureKind.BAD_REPLY
