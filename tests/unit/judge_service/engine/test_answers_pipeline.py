"""Items of closed questions as any client may send them: scored, or unscored with a reason."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, ClosedQuestions
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
@given(data=st.data())
def test_whatever_is_sent_has_an_outcome(benchmark: ClosedQuestions, data: st.DataObject) -> None:
    known = [*(answer.name for answer in benchmark.trial.answers), *benchmark.bundle.names]
    named = st.sampled_from(known or [""])
    given_answers = data.draw(st.lists(answers, max_size=4))
    item = AnswersItem(
        id="1",
        answers=tuple(
            answer._replace(name=data.draw(named)) if data.draw(st.booleans()) else answer
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
