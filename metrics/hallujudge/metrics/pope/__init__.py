"""POPE: yes/no questions about objects that an image shows or lacks.

Li et al., Evaluating Object Hallucination in Large Vision-Language Models, 2023. Over questions
with the label yes or no (section 5.1, "Metrics"), with yes as the positive class:

* ``accuracy`` = right answers / answers
* ``precision`` = right yes / all yes
* ``recall`` = right yes / (right yes + wrong no)
* ``f1`` = 2 right yes / (2 right yes + wrong yes + wrong no), the harmonic mean of the two
* ``yes_ratio`` = yes / answers, of the *predictions* (one tool reports the labels' share)
* ``unparsed_rate`` = unparsed answers / all answers

A variant is a parser of ``hallujudge.metrics.answers.yes_no``. ``published`` follows the released
script: an answer that is not clearly no is yes, so that none is unparsed. ``lmms-eval`` and
``vlmevalkit`` count unparsed answers as wrong, as those tools do. Precision and recall of
``lmms-eval`` leave them out; recall of ``vlmevalkit`` counts them as no, and its table counts an
item in each of its categories. ``strict`` leaves them unscored.

Differences from the released scripts: they join answers to questions by order, and stop with a
division by zero if a model never says yes. Here the precision is then None, and ``f1`` is 0 if any
answer is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..answers.answer_scores import ReadAnswer, count, is_right, share
from ..answers.answer_text import folded
from ..answers.answers_metric import metric_of
from ..answers.closed_questions import (
    AnswerVariant,
    ClosedQuestions,
    Keys,
    UnparsedAs,
    compared_by,
    one_answer,
)
from ..answers.yes_no import YES_NO_PARSERS
from ..framework.metric import Paper


def _variant(
    name: str, meaning: str, unparsed: UnparsedAs = "wrong", repeated_by: str = ""
) -> AnswerVariant:
    return AnswerVariant(
        name=name,
        meaning=meaning,
        parse=compared_by(YES_NO_PARSERS[name], name),
        unparsed=unparsed,
        repeated_by=repeated_by,
    )


def _false_no(answer: ReadAnswer) -> bool:
    said_no = answer.value == "no" or answer.unparsed == "no"
    return answer.label == "yes" and said_no


_ANSWERED = count("answered", "answers that count in the accuracy")
_TP = count("tp", "yes to objects that are there", lambda a: a.value == "yes" and a.right)
_FP = count("fp", "yes to objects that are not there", lambda a: a.value == "yes" and not a.right)
_TN = count("tn", "no to objects that are not there", lambda a: a.value == "no" and a.right)
_FN = count("fn", "no to objects that are there", _false_no)
# An unparsed answer is wrong in the accuracy, but only where it counts as a no also in f1.
_WRONG = count(
    "wrong",
    "wrong answers that count in f1",
    lambda a: not is_right(a) and (a.value is not None or _false_no(a)),
)
_UNPARSED = count(
    "unparsed", "answers that the parser could not read", lambda a: a.value is None, unread=True
)

BENCHMARK = ClosedQuestions(
    name="pope",
    summary="Yes answers to questions about objects that an image lacks.",
    title="POPE: yes/no questions about objects.",
    papers=(
        Paper(
            title="Evaluating Object Hallucination in Large Vision-Language Models",
            authors="Li et al.",
            year=2023,
            link="arXiv:2305.10355",
            where="section 5.1",
        ),
    ),
    unit="questions",
    keys=Keys(
        # If a record has both, `answer` is the label and `prediction` the response (VLMEvalKit).
        response=("response", "output", "prediction", "predict", "answer", "text", "caption"),
        label=("label", "gt", "gt_answer", "ground_truth", "answer"),
        question=("question", "prompt"),
    ),
    variants=(
        _variant(
            "published",
            "POPE's script: an answer is no if its first sentence has no or not, else yes.",
        ),
        _variant(
            "opera",
            "OPERA's script: as published, over the whole answer, and words in n't are no.",
        ),
        _variant(
            "lmms-eval", "lmms-eval: the whole answer is yes or no; any other counts as wrong."
        ),
        _variant(
            "vlmevalkit",
            "VLMEvalKit: exactly one of the words yes and no; any other counts as wrong.",
            "no",
            repeated_by="category",
        ),
        _variant(
            "strict", "Ours: a clear yes or a clear no; any other answer is unscored.", "unscored"
        ),
    ),
    scores=(
        share("accuracy", "right answers / answers", (_TP, _TN), _ANSWERED, own=True),
        share("precision", "right yes answers / yes answers", _TP, (_TP, _FP), n=_ANSWERED),
        share(
            "recall",
            "right yes answers / questions about objects that are there",
            _TP,
            (_TP, _FN),
            n=_ANSWERED,
        ),
        share(
            "f1",
            "harmonic mean of precision and recall",
            (_TP, _TP),
            (_TP, _TP, _WRONG),
            n=_ANSWERED,
        ),
        share(
            "yes_ratio",
            "yes answers / answers",
            (_TP, _FP),
            _ANSWERED,
            direction="neither",
            bounded=False,
        ),
        share(
            "unparsed_rate",
            "answers that the parser could not read / answers",
            _UNPARSED,
            "questions",
            direction="lower",
            bounded=False,
            own=True,
        ),
    ),
    main_score="f1",
    trial=one_answer(id="1", response="Yes.", label="yes"),
    group_by=("category",),
    split_fields=frozenset({"category"}),
    question_files=True,
    joins_by_text=True,
    categories=("random", "popular", "adversarial"),
    variant_names=("parser",),
)
"""The declaration."""
BENCHMARKS = (BENCHMARK,)
PopeMetric = metric_of(BENCHMARK)
"""The metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VqaMatch:
    """What a judge found."""

    answer: str | None
    """The right answer that the response matches; None if it matches none or is unparsed."""
    read: bool
    """Whether the judge's reply was parsed; if not, the response is unscored, never wrong."""


def offered_answers(answers: Sequence[str]) -> tuple[str, ...]:
    """Return each right answer once, the most frequent first; a judge names the first match."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for answer in answers:
        counts[folded(answer)] += 1
        first.setdefault(folded(answer), answer)
    return tuple(first[key] for key, _ in counts.most_common())


def match_of_number(verdict: str, offered: Sequence[str]) -> VqaMatch:
    """Return the right answer by a judge's number: 1 is the first one, 0 is none.

    A judge may only name numbers, so that no text of an answer can become a verdict.
    """
    said = verdict.strip().strip("\"'.")
    if said.isascii() and said.isdecimal() and int(said) <= len(offered):
        return VqaMatch(answer=offered[int(said) - 1] if int(said) else None, read=True)
    return VqaMatch(answer=None, read=False)


def vqa_score(answer: str | None, answers: Sequence[str]) -> float:
    """Return the VQA score (Antol et al. 2015) of a matched answer.

    Each person is left out in turn; the score is the mean of min(1, number of others with the same
    answer / 3).

    Args:
        answer: The matched right answer; None if there is none.
        answers: The answers of people, usually ten.
    """
    if answer is None or not answers:
        return 0.0
    same = [folded(other) == folded(answer) for other in answers]
    total = sum(same)
    return sum(min(1.0, (total - mine) / 3) for mine in same) / len(same)
