"""Scores over what a harness hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.integrations.harness_scores import (
        RunningScores,
        corpus_score,
        explanation,
        report_of,
        scored_records,
        scores_with_intervals,
    )

__all__ = [
    "RunningScores",
    "corpus_score",
    "explanation",
    "report_of",
    "scored_records",
    "scores_with_intervals",
]

_NAMES = {
    "hallujudge.integrations.harness_scores": (
        "RunningScores corpus_score explanation report_of scored_records scores_with_intervals"
    ),
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
