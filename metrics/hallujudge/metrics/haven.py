"""HAVEN: answers about videos by cause, aspect and form, which a judge grades 1 or 0.

Gao et al., 2025; released script ``Judge/Judge.py``, whose judge grades each answer. It stores the
grader's text as it is, and F for a call without a reply. The sums are ours, after the paper's
tables; none is released with it.

* ``accuracy`` = answers graded right / answers
* ``groups_of_several_all_right`` = groups whose graded answers are all right / groups
* ``groups_of_several_with_one_verdict`` = groups whose graded answers are all right or all wrong /
  groups; in both, the groups are the values of ``Group_id`` with two or more graded answers
* ``unparsed_rate`` = grades that could not be read / answers

The groups of the report are ``cause``, ``aspect`` and ``form``. Variants:

* ``paper``: only the text "1" is right. Any other is wrong, such as "1.", "Correct" and F.
* ``two-calls`` reads grades alike. A language model that judges first extracts the answer to a
  question with options, as the released judge does, and grades what it extracted.
* ``corrected`` reads a leading 1 or 0, else the words correct and incorrect. Other texts, F and
  empty ones among them, are unscored.

How the paper's "bias score" measures consistency by group is not certain. An early commit of the
repository (489850d, ``Evaluation/Consistency.py``) counts groups of several questions with one
verdict, by the texts of verdicts; here "1." and "0" are both wrong in ``paper``. Its accuracy is
over 6,497 questions, however many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from msgspec import structs

from .answers.answer_scores import AnswerScore, accuracy, is_right, unparsed_rate, value_of
from .answers.answer_text import number_of
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    JudgedAnswers,
    Keys,
    Parsed,
    one_answer,
)
from .framework import columns_and_scores as framework
from .framework.arrays import FloatArray
from .framework.asking import plain
from .framework.columns_and_scores import Column, Grouping
from .framework.metric import verdicts_option

FAILED = "F"
"""What the released judge stores for a call without a reply."""
_GRADES = ("0", "1")
_WITH_OPTIONS = ("Binary-choice", "Multiple-choice")
_GRADE_KEYS = ("Correctness", "judgement")
# "1", "1." and "0 (wrong)"; neither 10 nor 1.5.
_LEADING = re.compile(r"\W*([01])(?![.,]?\d)\b")
# "incorrect" and "not correct" hold the word correct, so that the denial is part of the match.
_WORDS = re.compile(r"\b(not\s+|in)?correct\b", re.IGNORECASE)


def _paper(answer: Answer) -> Parsed:
    said = answer.fields.get("judgement", "")
    return Parsed(said if said in _GRADES else None, said == "1", "exact grade")


def _corrected(answer: Answer) -> Parsed:
    said = answer.fields.get("judgement", "")
    leading = _LEADING.match(said)
    # A text with both words, such as "not correct, as the correct one is", decides nothing.
    words = {"0" if found else "1" for found in _WORDS.findall(said)}
    grade = leading[1] if leading else words.pop() if len(words) == 1 else None
    return Parsed(grade, grade == "1", "leading grade or word")


def _completed(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer whose empty grade is not a missing one: the blank keeps them apart."""
    # The released judge also stores empty replies, which the variant paper counts as wrong.
    if answer.fields.get("judgement") or "" not in map(record.get, _GRADE_KEYS):
        return answer
    return structs.replace(answer, fields={**answer.fields, "judgement": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups(AnswersMetric):
    """A metric whose questions of one group are looked at together."""

    extraction_prompts: ClassVar[dict[str, str]] = {"two-calls": "haven_extract"}
    place_columns: ClassVar[tuple[Column, ...]] = (
        Column(name="group", meaning="group, as a number", integral=False, label=True),
    )

    def extracts(self, item: AnswersItem) -> bool:
        """Return whether a question has options; the released judge asks once about others."""
        return self.variant == "two-calls" and item.fields.get("form") in _WITH_OPTIONS

    def places(self, item: AnswersItem) -> tuple[float, ...]:
        """Return the group of a question as a number; 0 without one."""
        group = item.fields.get("group", "")
        return (number_of(group) if group else 0,)

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the columns of groups, each with the value of a group in one of its rows."""
        # A grade that can't be read leaves its group smaller.
        graded = (items["group"] > 0) & (items["graded"] > 0)
        groups = Grouping(items["group"], graded)
        size, right = groups.count(graded), groups.count(items["grade"] > 0)
        several, all_right = size > 1, right == size
        return {
            "groups": groups.placed(several),
            "groups_right": groups.placed(several & all_right),
            "groups_of_one_verdict": groups.placed(several & (all_right | (right == 0))),
        }


_ACCURACY = accuracy("answers graded right / answers", among="graded")
# Its values make the columns of groups, so that rows stay as they are.
_GRADE = value_of("grade", "whether the grade is right", is_right)


def _of_groups(name: str, meaning: str, column: str) -> AnswerScore:
    """Return a share of the groups with several graded answers."""
    name, meaning = f"groups_of_several_{name}", f"groups of several{meaning} / such groups"
    definition = framework.share(name, meaning, column, "groups", bounded=False)
    # expand() reads the grades, and which answers are graded, of all rows.
    return AnswerScore(definition=definition, counts=(_GRADE, *_ACCURACY.counts[1:]))


def _notes(totals: Mapping[str, float]) -> Iterator[str]:
    if unread := totals.get("unparsed", 0):
        yield f"{unread:,.0f} grades, {FAILED} among them, are not the text 1 or 0: they are wrong"


BENCHMARK = ClosedQuestions(
    name="haven",
    title="HAVEN: answers about videos by cause, aspect and form, graded by a judge.",
    unit="answers",
    keys=Keys(
        id=("Index", "id", "question_id"),
        response=("Model Answer", "response", "prediction", "output"),
        label=(),
        media=("Video Path", "video"),
        fields={
            "cause": ("Causes", "cause"),
            "aspect": ("Aspects", "aspect"),
            "form": ("Form", "form"),
            "group": ("Group_id", "group"),
            "reference": ("Answer", "reference"),
            "judgement": _GRADE_KEYS,
        },
        optional=("group", "judgement"),
    ),
    seen=("judgement",),
    labels=(),
    question_files="questions.json",
    complete=_completed,
    asking=plain("{{question}}"),
    variants=(
        AnswerVariant(
            name="paper",
            meaning='Only the grade "1" is right; any other text, also of failed calls, is wrong.',
            parse=_paper,
            notes=_notes,
        ),
        AnswerVariant(
            name="two-calls",
            meaning="As paper; a judge extracts answers to questions with options, then grades.",
            parse=_paper,
            notes=_notes,
        ),
        AnswerVariant(
            name="corrected",
            meaning="Reads a leading 1 or 0, correct and incorrect; other grades are unscored.",
            parse=_corrected,
            unparsed="unscored",
        ),
    ),
    options=(verdicts_option("judgements", "Judgements of answers.", "those of the file"),),
    judged=JudgedAnswers(
        choices={grade: grade for grade in _GRADES},
        prompts={"": "haven"},
    ),
    scores=(
        _ACCURACY,
        _of_groups("all_right", " with right answers only", "groups_right"),
        _of_groups("with_one_verdict", ", all right or all wrong", "groups_of_one_verdict"),
        unparsed_rate("answered", "answers", noun="grades"),
    ),
    ranked_by=("accuracy",),
    trial=one_answer(
        id="1",
        question="Is the man sewing?",
        response="No.",
        fields={"cause": "Conflict with prior", "aspect": "Event", "form": "Binary-choice"},
        answer_fields={"judgement": "1", "reference": "No"},
    ),
    group_by=("cause", "aspect", "form"),
    base=_Groups,
)
"""The declaration."""
