"""What messages of chat completions say, by the shapes of servers."""

from __future__ import annotations

from typing import Any

import pytest
from support import scripted_llm as llm

from hallujudge.judge_service.llm.chat_replies import (
    ChatReply,
    parse_reply,
    reply_problem,
    said_in,
    usage_of,
)
from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind

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


@pytest.mark.parametrize(
    ("finish", "reason", "says"),
    [
        ("length", "REPLY_TRUNCATED", "the reply was cut off in its reasoning"),
        ("stop", "REPLY_ONLY_THOUGHT", "the reply has reasoning and no answer"),
    ],
)
def test_a_thought_alone_is_a_whole_reply_without_an_answer(
    finish: str, reason: str, says: str
) -> None:
    reply = reply_to(finish, content=None, reasoning_content="It may be.")
    assert (reply.content, reply.thought, reply.finish_reason) == ("", "It may be.", finish)
    assert reply.is_unfinished_thought
    problem = reply_problem(reply)
    assert problem is not None
    assert problem.reason == reason
    assert problem.detail.startswith(says)
    assert problem.detail.endswith(": 'It may be.'")


def test_a_thought_that_is_not_shown_is_told_by_its_tokens() -> None:
    choice = {"message": {"content": ""}, "finish_reason": "length"}
    usage = {"completion_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 64}}
    reply = parse_reply(llm.as_json({"choices": [choice], "usage": usage}).body)
    problem = reply_problem(reply)
    assert problem == (
        "REPLY_TRUNCATED",
        "the reply was cut off in its reasoning, before an answer",
    )


def test_thoughts_that_are_counted_in_the_total_only_are_completion_tokens() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 42,
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    assert usage_of(usage) == (10, 0, 32)
    assert usage_of(usage | {"total_tokens": 12}) == (10, 0, 2)


@pytest.mark.parametrize("arguments", ['{"verdict": "supported"}', {"verdict": "supported"}])
def test_the_arguments_of_a_tool_are_an_answer_where_one_is_read(arguments: object) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "j", "arguments": arguments}}
    message = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = llm.as_json({"choices": [message]}).body
    assert parse_reply(body, constrained=True).content == '{"verdict": "supported"}'
    with pytest.raises(CallFailedError):
        parse_reply(body)


@pytest.mark.parametrize(
    ("content", "is_told"),
    [
        ("{" + "\n \n" * 20, True),
        # Only the beginning is shown, which would be white space without a word.
        ("{" + " " * 100 + '"triplets": "' + "long " * 200, True),
        ('{"triplets": "' + "long " * 200, False),
    ],
)
def test_the_remedy_for_white_space_is_told(content: str, is_told: bool) -> None:
    problem = reply_problem(reply_to("length", content=content))
    assert problem is not None
    assert ("disable_any_whitespace" in problem.detail) is is_told


def test_a_thought_before_a_text_is_no_unfinished_one() -> None:
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
