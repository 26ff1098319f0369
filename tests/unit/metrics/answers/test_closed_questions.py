"""What is hashed of a bundle of answers, against the plain definition."""

from __future__ import annotations

from itertools import product

import pytest

from hallujudge.metrics import Answer, AnswersItem
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.event_hallusion import BENCHMARK as EVENT_HALLUSION
from hallujudge.metrics.families import FAMILIES, benchmarks_of, family_of
from hallujudge.metrics.infact import BENCHMARK as INFACT
from hallujudge.metrics.openchair import BENCHMARK as OPENCHAIR
from hallujudge.metrics.pope import BENCHMARK as POPE
from hallujudge.metrics.video_hallucer import BENCHMARK as VIDEO_HALLUCER
from hallujudge.metrics.vidhal import MCQA
from hallujudge.metrics.vqa import BENCHMARK as VQA

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


@pytest.mark.parametrize(
    ("benchmark", "slot", "lacking"),
    [
        (EVENT_HALLUSION, "event", "no event to judge by; give it"),
        (OPENCHAIR, "caption", "no gt_caption to judge by; give it"),
        (VQA, "accepted", "no direct_answers to judge by; give it"),
    ],
)
def test_a_judge_needs_the_slot_of_the_reference(
    benchmark: ClosedQuestions, slot: str, lacking: str
) -> None:
    assert benchmark.judged is not None
    assert benchmark.judged.reference == slot
    assert benchmark.lacking == lacking


def test_files_are_named_by_the_values_of_a_field() -> None:
    splits, sets = POPE.split_files, VIDEO_HALLUCER.set_files
    assert splits is not None
    assert sets is not None
    assert (splits.field, splits.names["adv"]) == ("category", "adversarial")
    assert (sets.field, sets.names["obj_rel"]) == ("set", "object_relation")
    assert POPE.set_files is VIDEO_HALLUCER.split_files is MCQA.set_files is None


def test_answers_choose_if_those_of_the_trial_item_have_options() -> None:
    assert MCQA.choices
    assert not INFACT.choices


def test_what_is_measured_follows_the_name_in_the_title() -> None:
    assert POPE.summary == "Yes answers to questions about objects that an image lacks."


@pytest.mark.parametrize("family", FAMILIES)
def test_a_metric_belongs_to_the_family_that_declares_it(family: str) -> None:
    assert {family_of(each.name) for each in benchmarks_of(family)} <= {family}
