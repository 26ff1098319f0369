"""Evidence and scores that benchmarks of closed questions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..framework.columns_and_scores import ScoreDefinition, ratio, share
from ..framework.results import JsonValue

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray, Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """Evidence of an answer's score."""

    answer: str | None
    """The parsed answer: ``yes``, ``no`` or a letter; None if it could not be parsed."""
    label: str
    """The right answer."""
    correct: bool
    """Whether the variant counts the answer as right."""
    how: str
    """Name of the parser, or of its rule, that parsed the answer."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the answer with its label."""
        return {
            "answer": self.answer,
            "label": self.label,
            "correct": self.correct,
            "how": self.how,
        }


def yes_bias_scores(answers: str, wrong: str) -> tuple[ScoreDefinition, ScoreDefinition]:
    """Return ``yes_percent_difference`` and ``false_positive_ratio``: a model's bias towards yes.

    HallusionBench defines them (``utils.py``), and VideoHallucer's script took them from there.
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
