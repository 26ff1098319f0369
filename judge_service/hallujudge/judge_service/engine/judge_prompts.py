"""Options that choose a judge's or an extractor's prompt, and questions with fenced texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hallujudge.metrics.answers.answer_text import folded, texts_in
from hallujudge.metrics.answers.closed_questions import ClosedQuestions, JudgedAnswers
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.framework.asking import is_prompt_text
from hallujudge.metrics.framework.metric import JudgeOption, OptionDefinition

from ..errors import InvalidInputError
from ..judges.questions import Question
from ..llm.prompt_templates import (
    JUDGE,
    NOT_AMONG_THEM,
    Template,
    as_line,
    fenced,
    load_template,
    own_template,
    paper_prompt,
    presets_of,
)

if TYPE_CHECKING:
    from .spec import ScoreSpec

PROMPT_PRESET, NO_PRESET = "prompt_preset", "none"
"""The option that names a printed prompt, and its value for none."""


def prompt_option(name: str, slots: Sequence[str], about: str = "") -> OptionDefinition:
    """Return the option that holds a user's own prompt."""
    marks = ", ".join(f"{{{{{slot}}}}}" for slot in slots)
    return JudgeOption(
        name=name,
        meaning=f"Own prompt of the judge{about}.",
        details=f"The text has the marks {marks}.",
        file=True,
    )


def printed_prompts(metric: str) -> tuple[str, ...]:
    """Return the prompts of a judge that the metric's paper prints."""
    return presets_of(metric, JUDGE)


def preset_option(*names: str) -> OptionDefinition:
    """Return the option that names a prompt that the metric's paper prints."""
    return JudgeOption(
        name=PROMPT_PRESET,
        choices=(NO_PRESET, *names),
        meaning="Prompt that the paper prints.",
        details="Its own form of reply is read; none: our prompt.",
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
    answers = texts_in(people)
    # People give the same answer in several spellings.
    choices = dict.fromkeys([*map(folded, answers), NOT_AMONG_THEM])
    return choice_question(template, {slot: answers, "response": response}, tuple(choices))


def template_of(spec: ScoreSpec, name: str, own: Sequence[str], slots: Sequence[str]) -> Template:
    """Return a declared prompt, or what the user gives instead.

    Args:
        spec: The spec.
        name: The name of the declared prompt, or its text.
        own: The options that may hold the user's own.
        slots: The slots that it has.

    Raises:
        InvalidInputError: A prompt can't be used, or two are given.
    """
    text = next((spec.options[option] for option in own if spec.options.get(option)), "")
    if preset := preset_in(spec.options):
        if text:
            raise InvalidInputError(
                f"the options {PROMPT_PRESET} and {own[-1]} are both given; give one of them"
            )
        return paper_prompt(preset, spec.metric, JUDGE).template
    # A prompt that a declaration has as a text has no name, which the signature needs.
    if not text and is_prompt_text(name):
        return replace(own_template(name, slots), name=spec.metric)
    return own_template(text, slots) if text else load_template(name)


def judged_in(benchmark: ClosedQuestions) -> JudgedAnswers:
    """Return what a judge may be asked in a benchmark."""
    assert benchmark.judged is not None, "only such benchmarks have this pipeline"
    return benchmark.judged


def declared_prompts(benchmark: ClosedQuestions, spec: ScoreSpec) -> dict[str, tuple[str, ...]]:
    """Return each declared prompt -> the options that may hold the user's own instead.

    The prompt that extracts, if the variant has one, is the last.
    """
    how, metric = judged_in(benchmark), metric_of(benchmark)
    if own := metric.verdict_prompts.get(spec.variant):
        return {own: ("prompt",)}
    first: dict[str, tuple[str, ...]] = {}
    if extracting := metric.extraction_prompts.get(spec.variant):
        first[extracting] = ()
    if not benchmark.prompt_by:
        return dict.fromkeys(how.prompts.values(), ("prompt",)) | first
    return {name: (f"prompt_{value}", "prompt") for value, name in how.prompts.items()} | first


def own_prompts(benchmark: ClosedQuestions) -> Iterator[OptionDefinition]:
    """Yield the options of a user's own prompts."""
    how, by = judged_in(benchmark), benchmark.prompt_by
    yield prompt_option("prompt", tuple(how.slots), by and f" for all {by}s")
    if printed := printed_prompts(benchmark.name):
        yield preset_option(*printed)
    for value in how.prompts if by else ():
        yield prompt_option(f"prompt_{value}", tuple(how.slots), f" for {value}")
