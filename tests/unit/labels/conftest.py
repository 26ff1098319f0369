"""A run to calibrate."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.comparison_runs import chair_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run over captions of 120 images."""
    folder = tmp_path_factory.mktemp("run")
    chair_run(folder, 0.4, images=120)
    return folder
