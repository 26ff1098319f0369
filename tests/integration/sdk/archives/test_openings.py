"""An input file is opened at most twice, and three times by a run that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
from support import opened_files

from hallujudge.sdk.archives.example_files import example_archives

Openings: TypeAlias = "Mapping[str, Mapping[str, Mapping[str, int]]]"


@pytest.fixture(scope="module")
def openings(tmp_path_factory: pytest.TempPathFactory) -> Openings:
    """Metric -> ``whole`` or ``resumed`` -> file -> openings, counted in a process of their own."""
    command = [sys.executable, str(Path(opened_files.__file__)), str(tmp_path_factory.mktemp("o"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: Openings = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("metric", example_archives())
def test_a_file_is_opened_at_most_twice(openings: Openings, metric: str) -> None:
    counts = openings[metric]["whole"].values()
    assert max(counts) in (1, 2)


@pytest.mark.parametrize("metric", example_archives())
def test_a_run_that_goes_on_opens_a_file_at_most_three_times(
    openings: Openings, metric: str
) -> None:
    counts = openings[metric]["resumed"].values()
    assert max(counts) in (1, 2, 3)
