"""Fixtures that more than one kind of test uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support.running import ServerProcess

# In CI every run draws the same examples, so that a change is judged by what it changed; on a
# developer's machine they are drawn anew each time. No deadlines: machines are shared.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

pytest_plugins = ["support.skips"]

_REPO = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def goldens() -> Path:
    """The folder of real inputs with expected numbers; the test skips where it is absent."""
    folder = Path(os.environ.get("HALLUJUDGE_GOLDENS") or _REPO.parent / "shared" / "goldens")
    if not folder.is_dir():
        pytest.skip("golden data is absent: set HALLUJUDGE_GOLDENS to its folder")
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a running server."""
    running = ServerProcess()
    yield running.address
    code, errors = running.stop()
    assert code == 0, errors
    assert "Traceback" not in errors
