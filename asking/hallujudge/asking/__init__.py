"""Ask a model the questions of a benchmark: images and frames go to an OpenAI-compatible server.

Also the tools that make what is asked: builders of questions and references, and videos that are
degraded. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.judge_service.llm.cache_file import kept_replies
    from hallujudge.sdk.media.video_frames import Sampling

    from .asked_benchmarks import asked_metrics, preset_names, prompts_text
    from .asked_files import AskedFiles
    from .asking_run import AskResult, AskRun, ask, ask_async, check_asking, estimate_asking
    from .first_checks import parsed_parameters

__all__ = [
    "AskResult",
    "AskRun",
    "AskedFiles",
    "Sampling",
    "ask",
    "ask_async",
    "asked_metrics",
    "check_asking",
    "estimate_asking",
    "kept_replies",
    "parsed_parameters",
    "preset_names",
    "prompts_text",
]

_NAMES = {
    "hallujudge.judge_service.llm.cache_file": "kept_replies",
    "hallujudge.sdk.media.video_frames": "Sampling",
    ".asked_benchmarks": "asked_metrics preset_names prompts_text",
    ".asked_files": "AskedFiles",
    ".asking_run": "AskResult AskRun ask ask_async check_asking estimate_asking",
    ".first_checks": "parsed_parameters",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
