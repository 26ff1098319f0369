"""Gates: which side of a limit fails, on which rule, and what can't be checked."""

from __future__ import annotations

from typing import Any

import pytest
from support.comparison_runs import chair_run, pope_run
from support.messages import expected_message

from hallujudge.sdk import CompareOptions, Gate, GateCheck, GateLimits, RunReport, gate
from hallujudge.sdk.errors import InvalidInputError

FAST = CompareOptions(replicates=500)


@pytest.fixture(scope="module")
def good() -> RunReport:
    return chair_run(None, 0.3, seed=1)


@pytest.fixture(scope="module")
def slightly_worse() -> RunReport:
    return chair_run(None, 0.5, seed=2)


@pytest.fixture(scope="module")
def bad() -> RunReport:
    return chair_run(None, 0.9, seed=3)


def checked(run: RunReport, baseline: RunReport | None = None, **limits: Any) -> Gate:
    return gate(run, baseline=baseline, limits=GateLimits(**limits), options=FAST)


def only(result: Gate) -> GateCheck:
    [check] = result.checks
    return check


def test_a_regression_that_is_shown_fails(good: RunReport, bad: RunReport) -> None:
    result = checked(bad, good, max_regression={"chair_i": 0.01})
    check = only(result)
    assert not result.passed
    assert (check.ci_low or 0) > 0.01
    assert check.value == pytest.approx((bad.chair_i or 0) - (good.chair_i or 0))


def test_an_improvement_passes_whichever_end_is_better(good: RunReport, bad: RunReport) -> None:
    for score in ("chair_i", "recall"):
        assert checked(good, bad, max_regression={score: 0.0}).passed
        assert not checked(bad, good, max_regression={score: 0.0}).passed


def test_no_difference_is_zero_without_a_sign(good: RunReport) -> None:
    check = only(checked(good, good, max_regression={"recall": 0.0}))
    assert check.passed
    assert [str(n) for n in (check.value, check.ci_low, check.ci_high)] == ["0.0"] * 3


def test_the_rule_decides_where_the_interval_holds_the_limit(
    good: RunReport, slightly_worse: RunReport
) -> None:
    found = only(checked(slightly_worse, good, max_regression={"chair_s": 0.0}))
    limit = (max(found.ci_low or 0, 0) + found.value) / 2
    assert limit < found.value
    passed = {
        rule: checked(slightly_worse, good, max_regression={"chair_s": limit}, decide=rule).passed
        for rule in ("shown", "observed", "possible")
    }
    assert passed == {"shown": True, "observed": False, "possible": False}


@pytest.mark.parametrize(
    ("limits", "passed"),
    [
        ({"maximum": {"chair_s": 0.5}}, False),
        ({"maximum": {"chair_s": 0.95}}, True),
        ({"minimum": {"recall": 0.9}}, False),
        ({"minimum": {"recall": 0.3}}, True),
    ],
)
def test_absolute_limits(bad: RunReport, limits: dict[str, Any], passed: bool) -> None:
    assert checked(bad, **limits).passed is passed


def test_absolute_limits_have_the_reports_interval(bad: RunReport) -> None:
    check = only(checked(bad, maximum={"chair_i": 0.5}))
    score = bad["chair_i"]
    assert (check.value, check.ci_low, check.ci_high) == (score.value, score.ci_low, score.ci_high)


def test_minimum_by_rule(bad: RunReport) -> None:
    low, high = bad["recall"].ci_low or 0, bad["recall"].ci_high or 0
    for limit, by_rule in ((low - 0.01, (True, True, True)), (high + 0.01, (False,) * 3)):
        found = [
            checked(bad, minimum={"recall": limit}, decide=rule).passed
            for rule in ("shown", "observed", "possible")
        ]
        assert tuple(found) == by_rule
    middle = (low + (bad.recall or 0)) / 2
    assert checked(bad, minimum={"recall": middle}).passed
    assert not checked(bad, minimum={"recall": middle}, decide="possible").passed


def test_unscored_and_absent_items_are_limited(good: RunReport) -> None:
    holes = chair_run(None, 0.3, seed=1, missing=("1", "2", "3"))
    assert checked(holes, max_unscored=0.05).passed
    assert not checked(holes, max_unscored=0.04).passed
    fewer = chair_run(None, 0.3, seed=1, images=54)
    assert only(checked(fewer, good, max_unscored=0.05)).value == pytest.approx(0.1)


def test_checks_are_shown_and_plain(good: RunReport, bad: RunReport) -> None:
    result = checked(bad, good, max_regression={"chair_i": 0.01}, maximum={"chair_s": 0.5})
    assert "2 of 2 checks failed" in str(result)
    assert result.to_json()["passed"] is False


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, "there is no limit"),
        ({"maximum": {"f1": 1}}, "chair has no score 'f1'"),
        ({"max_regression": {"f1": 1}}, "chair has no score 'f1'"),
        ({"max_regression": {"mean_words": 1}}, "mean_words has no better end"),
        ({"max_regression": {"chair_i": -1}}, "of chair_i is -1"),
        ({"maximum": {"chair_i": float("nan")}}, "the limit of chair_i is nan"),
        ({"max_unscored": -0.5}, r"max_unscored=…\) is -0.5; give a share"),
        ({"max_unscored": 2}, r"max_unscored=…\) is 2; give a share from 0 to 1"),
        ({"maximum": {"chair_i": 1}, "decide": "maybe"}, "decide is 'maybe'"),
    ],
)
def test_wrong_limits_are_refused(
    good: RunReport, bad: RunReport, limits: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        checked(bad, good, **limits)


def test_a_regression_needs_a_baseline(good: RunReport) -> None:
    with pytest.raises(InvalidInputError, match="give baseline=…"):
        checked(good, max_regression={"chair_i": 0})


def test_what_has_no_interval_is_not_passed_silently() -> None:
    one = chair_run(None, 1.0, images=1)
    with pytest.raises(
        InvalidInputError, match=expected_message("sdk.comparison.gates:chair-has-no-interval")
    ):
        checked(one, maximum={"chair_i": 0.9})
    assert checked(one, maximum={"chair_i": 0.9}, decide="observed").passed


def test_an_undefined_score_is_not_passed_silently() -> None:
    never_yes = pope_run(None, 0.9, unclear=1.0)
    with pytest.raises(InvalidInputError, match="precision is undefined"):
        checked(never_yes, minimum={"precision": 0.1}, decide="observed")
