"""What is hashed of a bundle of answers, against the plain definition."""

from __future__ import annotations

from itertools import product

import pytest

from hallujudge.metrics import Answer, AnswersItem

FIELDS: tuple[dict[str, str], ...] = (
    {},
    {"b": "2", "a": "1"},
    {"a": "1", "confidence": "0.5", "b": ""},
    {"judgement": "yes", "a": "", "correctness": "right"},
)
OPTIONS: tuple[dict[str, str], ...] = ({}, {"B": "two", "A": "one"})
CASES = list(product(FIELDS, OPTIONS))


def plain(answer: Answer) -> tuple[object, object]:
    said = sorted(
        (name, text)
        for name, text in answer.fields.items()
        if text and name not in {"confidence", "judgement", "correctness", "same"}
    )
    options = tuple(sorted(answer.options.items()))
    asked = [("", answer.question, options)] if options else answer.question
    return asked, [answer.label, said] if said else answer.label


@pytest.mark.parametrize(("fields", "options"), CASES)
def test_one_answer_is_hashed_as_its_question_and_its_label(
    fields: dict[str, str], options: dict[str, str]
) -> None:
    answer = Answer("Yes", "yes", "x", "Is it?", options, fields)
    assert tuple(AnswersItem(id="1", answers=(answer,)).records()) == plain(answer)


@pytest.mark.parametrize(("fields", "options"), CASES)
def test_one_question_is_the_same_under_one_condition_and_under_several(
    fields: dict[str, str], options: dict[str, str]
) -> None:
    answers = tuple(Answer("Yes", "yes", name, "Is it?", options, fields) for name in "xy")
    asked, said = AnswersItem(id="1", answers=answers).records()
    assert asked == plain(answers[0])[0]
    assert said == plain(answers[0])[1]
