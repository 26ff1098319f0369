"""Runs on a Ray cluster of two workers: ``ray_run.py CAPTIONS OBJECTS OUT CLAIMS GRAPHS OUT URLS``.

The first run, of CHAIR, kills one of its own workers. The second, of Tri-HE, is judged by servers.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hallujudge.sdk import Client, InputOptions, RunFolder, ScoreRun
from hallujudge.sdk.runs.run_inputs import PreparedRun


class KillOne:
    """Kills a worker when some parts have come."""

    def __init__(self) -> None:
        self._parts = 0
        self.killed: list[int] = []

    def started(self, started: Any) -> None:
        """Do nothing."""

    def waits(self, progress: Any) -> None:
        """Do nothing."""

    def judged(self, _shares: Any, *, kept: bool) -> None:
        """Judge as well."""

    def scored(self, _part: Any) -> None:
        self._parts += 1
        if self._parts == 4 and (workers := ray_workers(os.getpid())):
            os.kill(workers[0], signal.SIGKILL)
            self.killed.append(workers[0])


def ray_workers(driver: int) -> list[int]:
    """Return the process ids of the Ray workers that score for a process of this user."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::RayWorker") and is_of(driver, path.parent):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def is_of(driver: int, process: Path) -> bool:
    """Return whether a process belongs to the cluster that another process started."""
    for _ in range(8):
        fields = (process / "stat").read_bytes().rpartition(b") ")[2].split()
        if fields[1] == str(driver).encode():
            return True
        process = process.parent / fields[1].decode()
        if fields[1] in (b"0", b"1"):
            return False
    return False


def main(arguments: Sequence[str]) -> int:
    import ray

    # Both runs use one cluster: its start takes seconds.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    captions, objects, folder, claims, graphs, judged, urls = arguments
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
        client.score_into(output, PreparedRun.of(run), watch)
    if not watch.killed:
        return 5
    settings = {"llm.url": urls, "llm.model": "m", "llm.max_concurrency": 4}
    with Client.embedded(settings) as client:
        client.score(
            "tri-he",
            responses=claims,
            references=graphs,
            folder=judged,
            inputs=InputOptions(own={"claims_only": True}),
            options={"judge": "llm", "extractor": "given"},
            engine="ray",
            workers=2,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
