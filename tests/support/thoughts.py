"""Responses with thoughts, in the forms that models write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from hallujudge.metrics import AnswersItem, Item

__all__ = ["FORMS", "UNFINISHED", "with_texts"]

FORMS: Mapping[str, Callable[[str, str], str]] = {
    "<think>": lambda thought, answer: f"<think>{thought}</think>\n{answer}",
    "</think> alone": lambda thought, answer: f"{thought}\n</think>\n\n{answer}",
    "<thinking>": lambda thought, answer: (
        f"<thinking>{thought}</thinking><answer>{answer}</answer>"
    ),
    "<reasoning>": lambda thought, answer: f"<reasoning>{thought}</reasoning>{answer}",
    "<reason>": lambda thought, answer: f"<reason>{thought}</reason>{answer}",
    "<|begin_of_thought|>": lambda thought, answer: (
        f"<|begin_of_thought|>\n\n{thought}\n\n<|end_of_thought|>\n\n"
        f"<|begin_of_solution|>\n\n{answer}\n\n<|end_of_solution|>"
    ),
    "[THINK]": lambda thought, answer: f"[THINK]{thought}[/THINK]{answer}",
    "◁think▷": lambda thought, answer: f"◁think▷{thought}◁/think▷{answer}",
    "<|channel|>": lambda thought, answer: (
        f"<|channel|>analysis<|message|>{thought}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{answer}<|return|>"
    ),
    "<seed:think>": lambda thought, answer: f"<seed:think>{thought}</seed:think>{answer}",
    "<|channel>thought": lambda thought, answer: f"<|channel>thought\n{thought}<channel|>{answer}",
    "<|begin_of_box|>": lambda thought, answer: (
        f"<think>{thought}</think><answer><|begin_of_box|>{answer}<|end_of_box|></answer>"
    ),
    r"\boxed{}": lambda thought, answer: f"{thought} $\\boxed{{\\text{{{answer}}}}}$",
}
"""Form -> text of a thought and an answer in it."""

UNFINISHED = ("<think>", "<thinking>", "[THINK]", "◁think▷", "<|channel|>analysis<|message|>")
"""What comes before a thought that a token limit cuts off."""


def with_texts(item: Item, change: Callable[[str], str | None]) -> Item:
    """Return an item with other texts in place of its responses; missing ones stay missing."""

    def changed(text: str | None) -> str | None:
        return None if text is None else change(text)

    if isinstance(item, AnswersItem):
        answers = tuple(structs.replace(a, response=changed(a.response)) for a in item.answers)
        return structs.replace(item, answers=answers)
    more: dict[str, Any] = {"response": changed(getattr(item, "response", None))}
    return structs.replace(item, **more)
