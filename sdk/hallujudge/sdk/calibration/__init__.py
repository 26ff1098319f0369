"""Scores of a run, corrected by human labels without judging anything again."""

from __future__ import annotations

from ..runs.result_files import read_calibration
from .calibrate import CalibrateOptions, calibrate, calibrate_items
from .card import JudgeCard, judge_card
from .reference import LearntMargin, learn_margin
from .stored import LABELS, PLAN, write_calibration, write_cascade

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
