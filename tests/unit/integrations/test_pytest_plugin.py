"""``assert_hallucination``: what fails, and what its message shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.comparison_runs import chair_run

from hallujudge.sdk import RunReport
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.pytest_plugin import assert_hallucination


@pytest.fixture(scope="module")
def run() -> RunReport:
    return chair_run(None, 0.9, seed=3)


def test_a_limit_that_is_shown_to_be_exceeded_fails(run: RunReport) -> None:
    with pytest.raises(AssertionError) as told:
        assert_hallucination(run, "chair_i", below=0.2)
    message = str(told.value)
    assert re.match(
        r"chair_i is 0\.\d{4} \[0\.\d{4}, 0\.\d{4}\], and may be at most 0\.2\n", message
    )
    assert repr(run.wrong()[0].response) in message
    assert run.signature.partition("|")[0] in message


@pytest.mark.parametrize(
    "limits",
    [
        {"below": 0.9},
        {"above": 0.1},
        {"below": 0.9, "unscored": 0.0},
        {"below": 0.4, "decide": "shown"},
    ],
)
def test_the_rules_of_the_gate_decide(run: RunReport, limits: dict[str, Any]) -> None:
    assert assert_hallucination(run, "chair_i", **limits).passed


def test_the_value_alone_may_decide(run: RunReport) -> None:
    limit = (run.chair_i or 0) - 0.001
    assert assert_hallucination(run, "chair_i", below=limit).passed
    with pytest.raises(AssertionError):
        assert_hallucination(run, "chair_i", below=limit, decide="observed")


def test_a_baseline_limits_the_regression(run: RunReport, tmp_path: Path) -> None:
    chair_run(tmp_path / "old", 0.1, seed=1)
    with pytest.raises(AssertionError, match=r"^chair_i's regression is 0"):
        assert_hallucination(run, "chair_i", baseline=tmp_path / "old", worse_by=0.01)
    assert assert_hallucination(tmp_path / "old", "chair_i", baseline=run, worse_by=0.01).passed


def test_what_cannot_be_checked_is_no_assertion(run: RunReport) -> None:
    for wrong in ({}, {"below": 0.5, "score": "chair_x"}):
        score = wrong.pop("score", "chair_i")
        with pytest.raises(InvalidInputError):
            assert_hallucination(run, score, **wrong)  # type: ignore[arg-type]
