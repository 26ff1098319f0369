"""Scores of a model's leaning towards yes, as HallusionBench defines them (``utils.py``).

VideoHallucer's script took them over from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..framework.metric import ScoreDefinition, ratio, share

if TYPE_CHECKING:
    from ..framework.metric import FloatArray, Sums

__all__ = ["yes_bias_scores"]


def yes_bias_scores(answers: str, wrong: str) -> tuple[ScoreDefinition, ScoreDefinition]:
    """Return ``yes_percent_difference`` and ``false_positive_ratio``.

    They use the columns ``yes_answers``, ``yes_labels`` and ``wrong_yes``.

    Args:
        answers: Column of the number of answers.
        wrong: Column of the number of wrong answers.
    """
    over = ratio("more", answers)

    def difference(sums: Sums) -> FloatArray:
        return over({"more": sums["yes_answers"] - sums["yes_labels"], answers: sums[answers]})

    return (
        ScoreDefinition(
            name="yes_percent_difference",
            meaning="share of yes answers - share of yes labels",
            columns=("yes_answers", "yes_labels", answers),
            value=difference,
            count=answers,
            bounded=False,
            low=-1.0,
        ),
        share(
            "false_positive_ratio",
            "wrong answers with the label no / wrong answers",
            "wrong_yes",
            wrong,
            direction="neither",
            bounded=False,
        ),
    )
