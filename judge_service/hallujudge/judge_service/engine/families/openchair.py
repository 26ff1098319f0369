"""OpenCHAIR: the objects of captions, each of which a language model may judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.answers.closed_questions import Answer, AnswersEvidence, AnswersItem
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason
from hallujudge.metrics.openchair import BENCHMARK, IGNORED

from ...judges import payer_of
from ...judges.choice_judge import Chosen
from ...judges.questions import Question
from ...llm.estimate import Estimate
from ...threads import map_cpu
from ..judging_pipeline import (
    JudgedAnswersPipeline,
    choice_question,
    declared_entry,
    judging_of,
)
from ..pipelines import checked_items
from ..registry import Trial
from ..responses import Problem

_HOW = BENCHMARK.judged
assert _HOW is not None, "declared there"
_SLOTS, _CHOICES = _HOW.slots, tuple(_HOW.choices)


class MentionsPipeline(JudgedAnswersPipeline):
    """Scores the objects of captions by given judgements, or asks a judge about each."""

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; a batch's objects are asked together."""
        if self.judge is None:
            return await super().evaluate(items)
        captions: list[AnswersItem] = checked_items(items, AnswersItem)
        asked = [self._asked(item) for item in captions]
        answers = iter(await self.judge.choose([each for part in asked for each in part.values()]))
        chosen = [{place: next(answers) for place in part} for part in asked]
        return await map_cpu(
            lambda index: self._decided(captions[index], chosen[index]),
            range(len(captions)),
            chars=lambda index: self.size(captions[index]),
        )

    async def estimate(self, items: Sequence[Item]) -> list[Estimate]:
        """Return the calls that each language model would get, without calling it."""
        if self.judge is None:
            return []
        captions: list[AnswersItem] = checked_items(items, AnswersItem)
        parts = map(self._asked, captions)
        return await self.judge.estimates(each for part in parts for each in part.values())

    def problem(self, item: AnswersItem) -> Problem | None:
        """Return why a caption can't be scored, or None if it can; it may have no objects."""
        if self.judge is None:
            if all("judgement" in answer.fields for answer in item.answers):
                return None
            detail = "the objects came without judge_texts; set the option judgements to a judge"
            return UnscoredReason.VERDICT_NULL, detail
        return next(filter(None, map(self._reference_problem, item.answers)), None)

    def score(
        self,
        item: AnswersItem,
        probability: float | None = None,  # noqa: ARG002  # each mention would have its own
    ) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a caption."""
        return self.metric.score(item)

    def _asked(self, item: AnswersItem) -> dict[int, Question]:
        """Return place of a mention -> question; those that are ignored are not asked."""
        assert self.judge is not None, "only asked then"
        if self.problem(item) is not None:
            return {}
        [template] = self.judge.templates
        asked = {
            place: choice_question(template, _values(answer), _CHOICES)
            for place, answer in enumerate(item.answers)
            if answer.response not in IGNORED
        }
        return {
            place: replace(
                question,
                affinity=item.group_id or item.id,
                payer=payer_of(item.id, question.messages),
            )
            for place, question in asked.items()
        }

    def _decided(self, item: AnswersItem, chosen: dict[int, Chosen]) -> ItemResult:
        """Return the result of a caption; one without any judgement is unscored."""
        if (problem := self.problem(item)) is not None:
            return self.unscored(item, *problem)
        failed = [each for each in chosen.values() if not each.choice]
        if failed and len(failed) == len(chosen):
            return self.unscored(item, UnscoredReason(failed[0].reason), failed[0].detail)
        answers = [
            self._changed(answer, {"judgement": chosen[place].choice if place in chosen else ""})
            for place, answer in enumerate(item.answers)
        ]
        made = self.metric.score(replace(item, answers=tuple(answers)))
        evidence = replace(made.evidence, judging=judging_of(chosen.values()))
        return self.made_result(item, made._replace(evidence=evidence))


def _values(answer: Answer) -> dict[str, str]:
    return {slot: text_of(answer) for slot, text_of in _SLOTS.items()}


# The released rule needs an object of both kinds.
_TRIAL = Trial(item=BENCHMARK.trial, score="openchair", value=0.5)
ENTRIES = (replace(declared_entry(BENCHMARK, MentionsPipeline), trial=_TRIAL, judge_trial=_TRIAL),)
"""The metrics of the family."""
