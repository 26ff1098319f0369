"""Scores of answers yes and no: precision, recall and F1 of yes, and the bias towards yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..framework import columns_and_scores as framework
from ..framework.columns_and_scores import ScoreDefinition
from .answer_scores import AnswerScore, Condition, ReadAnswer, count, is_any, is_right, share

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray, Sums


def _false_no(answer: ReadAnswer) -> bool:
    said_no = answer.value == "no" or answer.unparsed == "no"
    return answer.label == "yes" and said_no


def object_scores() -> tuple[AnswerScore, ...]:
    """Return ``accuracy``, ``precision``, ``recall``, ``f1`` and ``yes_ratio``.

    As in POPE (Li et al. 2023, section 5.1), whose questions ask whether an object is there: yes is
    the positive class. All have the number of answers that count as ``n``.
    """
    answered = count("answered", "answers that count in the accuracy")
    tp = count("tp", "yes to objects that are there", lambda a: a.value == "yes" and a.right)
    fp = count(
        "fp", "yes to objects that are not there", lambda a: a.value == "yes" and not a.right
    )
    tn = count("tn", "no to objects that are not there", lambda a: a.value == "no" and a.right)
    fn = count("fn", "no to objects that are there", _false_no)
    # An unparsed answer is wrong in the accuracy, but only where it counts as a no also in f1.
    wrong = count(
        "wrong",
        "wrong answers that count in f1",
        lambda a: not is_right(a) and (a.value is not None or _false_no(a)),
    )
    there = "right yes answers / questions about objects that are there"
    return (
        share("accuracy", "right answers / answers", (tp, tn), answered, own=True),
        share("precision", "right yes answers / yes answers", tp, (tp, fp), n=answered),
        share("recall", there, tp, (tp, fn), n=answered),
        share("f1", "harmonic mean of precision and recall", (tp, tp), (tp, tp, wrong), n=answered),
        share(
            "yes_ratio",
            "yes answers / answers",
            (tp, fp),
            answered,
            direction="neither",
            bounded=False,
        ),
    )


def yes_bias(
    answers: str = "answers", wrong: str = "wrong", among: Condition = is_any
) -> tuple[AnswerScore, AnswerScore]:
    """Return ``yes_percent_difference`` and ``false_positive_ratio``: a model's bias towards yes.

    HallusionBench defines them (``utils.py``), and VideoHallucer's script took them from there. As
    in these scripts, a right answer counts as its label, and any other as the opposite.

    Args:
        answers: Column of the number of answers.
        wrong: Column of the number of wrong answers.
        among: The answers that count.
    """

    def each(when: Condition) -> Condition:
        return lambda answer: among(answer) and when(answer)

    every = count(answers, "answers that count", among)
    said = count("yes_answers", "of these, yes", each(lambda a: a.right == (a.label == "yes")))
    labels = count("yes_labels", "of these, with the label yes", each(lambda a: a.label == "yes"))
    failed = count(wrong, "of these, wrong", each(lambda a: not a.right))
    to_no = count(
        "wrong_yes",
        "of these, wrong with the label no",
        each(lambda a: not a.right and a.label == "no"),
    )
    over = framework.ratio("more", answers)

    def difference(sums: Sums) -> FloatArray:
        return over({"more": sums["yes_answers"] - sums["yes_labels"], answers: sums[answers]})

    more = ScoreDefinition(
        name="yes_percent_difference",
        meaning="share of yes answers - share of yes labels",
        columns=("yes_answers", "yes_labels", answers),
        value=difference,
        count=answers,
        bounded=False,
        low=-1.0,
    )
    return (
        AnswerScore(definition=more, counts=(every, said, labels)),
        share(
            "false_positive_ratio",
            "wrong answers with the label no / wrong answers",
            to_no,
            failed,
            direction="neither",
            bounded=False,
        ),
    )
