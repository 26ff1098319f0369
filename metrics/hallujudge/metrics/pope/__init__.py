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
item in each of its categories. ``repope`` and ``strict`` leave them unscored: they enter no
denominator but that of ``unparsed_rate``.

RePOPE (Neuhaus and Hein, 2025) has better labels for most of the questions, and dropped the
others. ``repope`` is the rule of its script (``src/eval_utils.py``), and ``first-word`` mends it:
"snow" is not no, "eyes" is not yes, and unparsed answers are wrong. Labels come with the questions.

Differences from the released scripts: they join answers to questions by order, and stop with a
division by zero if a model never says yes. Here the precision is then None, and ``f1`` is 0 if any
answer is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..answers.answer_scores import count, share
from ..answers.answers_metric import AnswersMetric
from ..answers.closed_questions import (
    AnswerVariant,
    ClosedQuestions,
    FileNames,
    Keys,
    UnparsedAs,
    compared_by,
    one_answer,
)
from ..answers.declared_metrics import metric_of
from ..answers.yes_no import YES_NO_PARSERS, object_scores


def _variant(
    name: str,
    meaning: str,
    unparsed: UnparsedAs = "wrong",
) -> AnswerVariant:
    return AnswerVariant(
        name=name,
        meaning=meaning,
        parse=compared_by(YES_NO_PARSERS[name], name),
        unparsed=unparsed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Categories(AnswersMetric):
    """A metric of questions that may be in several categories."""

    split_fields: ClassVar[frozenset[str]] = frozenset({"category"})
    # Its labels lack the questions that were dropped.
    drops_unknown: ClassVar[frozenset[str]] = frozenset({"repope"})

    @property
    def repeated_by(self) -> str:
        """The field of VLMEvalKit's table, which counts a question in each of its categories."""
        return "category" if self.variant == "vlmevalkit" else ""


LABEL_SETS = ("pope", "repope")
"""Names of the sets of labels: a file is of the last one that its name has, else of the first."""

BENCHMARK = ClosedQuestions(
    name="pope",
    title="POPE: yes answers to questions about objects that an image lacks.",
    unit="questions",
    keys=Keys(
        # If a record has both, `answer` is the label and `prediction` the response (VLMEvalKit).
        response=("response", "output", "prediction", "predict", "answer", "text", "caption"),
        label=("label", "gt", "gt_answer", "ground_truth", "answer"),
        # The short names are those of lmms-eval's tasks, such as pope_adv.
        values={
            "category": FileNames(
                {
                    "random": "random",
                    "popular": "popular",
                    "pop": "popular",
                    "adversarial": "adversarial",
                    "adv": "adversarial",
                }
            )
        },
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
        ),
        _variant(
            "repope",
            "RePOPE's script: yes anywhere is yes, else no anywhere is no; any other is unscored.",
            "unscored",
        ),
        _variant("first-word", "Ours: the first clear yes or no; any other counts as wrong."),
        _variant(
            "strict", "Ours: a clear yes or a clear no; any other answer is unscored.", "unscored"
        ),
    ),
    scores=(
        *object_scores(),
        share(
            "unparsed_rate",
            "answers that the parser could not read / answers",
            count(
                "unparsed",
                "answers that the parser could not read",
                lambda answer: answer.value is None,
                unread=True,
            ),
            "questions",
            direction="lower",
            bounded=False,
            own=True,
        ),
    ),
    ranked_by=("f1",),
    trial=one_answer(id="1", response="Yes.", label="yes"),
    group_by=("category",),
    base=_Categories,
    question_files="questions.json",
)
"""The declaration."""
PopeMetric = metric_of(BENCHMARK)
"""The metric."""
