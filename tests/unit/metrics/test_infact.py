"""INFACT's totals over questions, and questions that can't be scored."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from oracles import answers_published as oracle
from support.messages import expected_message
from support.qa_samples import infact_questions

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.metrics import Answer, AnswersItem
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.infact import InfactMetric
from hallujudge.sdk import Client

WORDS = dict(zip("ABCD", ["a red dog", "two men", "rain", "wind"], strict=True))


@pytest.mark.parametrize("words", [{}, WORDS], ids=["letters", "words"])
def test_totals_over_questions_equal_the_formulas(words: dict[str, str]) -> None:
    questions = infact_questions(200, seed=4)
    metric = InfactMetric()
    rows: Counter[tuple[float, ...]] = Counter()
    for question in questions:
        answers = tuple(
            Answer(
                response=words.get(said, said),
                label=words.get(question["label"], question["label"]),
                name=operator,
                fields={"order_sensitive": str(question["order_sensitive"]).casefold()},
            )
            for operator, said in question["runs"].items()
        )
        rows[metric.score(AnswersItem(id="1", answers=answers)).statistics] += 1
    sums = {name: np.array([total]) for name, total in metric.totals(rows).items()}
    got = {score.name: float(score.value(sums)[0]) for score in metric.scores}
    for name, wanted in oracle.infact(questions).items():
        assert got[name] == pytest.approx(wanted, nan_ok=True), name


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"rotate": {}}, UnscoredReason.OPERATOR_UNKNOWN),
        ({"shuffle": {}}, UnscoredReason.BASE_MISSING),
        ({"base": {"label": " "}}, UnscoredReason.LABEL_INVALID),
        ({"base": {}, "shuffle": {"label": "B"}}, UnscoredReason.LABEL_INVALID),
        ({"base": {"options": {"B": "red"}}}, UnscoredReason.LABEL_INVALID),
        ({"base": {"fields": {"confidence": "85"}}}, UnscoredReason.CONFIDENCE_INVALID),
        ({"base": {"fields": {"confidence": "nan"}}}, UnscoredReason.CONFIDENCE_INVALID),
    ],
)
async def test_a_question_that_can_not_be_scored_has_its_reason(
    answers: dict[str, dict[str, Any]], reason: UnscoredReason
) -> None:
    given = [
        Answer(**{"response": "A", "label": "A", "name": name, **own})
        for name, own in answers.items()
    ]
    session = await Engine().open(ScoreSpec(metric="infact"))
    [result] = await session.score([AnswersItem(id="1", answers=tuple(given))])
    assert result.reason is reason


def test_a_mean_without_a_value_says_which_operators_are_missing() -> None:
    totals = {column.name: 1.0 for column in InfactMetric.columns} | {"missing": 0.0}
    assert InfactMetric().notes_on(totals) == ()
    (note,) = InfactMetric().notes_on({**totals, "asked_motion_blur": 0, "asked_reverse": 0})
    assert note.startswith(
        expected_message("metrics.infact.operators:no-value-rr-visual-degradation-tss-average")
    )
    assert (
        expected_message("metrics.infact.operators:parsed-answer-under-motion-blur-reverse") in note
    )
    nothing = dict.fromkeys(totals, 0.0)
    (note,) = InfactMetric().notes_on({**nothing, "runs": 1})
    assert note.endswith(
        expected_message("metrics.infact.operators:no-question-has-right-answer-to-the")
    )
    assert InfactMetric().notes_on(nothing) == (), "a server says it of no question in advance"


def test_missing_answers_of_scored_questions_are_noted() -> None:
    said = {"base": "A", "motion_blur": None, "compression": "B", "shuffle": ""}
    asked = {"question_id": 1, "label": "A", "order_sensitive": True}
    rows = [{**asked, "operator": name, "response": text} for name, text in said.items()]
    with Client.embedded() as client:
        report = client.score("infact", responses=rows)
    assert report.totals["missing"] == 2
    assert "2 of 4 answers to scored questions are missing, and count in no score." in report.notes
