"""Scores of a run, corrected by human labels without judging anything again."""

from __future__ import annotations

from ..runs.result_files import read_calibration
from .label_files import LABELS, PLAN, write_calibration, write_cascade
from .report_card import JudgeCard, judge_card
from .run_calibration import (
    CalibrateOptions,
    LearntMargin,
    calibrate,
    calibrate_items,
    learn_margin,
)

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
