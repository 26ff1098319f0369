"""Scores over what a harness hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.integrations.harness_scores import RunningScores as RunningScores
    from hallujudge.integrations.harness_scores import corpus_score as corpus_score
    from hallujudge.integrations.harness_scores import explanation as explanation
    from hallujudge.integrations.harness_scores import report_of as report_of
    from hallujudge.integrations.harness_scores import scored_records as scored_records
    from hallujudge.integrations.harness_scores import (
        scores_with_intervals as scores_with_intervals,
    )

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
