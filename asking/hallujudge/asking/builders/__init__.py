"""Builders of what is asked: the commands of ``hallujudge build``.

What they build with is imported when a command is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from ..text_calls import written as written
    from ..tri_he_questions import drawn as drawn
    from ..tri_he_questions import read_scenes as read_scenes
    from ..tri_he_questions import write_questions as write_questions
    from ..video.infact_questions import audit_sheets as audit_sheets
    from ..video.infact_questions import collected as collected
    from ..video.infact_questions import needing_video as needing_video
    from ..video.infact_questions import read_questions as read_questions
    from ..vidhal_captions import ask_quality as ask_quality
    from ..vidhal_captions import read_videos as read_videos
    from ..vidhal_captions import write_captions as write_captions
    from .degraded_videos import build_videos as build_videos

__getattr__, __dir__ = names_on_use(__name__)
