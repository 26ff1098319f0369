"""Which tests `make near` runs for a change, by names and imports."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def near() -> Iterator[Any]:
    """The module tools/near.py, with an import graph that is built once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        module = importlib.import_module("near")
        known = module.importers()
        patch.setattr(module, "importers", lambda: known)
        yield module
        del sys.modules["near"]


def chosen(near: Any, *changed: str) -> list[str]:
    paths: list[str] = near.within_budget(near.near_tests(changed))
    return paths


def test_tests_are_found_by_the_name_of_a_module_first(near: Any) -> None:
    path = "metrics/hallujudge/metrics/framework/tally.py"
    assert chosen(near, path)[0] == "tests/unit/metrics/framework/test_tally.py"


def test_tests_are_found_by_what_they_import(near: Any) -> None:
    # No test has its name.
    path = "judge_service/hallujudge/judge_service/extractors/rules/tagger.py"
    found = chosen(near, path)
    assert any(test.startswith("tests/unit/judge_service/extractors/") for test in found)
    helper = chosen(near, "tests/support/database_mishaps.py")
    assert "tests/integration/judge_service/jobs/test_database.py" in helper


def test_a_file_of_no_package_is_near_to_the_tests_that_name_it(near: Any) -> None:
    assert "tests/project/test_dashboards.py" in chosen(near, "deploy/prometheus/alerts_test.yml")
    assert "tests/project/test_makefile.py" in chosen(near, "Makefile")


def test_a_changed_test_is_run_whatever_it_costs_and_a_removed_one_is_not(near: Any) -> None:
    changed = [f"tests/e2e/{path.name}" for path in (ROOT / "tests/e2e").glob("test_*.py")]
    assert sorted(chosen(near, *changed, "tests/e2e/test_removed.py")) == sorted(changed)


def test_what_many_modules_import_is_bounded(near: Any) -> None:
    changed = "judge_service/hallujudge/judge_service/errors.py"
    near_tests = near.near_tests([changed])
    assert len(near_tests) > near.BUDGET >= len(near.within_budget(near_tests)) > 0


@pytest.mark.parametrize(
    "path",
    [
        "metrics/hallujudge/metrics/no_such_one.py",
        "metrics/hallujudge/metrics/papers/no_such_one.toml",
    ],
)
def test_what_a_family_lacks_is_said_where_one_may_have_changed(near: Any, path: str) -> None:
    assert chosen(near, path)[0] == "tests/contract/test_declared_families.py"
