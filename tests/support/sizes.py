"""How much tests do: enough for each commit, and with `--large` as much as .ci/run asks for.

Sizes are for tests that do more of the same. A test, or one set of its parameters, that proves in
another form what a quicker test proves is marked `large("test_of_the_quicker")`. Without the option
it is skipped; the end of the run counts these tests, and CI's run accepts no such skip.
"""

from __future__ import annotations

from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, settings

__all__ = ["examples", "further", "sized"]

Size = TypeVar("Size")

_SHARE = 4
"""One of this many examples is enough for each commit."""

_large = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of .ci/run, and that of a search for new faults."""
    parser.addoption("--large", action="store_true", help="test with large inputs and all examples")
    parser.addoption("--explore", action="store_true", help="draw other examples than before")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the size, before test modules are imported and before Hypothesis reads its options."""
    global _large  # Hypothesis takes numbers of examples where modules are imported
    _large = config.getoption("--large")
    # Every run draws the same examples, so that a change is judged by what it changed; a run that
    # looks for new faults draws others. How long an example takes is never a failure: machines
    # are shared.
    settings.register_profile(
        "suite",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=not config.getoption("--explore"),
        max_examples=examples(100),
    )
    settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave large forms to runs with `--large`."""
    for item in items:
        if not (marker := item.get_closest_marker("large")):
            continue
        quicker = marker.args[0]
        if not hasattr(getattr(item, "module", None), quicker):
            raise pytest.UsageError(
                f"{item.nodeid} is a large form of {quicker}, which is no test of its module"
            )
        if not _large:
            item.add_marker(pytest.mark.skip(reason=f"large form of {quicker}"))


def further(test: str, *values: object) -> ParameterSet:
    """Return parameters that prove in another form what a test proves with those of each commit."""
    return pytest.param(*values, marks=pytest.mark.large(test))


def sized(small: Size, large: Size) -> Size:
    """Return the size of an input: the small one, or with `--large` the large one."""
    return large if _large else small


def examples(count: int) -> int:
    """Return how many examples Hypothesis draws: `count` of them with `--large`."""
    return sized(max(1, count // _SHARE), count)
