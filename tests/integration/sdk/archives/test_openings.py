"""An input file is opened at most twice, and three times by a run that goes on.

So one is that has a bad record, which ``--skip-bad`` leaves out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import TypeAlias

import pytest
from support import opened_files
from support.sizes import sized

from hallujudge.metrics.families import benchmark_named
from hallujudge.sdk.archives.example_files import example_archives

Openings: TypeAlias = "Mapping[str, Mapping[str, Mapping[str, int]]]"
# Benchmarks that are declared share a reader; those of the shared ones have each form of bundles.
SHARED = (
    *("amber", "hallusion-bench", "infact", "openchair", "pope", "vidhal-mcqa", "vidhalluc-bqa"),
)
METRICS = [
    name for name in example_archives() if sized(name in SHARED or not benchmark_named(name), True)
]


@pytest.fixture(scope="module")
def openings(tmp_path_factory: pytest.TempPathFactory) -> Openings:
    """Metric -> ``whole``, ``resumed`` or ``skipped`` -> file -> openings in a process."""
    command = [sys.executable, opened_files.__file__, str(tmp_path_factory.mktemp("o"))]
    done = subprocess.run([*command, *METRICS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: Openings = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("metric", METRICS)
def test_a_file_is_opened_at_most_twice(openings: Openings, metric: str) -> None:
    for way in openings[metric].keys() - {"resumed"}:
        assert max(openings[metric][way].values()) in (1, 2), way


@pytest.mark.parametrize("metric", METRICS)
def test_a_run_that_goes_on_opens_a_file_at_most_three_times(
    openings: Openings, metric: str
) -> None:
    counts = openings[metric]["resumed"].values()
    assert max(counts) in (1, 2, 3)
