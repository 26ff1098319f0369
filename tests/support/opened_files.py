"""Counts how often files of example archives are opened: ``opened_files.py FOLDER METRIC...``.

It prints metric -> file -> openings while ``hallujudge score`` runs, while a run that was stopped
before its report goes on, and while responses of which one is no object are scored with
``--skip-bad``.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from hallujudge.sdk.archives.example_files import write_example
from hallujudge.sdk.cli import main


class Openings:
    """Counts the openings below a folder, and stops a run before its report."""

    def __init__(self, folder: Path) -> None:
        self._folder = f"{folder}{os.sep}"
        self.counts: Counter[str] = Counter()
        self.stops = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100  # links stay
            if path.startswith(self._folder):
                self.counts[path.removeprefix(self._folder)] += 1
        elif event == "os.rename" and self.stops and str(arguments[1]).endswith("report.json"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def of(self, arguments: list[str], *, stops: bool = False) -> tuple[int, Counter[str]]:
        """Return the exit code of a command, and how often it opened each file."""
        self.counts, self.stops = Counter(), stops
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code = main(arguments)
        return code, self.counts.copy()


def counted(folder: Path, metrics: Sequence[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Return metric -> ``whole``, ``resumed`` and ``skipped`` -> file -> openings."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for metric in metrics:
        place = (folder / metric).resolve()
        example = write_example(metric, place)
        os.chdir(place)
        openings = Openings(place)
        sys.addaudithook(openings)
        command = shlex.split(example.command)[1:]
        codes, whole = openings.of(command)
        to_stop = ["stopped" if word == "results" else word for word in command]
        stopped, _ = openings.of(to_stop, stops=True)
        resumed, again = openings.of([*to_stop, "--resume"])
        assert (codes, stopped, resumed) in ((0, 1, 0), (3, 1, 3)), (metric, stopped)
        ways = {"whole": whole, "resumed": again}
        responses = place / command[command.index("--responses") + 1]
        if responses.suffix == ".jsonl":
            lines = responses.read_text().splitlines(keepends=True)
            responses.write_text("".join([*lines[:-1], "[]\n"]))
            to_skip = ["skipped" if word == "results" else word for word in command]
            skipped, ways["skipped"] = openings.of([*to_skip, "--skip-bad"])
            assert skipped == 3, metric
        found[metric] = {
            name: {file: counts[file] for file in example.files} for name, counts in ways.items()
        }
    return found


if __name__ == "__main__":
    print(json.dumps(counted(Path(sys.argv[1]), sys.argv[2:])))
