"""How much tests do: enough for each commit, and with `--large` as much as .ci/run asks for."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

__all__ = ["examples", "sized"]

_SHARE = 4
"""One of this many examples is enough for each commit."""

_large = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of .ci/run."""
    parser.addoption("--large", action="store_true", help="test with large inputs and all examples")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the size, before test modules are imported and before Hypothesis reads its options."""
    global _large  # Hypothesis takes numbers of examples where modules are imported
    _large = config.getoption("--large")
    # In CI every run draws the same examples, so that a change is judged by what it changed; on a
    # developer's machine they differ each time. How long an example takes is never a
    # failure: machines are shared.
    settings.register_profile(
        "suite",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=bool(os.environ.get("CI")),
        max_examples=examples(100),
    )
    settings.load_profile("suite")


def sized(small: int, large: int) -> int:
    """Return the size of an input: the small one, or with `--large` the large one."""
    return large if _large else small


def examples(count: int) -> int:
    """Return how many examples Hypothesis draws: `count` of them with `--large`."""
    return sized(max(1, count // _SHARE), count)
