"""A CHAIR run that kills itself: ``killed_run.py CAPTIONS OBJECTS FOLDER WORKERS BATCHES``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hallujudge.sdk import Client, RunFolder, ScoreRun
from hallujudge.sdk.runs.run_inputs import PreparedRun


class KillAfter:
    """Kills this process, as ``kill -9`` does, when so many batches were written now."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def started(self, started: Any) -> None:
        self._left += sum(1 for _ in started.kept.entries())

    def judged(self, _shares: Any, *, kept: bool) -> None:
        """Judge as well."""

    def scored(self, _part: Any) -> None:
        self._left -= 1
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def waits(self, _progress: Any) -> None:
        """Wait as well."""


def main(arguments: Sequence[str]) -> int:
    captions, objects, folder, workers, batches = arguments
    run = ScoreRun(
        "chair",
        responses=captions,
        references=objects,
        folder=folder,
        resume=True,
        html=True,
        workers=int(workers),
    )
    with Client.embedded() as client, RunFolder(Path(folder)) as output:
        client.score_into(output, PreparedRun.of(run), KillAfter(int(batches)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
