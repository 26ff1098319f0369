"""Scores of a run, corrected by human labels without judging anything again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.labels.label_files import LABELS as LABELS
    from hallujudge.labels.label_files import PLAN as PLAN
    from hallujudge.labels.label_files import write_calibration as write_calibration
    from hallujudge.labels.label_files import write_cascade as write_cascade
    from hallujudge.labels.report_card import JudgeCard as JudgeCard
    from hallujudge.labels.report_card import judge_card as judge_card
    from hallujudge.labels.run_calibration import CalibrateOptions as CalibrateOptions
    from hallujudge.labels.run_calibration import LearntMargin as LearntMargin
    from hallujudge.labels.run_calibration import calibrate as calibrate
    from hallujudge.labels.run_calibration import calibrate_items as calibrate_items
    from hallujudge.labels.run_calibration import learn_margin as learn_margin

    from .runs.result_files import read_calibration as read_calibration

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
