"""Statistics and scores of HallusionBench."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..answers.yes_bias import yes_bias_scores
from ..framework.metric import Column, ScoreDefinition, ratio, share
from .groups import CAUSES

if TYPE_CHECKING:
    from ..framework.metric import FloatArray, Sums

__all__ = ["COLUMNS", "SCORES"]

COLUMNS: tuple[Column, ...] = (
    Column(name="answered", meaning="answers with a correctness"),
    Column(
        name="right", meaning="right answers; also unclear ones without a figure", integral=False
    ),
    Column(name="unclear", meaning="unclear answers"),
    Column(name="labelled", meaning="answers to questions with a label"),
    Column(name="yes_labels", meaning="of these, with the label yes"),
    Column(name="yes_answers", meaning="of these, right with the label yes or wrong with no"),
    Column(name="labelled_wrong", meaning="of these, wrong"),
    Column(name="wrong_yes", meaning="of these, wrong with the label no"),
    Column(name="question_language_hallucination", meaning="wrong without a figure"),
    Column(name="question_visual_illusion", meaning="wrong because of the figure"),
    Column(name="question_mixed", meaning="wrong with a figure, for either reason"),
    Column(name="without_probability", meaning="soft: answers that count by verdict"),
    Column(name="unscored", meaning="answers without a correctness"),
    Column(name="pair", meaning="question and set, as a number", integral=False, label=True),
    Column(name="figure", meaning="figure and set, as a number", integral=False, label=True),
    Column(name="place", meaning="category and figure", label=True),
    Column(name="verdict", meaning="correctness", label=True),
    Column(name="same", meaning="whether it agrees with figure 0", label=True),
    Column(name="said", meaning="the parsed answer", label=True),
)
"""The statistics of a question, in order; those of pairs and figures are made from them."""


def _known(top: str, bottom: str, unknown: str) -> Callable[[Sums], FloatArray]:
    """Return a share that is undefined if the cause of a failure is unknown."""
    over = ratio(top, bottom)

    def value(sums: Sums) -> FloatArray:
        import numpy as np

        return np.where(sums[unknown] > 0, np.nan, over(sums))

    return value


def _cause(prefix: str, cause: str, failures: str, bottom: str, unknown: str) -> ScoreDefinition:
    name = f"{prefix}{cause}"
    top = name if prefix else f"failure_{cause}"
    return ScoreDefinition(
        name=name,
        meaning=f"share of {failures}, cause: {cause.replace('_', ' ')}",
        columns=(top, bottom, unknown),
        value=_known(top, bottom, unknown),
        count=bottom,
        bounded=False,
    )


SCORES: tuple[ScoreDefinition, ...] = (
    share("question_accuracy", "right answers / answers (aAcc)", "right", "answered"),
    share(
        "pair_accuracy",
        "questions with right answers about all their figures / questions (qAcc)",
        "pairs_right",
        "pairs",
    ),
    share(
        "figure_accuracy",
        "figures with right answers to all their questions / figures (fAcc)",
        "figures_right",
        "figures",
    ),
    share(
        "easy_pair_accuracy",
        "pair_accuracy over original figures and questions without one",
        "easy_right",
        "easy",
    ),
    share(
        "hard_pair_accuracy",
        "pair_accuracy over edited figures",
        "hard_right",
        "hard",
    ),
    share(
        "figure_inconsistent",
        "figures with right and wrong answers / figures",
        "figures_mixed",
        "figures",
        direction="lower",
        bounded=False,
    ),
    share(
        "figure_wrong",
        "figures with wrong answers only / figures",
        "figures_wrong",
        "figures",
        direction="lower",
        bounded=False,
    ),
    share(
        "figure_score",
        "share of right answers to a figure, mean over figures",
        "figure_share",
        "figures",
    ),
    *yes_bias_scores("labelled", "labelled_wrong"),
    *(_cause("", cause, "wrong answers", "failures", "failures_unknown") for cause in CAUSES),
    *(
        _cause("question_", cause, "wrong answers, judged one by one", "failures", "never")
        for cause in CAUSES
    ),
    *(_cause("pair_", cause, "wrong pairs", "pairs_wrong", "pairs_unknown") for cause in CAUSES),
    share(
        "unclear_rate",
        "unclear answers / answers",
        "unclear",
        "answered",
        direction="neither",
        bounded=False,
    ),
)
"""The scores, in the order of the report."""
