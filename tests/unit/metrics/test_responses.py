"""The text and the thought of what model servers send."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.metrics.responses import sent_text
from hallujudge.metrics.responses.thoughts import Said, divided, opening_at_end

THOUGHT, ANSWER = "no cat, but a dog", "Yes."
PARTS = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": ANSWER}]
GEMINI = {"parts": [{"text": THOUGHT, "thought": True}, {"text": ANSWER}], "role": "model"}
SUMMARY = {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]}
SAID = {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}


def message(content: object, **more: object) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


@pytest.mark.parametrize(
    "sent",
    [
        PARTS,
        message(PARTS),
        message(ANSWER, reasoning_content=THOUGHT),
        {"content": ANSWER, "reasoning": THOUGHT},
        message([ANSWER], reasoning=THOUGHT),
        message([PARTS[0], "Yes", "."]),
        {"type": "message", "content": PARTS, "stop_reason": "end_turn"},
        {"choices": [{"message": message(ANSWER, reasoning=THOUGHT)}]},
        {"object": "response", "output": [SUMMARY, SAID]},
        {"candidates": [{"content": GEMINI, "finishReason": "STOP"}]},
        {"model": "m", "message": message(ANSWER, thinking=THOUGHT), "done": True},
        {"outputs": [{"text": f"<think>{THOUGHT}</think>{ANSWER}", "finish_reason": "stop"}]},
    ],
)
def test_a_reply_is_its_text_after_its_thought(sent: object) -> None:
    text = sent_text(sent)
    assert isinstance(text, str)
    assert divided(text)[:2] == (ANSWER, THOUGHT)


@pytest.mark.parametrize(
    "sent",
    [
        message(None, reasoning_content=THOUGHT),
        {"type": "message", "content": PARTS[:1], "stop_reason": "max_tokens"},
        {"candidates": [{"content": {"parts": GEMINI["parts"][:1]}}]},
        {"output": [SUMMARY], "status": "incomplete"},
    ],
)
def test_a_thought_without_a_text_has_no_end(sent: object) -> None:
    text = sent_text(sent)
    assert isinstance(text, str)
    said = divided(text)
    assert (said.answer, said.thought, said.finished) == ("", THOUGHT, False)


@pytest.mark.parametrize(
    "sent", [message(None), message([]), {"candidates": [{"content": {"role": "model"}}]}]
)
def test_a_reply_without_a_text_is_none(sent: object) -> None:
    assert sent_text(sent) is None


def test_a_refusal_is_the_text_of_its_message() -> None:
    assert sent_text(message(None, refusal="I can't help.")) == "I can't help."


def test_calls_of_tools_are_no_text() -> None:
    call = {"type": "tool_use", "name": "zoom", "input": {"text": "dog"}}
    assert sent_text([call, {"type": "text", "text": ANSWER}]) == ANSWER


@pytest.mark.parametrize(
    "other",
    [
        "Yes.",
        None,
        {"content": "a dog"},
        {"choices": [{"label": "A", "text": "a dog"}], "answer": "A"},
        {"label": "yes", "message": {"role": "assistant", "content": "Yes."}},
        {"basic": "Yes", "hallucination": "No"},
        ["A", "B"],
        [{"text": "a dog"}],
        {"outputs": [{"id": 1, "text": "a dog"}]},
        [{"type": "image_url", "image_url": {"url": "x"}}],
    ],
)
def test_anything_else_stays_as_it_is(other: object) -> None:
    assert sent_text(other) is other


@pytest.mark.parametrize(
    ("prompt", "mark"),
    [
        ("<|im_start|>assistant\n<think>\n", "<think>"),
        ("<|im_start|>assistant\n", ""),
        ("[THINK]", "[THINK]"),
        ("<think>\n\n</think>\n\n", ""),
    ],
)
def test_a_prompt_may_begin_the_thought(prompt: str, mark: str) -> None:
    assert opening_at_end(prompt) == mark
    assert divided(f"{mark}Is it a cat").finished is not bool(mark)
    assert divided("Yes.") == Said("Yes.")
