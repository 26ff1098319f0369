"""What a run says of skipped tests, and which skips CI refuses. Pytest runs in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.skips import read_known

TESTS = Path(__file__).resolve().parents[1]
SUITE = """
import pytest
def test_passes():
    pass
def test_browser():
    pytest.skip("no Chromium is installed")
@pytest.mark.skipif(True, reason="no GPU is here")
def test_gpu():
    pass
"""
LARGE = """
import pytest
from support.sizes import further
def test_quick():
    pass
@pytest.mark.large("test_quick")
def test_other():
    raise AssertionError
@pytest.mark.parametrize("number", [1, further("test_some", 2)])
def test_some(number):
    assert number == 1
"""
UNKNOWN = """
import pytest
pytest.importorskip("no_such_package", reason="no_such_package is missing")
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "support.skips", "-p", "xdist"]
    return subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", folder, *options, folder],
        env=os.environ | {"PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_some.py").write_text(SUITE)
    return tmp_path


def test_skips_pass_and_are_explained_without_the_option(suite: Path) -> None:
    done = run(suite)
    assert done.returncode == 0, done.stdout
    assert "   1  No browser is installed" in done.stdout
    assert "apt-get install chromium" in done.stdout
    assert "ERROR" not in done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_skip_that_the_run_does_not_allow_fails_it(suite: Path, workers: tuple[str, ...]) -> None:
    done = run(suite, "--skips", "suite", *workers)
    assert done.returncode == 1, done.stdout
    assert "skip not allowed in the run 'suite': no Chromium is installed (1, first" in done.stdout
    assert "no GPU is here (1" not in done.stdout


def test_an_allowed_skip_passes(suite: Path) -> None:
    done = run(suite, "--skips", "suite", "-k", "not browser")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_an_unknown_reason_fails_every_ci_run(suite: Path, workers: tuple[str, ...]) -> None:
    (suite / "test_some.py").write_text(SUITE.replace("no Chromium", "unheard of: Chromium"))
    (suite / "test_other.py").write_text(UNKNOWN)
    done = run(suite, "--skips", "github", *workers)
    assert done.returncode == 1, done.stdout
    assert "no_such_package is missing (1, first test_other.py)" in done.stdout
    assert "'github': unheard of: Chromium is installed (1, first" in done.stdout


@pytest.fixture
def sizes(tmp_path: Path) -> Path:
    (tmp_path / "test_some.py").write_text(LARGE)
    return tmp_path


def test_large_forms_are_counted_and_a_run_of_ci_accepts_no_skip_of_them(sizes: Path) -> None:
    done = run(sizes, "-p", "support.sizes", "--skips", "suite")
    assert done.returncode == 1, done.stdout
    assert "2 passed, 2 skipped" in done.stdout
    assert "   2  Further forms of what quicker tests prove for each commit." in done.stdout
    assert "'suite': large form of test_quick (1, first test_some.py::test_other)" in done.stdout


def test_large_forms_run_where_that_is_asked_for(sizes: Path) -> None:
    done = run(sizes, "-p", "support.sizes", "--skips", "suite", "--large")
    assert "2 failed, 2 passed" in done.stdout


def test_a_large_form_names_a_test_of_its_module(sizes: Path) -> None:
    (sizes / "test_some.py").write_text(LARGE.replace('large("test_quick")', 'large("quick")'))
    done = run(sizes, "-p", "support.sizes", "--large")
    assert done.returncode == 4, done.stdout
    assert "test_some.py::test_other is a large form of quick, which is no test" in done.stderr


def test_every_entry_says_why_and_what_to_do() -> None:
    known = read_known()
    assert len({entry.pattern.pattern for entry in known}) == len(known)
    for entry in known:
        assert entry.why.endswith(".")
        assert entry.get.endswith(".")
        assert entry.allowed <= {"suite", "github"}
