"""A CHAIR run on Ray that loses two workers: ``ray_run.py CAPTIONS OBJECTS FOLDER``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hallujudge.sdk import Client, RunFolder, ScoreRun


class KillOne:
    """Kills a worker when the first part has come, and another one later."""

    def __init__(self) -> None:
        self._parts = 0
        self.killed: list[int] = []

    def started(self, started: Any) -> None:
        """Do nothing."""

    def waits(self, progress: Any) -> None:
        """Do nothing."""

    def scored(self, _part: Any) -> None:
        self._parts += 1
        if self._parts in (1, 30) and (workers := ray_workers()):
            os.kill(workers[0], signal.SIGKILL)
            self.killed.append(workers[0])


def ray_workers() -> list[int]:
    """Return the process ids of this user's Ray workers that score."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::RayWorker") and is_ours(path.parent):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def is_ours(process: Path) -> bool:
    """Return whether a process belongs to the cluster that this process started."""
    mine = str(os.getpid()).encode()
    for _ in range(8):
        fields = (process / "stat").read_bytes().rpartition(b") ")[2].split()
        if fields[1] == mine:
            return True
        process = process.parent / fields[1].decode()
        if fields[1] in (b"0", b"1"):
            return False
    return False


def main(arguments: Sequence[str]) -> int:
    captions, objects, folder = arguments
    run = ScoreRun(
        "chair",
        responses=captions,
        references=objects,
        folder=folder,
        html=True,
        engine="ray",
        workers=2,
    )
    watch = KillOne()
    with Client.embedded() as client, RunFolder(Path(folder)) as output:
        client.score_into(output, run, run.spec(), run.items(), watch)
    return 0 if len(watch.killed) == 2 else 5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
