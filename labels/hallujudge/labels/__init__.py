"""Labels that people give: what to label next, scores corrected by labels, cards of judges.

Its public names are those of ``hallujudge.sdk.calibration``. What is here is for its commands:
modules are imported when a command uses them, so that help pages wait for none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.judge_options import small_judge_table

    from . import (
        calibration_tables,
        label_files,
        panel_card,
        report_card,
        run_calibration,
        score_corrections,
    )

__all__ = [
    "calibration_tables",
    "label_files",
    "panel_card",
    "report_card",
    "run_calibration",
    "score_corrections",
    "small_judge_table",
]

_NAMES = {f".{name}": name for name in __all__} | {
    "hallujudge.judge_service.engine.judge_options": "small_judge_table"
}
"""Module -> the name that it has here, or that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
