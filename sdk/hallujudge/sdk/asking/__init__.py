"""Ask a model the questions of a benchmark: images and frames go to an OpenAI-compatible server."""

from ..media.video_frames import Sampling
from .asked_benchmarks import asked_metrics
from .asked_files import AskedFiles
from .asking_run import (
    AskResult,
    AskRun,
    ask,
    ask_async,
    check_asking,
    estimate_asking,
)

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
]
