"""Scores of a run, corrected by human labels without judging anything again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.labels.label_files import LABELS, PLAN, write_calibration, write_cascade
    from hallujudge.labels.report_card import JudgeCard, judge_card
    from hallujudge.labels.run_calibration import (
        CalibrateOptions,
        LearntMargin,
        calibrate,
        calibrate_items,
        learn_margin,
    )

    from .runs.result_files import read_calibration

__all__ = [
    "LABELS",
    "PLAN",
    "CalibrateOptions",
    "JudgeCard",
    "LearntMargin",
    "calibrate",
    "calibrate_items",
    "judge_card",
    "learn_margin",
    "read_calibration",
    "write_calibration",
    "write_cascade",
]

_NAMES = {
    "hallujudge.labels.label_files": "LABELS PLAN write_calibration write_cascade",
    "hallujudge.labels.report_card": "JudgeCard judge_card",
    "hallujudge.labels.run_calibration": (
        "CalibrateOptions LearntMargin calibrate calibrate_items learn_margin"
    ),
    "hallujudge.sdk.runs.result_files": "read_calibration",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
