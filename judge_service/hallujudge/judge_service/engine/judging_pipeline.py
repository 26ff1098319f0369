"""Pipelines of single responses that a language model may judge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.metric import SOFT, YES, OptionDefinition

from ..cpu_work import map_cpu
from ..errors import InvalidInputError
from .judge_factory import check_probabilities
from .judge_options import ESCALATION_OPTIONS, escalation_of
from .judge_quality import CARD_OPTION
from .pipelines import MetricT, TextPipeline, checked_items
from .registry import LLM_JUDGES, MetricEntry
from .responses import ResponseCheck

if TYPE_CHECKING:
    from ..judges.choice_judge import ChoiceJudge, Chosen
    from ..judges.judge_prompts import Question
    from ..llm.estimate import Estimate
    from ..llm.prompt_templates import Template
    from .resources import Resources
    from .spec import ScoreSpec


_ItemT = TypeVar("_ItemT", bound=Item)


class JudgingPipeline(TextPipeline[_ItemT, MetricT]):
    """Scores each item by its response, or by the judgement of a language model.

    A family's subclass makes the question (:meth:`question`) and reads the choice
    (:meth:`judged`).

    Args:
        metric: The metric.
        responses: Recognises missing responses.
        judge: The language models, or None if no judge is called.
        notes: Sentences for the report.
    """

    def __init__(
        self,
        metric: MetricT,
        responses: ResponseCheck,
        judge: ChoiceJudge | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(metric, responses, notes)
        self.judge = judge

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of all text pipelines, and the judge with its prompts and parameters."""
        if self.judge is None:
            return super().settings
        identity = self.judge.identity
        return {
            **super().settings,
            "judge_model": str(identity),
            "judge_prompts": identity.template,
            **{f"judge.{name}": value for name, value in identity.parameters},
        }

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; a batch's questions are asked together."""
        if self.judge is None:
            return await super().evaluate(items)
        mine: list[_ItemT] = checked_items(items, self.item_type)  # type: ignore[arg-type]  # a family's own type
        questions = self._questions(mine)
        chosen = dict(
            zip(questions, await self.judge.choose(list(questions.values())), strict=True)
        )
        return await map_cpu(
            lambda index: self.judged(mine[index], chosen.get(index)),
            range(len(mine)),
            chars=lambda index: self.size(mine[index]),
        )

    async def estimate(self, items: Sequence[Item]) -> list[Estimate]:
        """Return the calls that each language model would get, without calling it."""
        if self.judge is None:
            return []
        mine: list[_ItemT] = checked_items(items, self.item_type)  # type: ignore[arg-type]  # a family's own type
        return await self.judge.estimates(self._questions(mine).values())

    def _questions(self, items: Sequence[_ItemT]) -> dict[int, Question]:
        from ..judges.judge_interface import payer_of

        asked = ((index, item, self.question(item)) for index, item in enumerate(items))
        return {
            index: replace(
                question,
                affinity=item.group_id or item.id,
                payer=payer_of(item.id, question.messages),
            )
            for index, item, question in asked
            if question is not None
        }

    @abstractmethod
    def question(self, item: _ItemT) -> Question | None:
        """Return the question for the judge about an item, or None if there is none."""

    @abstractmethod
    def judged(self, item: _ItemT, chosen: Chosen | None) -> ItemResult:
        """Return the result of an item; ``None`` if the judge was not asked about it."""


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


def choice_judge(
    spec: ScoreSpec,
    entry: MetricEntry,
    prompts: Mapping[str, Sequence[str]],
    slots: Sequence[str],
    resources: Resources,
) -> ChoiceJudge | None:
    """Return the judge that a spec names, or None if it names none.

    Args:
        spec: The spec.
        entry: The metric's entry.
        prompts: Name of each shipped prompt -> the options that may hold the user's own instead.
        slots: The slots of the prompts.
        resources: Provides the language models.

    Raises:
        InvalidInputError: The judge is not configured, or a prompt can't be used.
    """
    if entry.asks_llm(spec):
        templates = [_template(spec, name, own, slots) for name, own in prompts.items()]
        name = spec.options[entry.judge_option]
        if spec.options.get(SOFT) == YES:
            check_probabilities(resources.judges, name, others="")
        return resources.judges.choice_judge(name, templates, escalation_of(spec))
    about = [each.name for each in (*ESCALATION_OPTIONS, CARD_OPTION)]
    given = [name for name in about if spec.options.get(name)]
    if spec.options.get(SOFT) == YES:
        given.append(SOFT)
    if given:
        raise InvalidInputError(
            f"the option {given[0]} is about a judge, but no judge is asked; set the "
            f"option {entry.judge_option} to {' or '.join(LLM_JUDGES)}"
        )
    for option in (option for own in prompts.values() for option in own):
        if spec.options.get(option):
            raise InvalidInputError(
                f"the option {option} is a judge's prompt, but no judge is asked; set the "
                f"option {entry.judge_option} to {' or '.join(LLM_JUDGES)}"
            )
    return None


def _template(spec: ScoreSpec, name: str, own: Sequence[str], slots: Sequence[str]) -> Template:
    from ..llm.prompt_templates import load_template, own_template

    text = next((spec.options[option] for option in own if spec.options.get(option)), "")
    return own_template(text, slots) if text else load_template(name)


def choice_question(
    template: Template, values: Mapping[str, str], choices: Sequence[str]
) -> Question:
    """Return a question whose texts are fenced, each as one line of data.

    Args:
        template: The prompt, with a slot for each text.
        values: Slot -> text that can't be trusted.
        choices: What may be answered.
    """
    from ..judges.judge_prompts import Question
    from ..llm.prompt_templates import as_line, fenced

    blocks = {slot: fenced(slot.upper(), [as_line(text)]) for slot, text in values.items()}
    return Question(
        template=template,
        messages=template.messages(blocks),
        claims=(0,),
        choices=tuple(choices),
        keyed=False,
    )
