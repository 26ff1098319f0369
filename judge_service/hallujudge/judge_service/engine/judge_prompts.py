"""Options that choose a judge's or an extractor's prompt, and questions with fenced texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hallujudge.metrics.answers.answer_text import folded, texts_in
from hallujudge.metrics.framework.metric import OptionDefinition

from ..judges.questions import Question
from ..llm.prompt_templates import as_line, fenced

if TYPE_CHECKING:
    from ..llm.prompt_templates import Template

PROMPT_PRESET, NO_PRESET = "prompt_preset", "none"
"""The option that names a printed prompt, and its value for none."""


def prompt_option(name: str, slots: Sequence[str], about: str = "") -> OptionDefinition:
    """Return the option that holds a user's own prompt."""
    marks = ", ".join(f"{{{{{slot}}}}}" for slot in slots)
    return OptionDefinition(
        name=name,
        default="",
        meaning=f"Own prompt of the judge{about}.",
        details=f"The text has the marks {marks}.",
        purpose="judge",
        file=True,
    )


def printed_prompts(metric: str) -> tuple[str, ...]:
    """Return the prompts of a judge that the metric's paper prints."""
    from ..llm.paper_prompts import JUDGE, presets_of

    return presets_of(metric, JUDGE)


def preset_option(*names: str) -> OptionDefinition:
    """Return the option that names a prompt that the metric's paper prints."""
    return OptionDefinition(
        name=PROMPT_PRESET,
        default=NO_PRESET,
        choices=(NO_PRESET, *names),
        meaning="Prompt that the paper prints.",
        details="Its own form of reply is read; none: our prompt.",
        purpose="judge",
    )


def preset_in(options: Mapping[str, str]) -> str:
    """Return the preset that options name; empty without one."""
    return options.get(PROMPT_PRESET, NO_PRESET).replace(NO_PRESET, "")


def choice_question(
    template: Template, values: Mapping[str, str | Sequence[str]], choices: Sequence[str]
) -> Question:
    """Return a question whose texts are fenced, each as one line of data.

    Args:
        template: The prompt, with a slot for each text.
        values: Slot -> text, or list of texts, that can't be trusted.
        choices: What may be answered.
    """
    blocks = {slot: fenced(slot.upper(), [as_line(text)]) for slot, text in values.items()}
    return Question(
        template=template,
        messages=template.messages(blocks),
        claims=(0,),
        choices=tuple(choices),
        keyed=False,
    )


def printed_question(template: Template, response: str, slot: str, people: str) -> Question:
    """Return POPE's printed question, whose reply is an answer of people, or ``<NAN>``.

    Args:
        template: The printed prompt.
        response: The student's answer.
        slot: Slot of the answers of people.
        people: These answers, as a field holds them.
    """
    from ..llm.paper_prompts import NOT_AMONG_THEM

    answers = texts_in(people)
    choices = dict.fromkeys([*map(folded, answers), NOT_AMONG_THEM])
    return choice_question(template, {slot: answers, "response": response}, tuple(choices))
