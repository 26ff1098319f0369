"""``make mutants``: which mutations are made, and what tests say of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import mutants  # noqa: E402

MODULE = Path("metrics/hallujudge/metrics/small.py")
SOURCE = '''"""A module."""

LIMIT: int = 3


def fits(size: int, *, open: bool = False) -> bool:
    """Return whether it fits."""
    if not open and size > LIMIT:
        raise ValueError(f"at most {LIMIT + 1}")
    return size < LIMIT or open
'''
WEAK = "def fits(size: int) -> bool:\n    return size < 3\n"
TEST = """from hallujudge.metrics.small import fits


def test_small_ones_fit() -> None:
    assert fits(1)
"""


def test_every_place_that_does_something_is_changed() -> None:
    found = mutants.mutations_of(MODULE, SOURCE.encode())
    assert [(each.line, each.before, each.after) for each in found] == [
        (3, "3", "4"),
        (6, "False", "True"),
        (8, "not open and size > LIMIT", "(not open or size > LIMIT)"),
        (8, "not open", "(open)"),
        (8, "size > LIMIT", "(size >= LIMIT)"),
        (9, 'raise ValueError(f"at most {LIMIT + 1}")', "pass"),
        (10, "return size < LIMIT or open", "return None"),
        (10, "size < LIMIT or open", "(size < LIMIT and open)"),
        (10, "size < LIMIT", "(size <= LIMIT)"),
    ]
    for each in found:
        compile(each.applied_to(SOURCE.encode()), "small.py", "exec")


def test_what_has_no_effect_is_left_alone() -> None:
    source = (
        "from typing import Literal\n\nx: Literal[1, 2]\n'a text'\nif TYPE_CHECKING:\n    y = 1\n"
    )
    assert mutants.mutations_of(MODULE, source.encode()) == []


def test_places_are_counted_in_bytes() -> None:
    source = "x = 'ä', 1 + f(2)\n".encode()
    signs = [each for each in mutants.mutations_of(MODULE, source) if "+" in each.before]
    assert [each.applied_to(source).decode() for each in signs] == ["x = 'ä', (1 - f(2))\n"]


def test_the_nearest_tests_come_first() -> None:
    rules = "judge_service/hallujudge/judge_service/extractors/rules"
    near = mutants.near_tests(Path(rules, "lexicon.py"))
    folder = "tests/unit/judge_service/extractors/rules"
    assert near[0] == f"{folder}/test_lexicon.py"
    assert f"{folder}/test_triplet_rules.py" in near
    assert not [test for test in near if test.startswith("tests/e2e/")]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with one module and its test."""
    files = {
        MODULE: WEAK,
        # Without these, the packages of an installed library would be found in their place.
        MODULE.with_name("__init__.py"): "",
        Path("sdk/hallujudge/sdk/__init__.py"): "",
        Path("integrations/hallujudge/pytest_plugin/__init__.py"): "",
        Path("tests/unit/metrics/test_small.py"): TEST,
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return tmp_path


def test_survivors_are_those_that_no_test_notices(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mutants.py", "--jobs", "1", str(MODULE)])
    assert mutants.main() == 0
    said = capsys.readouterr().out
    told = [line for line in said.splitlines() if line[:1].strip() and str(MODULE) in line]
    fates = {line[22:]: line[:22].strip() for line in told}
    assert fates == {
        f"{MODULE}:2: return size < 3  ->  return None": "killed",
        f"{MODULE}:2: size < 3  ->  (size <= 3)": "SURVIVED",
        f"{MODULE}:2: 3  ->  4": "SURVIVED",
    }
    # The checkout is as it was.
    assert (tree / MODULE).read_text() == WEAK
    survivors = said.partition(" s\n")[2]
    assert "size <= 3" in survivors
    assert "return None" not in survivors


def test_tests_that_fail_anyway_have_noticed_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "tests/unit/metrics/test_small.py").write_text("def test_it() -> None:\n    assert 0\n")
    monkeypatch.setattr(sys, "argv", ["mutants.py", "--jobs", "1", "--count", "1", str(MODULE)])
    assert mutants.main() == 0
    assert "1 its tests fail anyway" in capsys.readouterr().out
