"""Ask a model the questions of a benchmark: images and frames go to an OpenAI-compatible server.

Also the tools that make what is asked: builders of questions and references, and videos that are
degraded. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.judge_service.llm.cache_file import kept_replies as kept_replies
    from hallujudge.sdk.media.video_frames import Sampling as Sampling

    from .asked_benchmarks import asked_metrics as asked_metrics
    from .asked_benchmarks import preset_names as preset_names
    from .asked_benchmarks import prompts_text as prompts_text
    from .asking_run import AskRun as AskRun
    from .asking_run import ask as ask
    from .asking_run import ask_async as ask_async
    from .asking_run import check_asking as check_asking
    from .asking_run import estimate_asking as estimate_asking
    from .first_checks import parsed_parameters as parsed_parameters
    from .outcomes import AskedFiles as AskedFiles
    from .outcomes import AskResult as AskResult

__getattr__, __dir__ = names_on_use(__name__)
