"""Builders of what is asked: the commands of ``hallujudge build``.

What they build with is imported when a command is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from ..tri_he_questions import drawn, read_scenes, write_questions
    from ..video.infact_questions import audit_sheets, collected, needing_video, read_questions
    from ..vidhal_captions import ask_quality, read_videos, write_captions
    from .degraded_videos import build_videos
    from .model_work import written

__all__ = [
    "ask_quality",
    "audit_sheets",
    "build_videos",
    "collected",
    "drawn",
    "needing_video",
    "read_questions",
    "read_scenes",
    "read_videos",
    "write_captions",
    "write_questions",
    "written",
]

_NAMES = {
    "..tri_he_questions": "drawn read_scenes write_questions",
    "..vidhal_captions": "ask_quality read_videos write_captions",
    "..video.infact_questions": "audit_sheets collected needing_video read_questions",
    ".degraded_videos": "build_videos",
    ".model_work": "written",
}
"""Module -> the names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
