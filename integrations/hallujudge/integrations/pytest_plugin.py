"""A plug-in for pytest, which finds it by the entry point group ``pytest11``.

    def test_captions(assert_hallucination):
        assert_hallucination("runs/new", "chair_i", below=0.2)

The limit is checked as :func:`hallujudge.sdk.gate` checks it, so that a test fails if the data
show that the score is beyond the limit, not if it is so by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hallujudge.sdk.comparison import CompareOptions, Gate, GateCheck, RunSource
    from hallujudge.sdk.comparison.gates import Decision

__all__ = ["assert_hallucination"]

# Enough to see what is wrong; the report has all items.
_SHOWN_ITEMS = 5
_SHOWN_CHARS = 100


def assert_hallucination(
    run: RunSource,
    score: str,
    *,
    below: float | None = None,
    above: float | None = None,
    baseline: RunSource | None = None,
    worse_by: float | None = None,
    unscored: float | None = None,
    decide: Decision = "shown",
    options: CompareOptions | None = None,
) -> Gate:
    """Fail the test if a score of a run is beyond a limit.

    Args:
        run: Folder of the run, or a report that holds its items.
        score: The score's name, such as ``"chair_i"``.
        below: Its largest allowed value.
        above: Its smallest allowed value.
        baseline: The run that ``worse_by`` compares with.
        worse_by: How much worse than the baseline it may be.
        unscored: Largest allowed share of items without a score.
        decide: When a limit is exceeded: if the whole interval is beyond it (``shown``), the value
            (``observed``), or a part of the interval (``possible``).
        options: How runs are compared, such as the confidence of intervals.

    Returns:
        The checks, all of which passed.

    Raises:
        AssertionError: A limit is exceeded; the message has the checks and some items.
        HallujudgeError: The limits can't be checked; see :func:`hallujudge.sdk.gate`.
    """
    # pytest then shows the line of the test, and not this function's.
    __tracebackhide__ = True
    # pytest loads each installed plug-in at its start: tests without a limit wait for none of it.
    from hallujudge.sdk import GateLimits, gate

    limits = GateLimits(
        max_regression={} if worse_by is None else {score: worse_by},
        maximum={} if below is None else {score: below},
        minimum={} if above is None else {score: above},
        max_unscored=unscored,
        decide=decide,
    )
    found = gate(run, baseline=baseline, limits=limits, options=options)
    if not found.passed:
        failed = [_sentence(check) for check in found.checks if not check.passed]
        raise AssertionError("\n".join([*failed, "", str(found), *_wrong_items(run)]))
    return found


def _sentence(check: GateCheck) -> str:
    """Return what failed in one line, which pytest's summary shows."""
    what = {"regression": "'s regression", "unscored": "the share of unscored items"}
    bound = "least" if check.kind == "minimum" else "most"
    interval = "" if check.ci_low is None else f" [{check.ci_low:.4f}, {check.ci_high:.4f}]"
    return (
        f"{check.score}{what.get(check.kind, '')} is {check.value:.4f}{interval}, and may be at "
        f"{bound} {check.limit:g}"
    )


def _wrong_items(run: RunSource) -> list[str]:
    """Return some hallucinated items of a report that holds them."""
    # A folder may hold millions of items, which would be read for one message.
    wrong = [] if isinstance(run, (str, Path)) else run.wrong()
    shown = [f"  {item.id}: {str(item.response)[:_SHOWN_CHARS]!r}" for item in wrong[:_SHOWN_ITEMS]]
    return [f"{len(wrong)} hallucinated items, such as:", *shown] if wrong else []


@pytest.fixture(scope="session", name="assert_hallucination")
def fixture() -> Callable[..., Gate]:
    """Return the function that fails a test if a score is beyond a limit."""
    return assert_hallucination
