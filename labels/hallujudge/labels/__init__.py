"""Labels that people give: what to label next, scores corrected by labels, cards of judges.

Its public names are those of ``hallujudge.sdk.calibration``. What is here is for its commands:
modules are imported when a command uses them, so that help pages wait for none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.judge_options import small_judge_table as small_judge_table

    from . import calibration_tables as calibration_tables
    from . import label_files as label_files
    from . import panel_card as panel_card
    from . import report_card as report_card
    from . import run_calibration as run_calibration
    from . import score_corrections as score_corrections

__getattr__, __dir__ = names_on_use(__name__)
