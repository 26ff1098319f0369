"""Items of closed questions as any client may send them: scored, or unscored with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.sizes import examples

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.answers_pipeline import AnswersPipeline
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.responses import ResponseCheck
from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.answers.answer_scores import all_right
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.choices import parse_as_labelled
from hallujudge.metrics.answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
)
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.families import FAMILIES, benchmarks_of
from hallujudge.metrics.framework.results import UnscoredReason

BENCHMARKS = [benchmark for family in FAMILIES for benchmark in benchmarks_of(family)]
WORDS = ("", "yes", "No.", "coco", "A", "B, A, C", "basic", "hallucination", "base", "1", "\ud800")


def result_of(benchmark: ClosedQuestions, variant: str, item: AnswersItem) -> ItemResult:
    async def scored() -> ItemResult:
        session = await Engine().open(ScoreSpec(metric=benchmark.name, variant=variant))
        [result] = await session.score([item])
        return result

    return asyncio.run(scored())


words = st.sampled_from(WORDS)
answers = st.builds(
    Answer,
    response=st.none() | words,
    label=words,
    name=words,
    options=st.dictionaries(words, words, max_size=3),
    fields=st.dictionaries(words, words, max_size=2),
)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.name)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_an_outcome_depends_on_no_items_before_it(
    benchmark: ClosedQuestions, data: st.DataObject
) -> None:
    names = st.sampled_from([each.name for each in benchmark.trial.answers])
    own = [*benchmark.of_answers, *benchmark.places, *benchmark.keys.fields]
    fields = st.dictionaries(st.sampled_from(own or [""]), words, max_size=2)
    trial = st.sampled_from(benchmark.trial.answers)
    changed = st.builds(
        lambda one, response, name, more: structs.replace(
            one, response=response, name=name, fields={**one.fields, **more}
        ),
        trial,
        st.none() | words,
        names,
        fields,
    )
    bundles = data.draw(st.lists(st.lists(trial | changed, max_size=2), min_size=2, max_size=4))
    places = data.draw(st.lists(fields, min_size=4, max_size=4))
    items = [
        structs.replace(
            benchmark.trial,
            id=str(number),
            answers=tuple(bundle),
            fields={**benchmark.trial.fields, **own_fields},
        )
        for number, (bundle, own_fields) in enumerate(zip(bundles, places, strict=False))
    ]

    async def scored(some: Sequence[AnswersItem]) -> list[ItemResult]:
        session = await Engine().open(ScoreSpec(metric=benchmark.name))
        return await session.score(some)

    together = asyncio.run(scored(items))
    assert together == [result for item in items for result in asyncio.run(scored([item]))]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda one: one.name)
@given(data=st.data())
def test_whatever_is_sent_has_an_outcome(benchmark: ClosedQuestions, data: st.DataObject) -> None:
    known = [*(answer.name for answer in benchmark.trial.answers), *benchmark.names]
    named = st.sampled_from(known or [""])
    given_answers = data.draw(st.lists(answers, max_size=4))
    item = AnswersItem(
        id="1",
        answers=tuple(
            structs.replace(answer, name=data.draw(named)) if data.draw(st.booleans()) else answer
            for answer in given_answers
        ),
        fields={**benchmark.trial.fields, **data.draw(st.dictionaries(words, words, max_size=2))},
    )
    for variant in benchmark.variants:
        result = result_of(benchmark, variant.name, item)
        assert result.outcome in (Outcome.SCORED, Outcome.UNSCORED)


def test_an_answer_of_another_name_leaves_its_bundle_unscored() -> None:
    entry = metric_entry("video-hallucer")
    trial = entry.trial.item
    assert isinstance(trial, AnswersItem)
    (benchmark,) = (one for one in BENCHMARKS if one.name == "video-hallucer")
    more = AnswersItem(
        id="1",
        fields=trial.fields,
        answers=(*trial.answers, Answer(response="yes", label="coco", name="third")),
    )
    result = result_of(benchmark, "published", more)
    assert result.reason is UnscoredReason.PLACE_INVALID


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices(AnswersMetric):
    """A metric of choices under conditions, without the label green."""

    @classmethod
    def conditions(cls, record: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(COMPARED.names)

    def problem(self, item: AnswersItem) -> tuple[UnscoredReason, str] | None:
        is_green = any(answer.label == "green" for answer in item.answers)
        return (UnscoredReason.LABEL_INVALID, "green is no choice") if is_green else None


COMPARED = ClosedQuestions(
    name="compared",
    title="Choices: choices under several conditions.",
    unit="questions",
    keys=Keys(
        response=("response",),
        label=("label",),
        fields={"condition": ("condition",), "sure": ("sure",)},
    ),
    labels=(),
    base=_Choices,
    bundle=Bundling(name=("condition",)),
    places={"condition": {"plain": "as it is", "noisy": "with noise"}},
    seen=("sure",),
    variants=(AnswerVariant(name="own", meaning="Choices.", parse=parse_as_labelled),),
    scores=(all_right("accuracy", "right questions / questions", own=True),),
    ranked_by=("accuracy",),
    trial=AnswersItem(id="1", answers=(Answer(response="A", label="A", name="plain"),)),
)


TWO_SIDES = {"true": "what is shown", "false": "what is not shown"}


def test_half_a_pair_is_never_right() -> None:
    bundle = Bundling(by=("pair",), name=("condition",))
    pair = tuple(Answer(response="A", label="A", name=name) for name in TWO_SIDES)
    trial, places = AnswersItem(id="1", answers=pair), {"condition": TWO_SIDES}
    declared = structs.replace(COMPARED, bundle=bundle, places=places, trial=trial, base=None)
    pipeline = AnswersPipeline(metric_of(declared)(variant="own"), ResponseCheck({}))
    whole, half = (
        pipeline.result(AnswersItem(id="1", answers=answers)) for answers in (pair, pair[:1])
    )
    assert whole.scores == {"accuracy": 1.0}
    assert (half.outcome, half.reason) == (Outcome.UNSCORED, UnscoredReason.RESPONSE_MISSING)
    assert half.detail == "there is no false answer"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([{"name": "plain"}, {"name": "noisy"}], None),
        ([{"name": "plain"}, {"name": "blurred"}], UnscoredReason.OPERATOR_UNKNOWN),
        ([{"name": "noisy"}], UnscoredReason.BASE_MISSING),
        ([{"name": "plain"}, {"name": "noisy", "label": "B"}], UnscoredReason.LABEL_INVALID),
        ([{"name": "plain", "label": "blue"}], None),
        ([{"name": "plain", "label": "green"}], UnscoredReason.LABEL_INVALID),
    ],
)
def test_what_a_declaration_says_of_bundles_is_checked(
    answers: list[dict[str, Any]], reason: UnscoredReason | None
) -> None:
    said = {"response": "A", "label": "A", "options": {"A": "blue", "B": "red"}}
    item = AnswersItem(id="1", answers=tuple(Answer(**{**said, **each}) for each in answers))
    pipeline = AnswersPipeline(metric_of(COMPARED)(variant="own"), ResponseCheck({}))
    problem = pipeline.problem(item)
    assert (problem[0] if problem else None) is reason
