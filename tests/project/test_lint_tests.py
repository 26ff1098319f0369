"""Which tests tools/lint_tests.py refuses: snippets that break a rule, and snippets that do not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "lint_tests.py"


@pytest.fixture(scope="module")
def lint() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lint_tests", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "source",
    [
        "start = time.monotonic()\nassert time.monotonic() - start < 1",
        "start = perf_counter()\nend = perf_counter()\nassert end - start < 1",
        "start = time.time()\nwhile x:\n    most = max(most, time.time() - start)\nassert most < 1",
        "last, worst = loop.time(), 0\nworst = loop.time() - last\nassert 0 < worst < 1",
        "def took():\n    start = time.process_time()\n    return time.process_time() - start\n"
        "def test_it():\n    small, large = took(), took()\n    assert large < 3 * small",
    ],
)
def test_asserts_on_elapsed_time_are_found(lint: ModuleType, source: str) -> None:
    assert [finding.rule for finding in lint.check(source, "t.py")] == ["elapsed-time"]


@pytest.mark.parametrize(
    "source",
    [
        "assert value._hidden == 1",
        "client._run(work())",
        "patch.setattr(module, '_LIMIT', 3)",
        "patch.setattr('package.module._LIMIT', 3)",
        "getattr(value, '_hidden')",
    ],
)
def test_private_attributes_are_found(lint: ModuleType, source: str) -> None:
    assert [finding.rule for finding in lint.check(source, "t.py")] == ["private-attribute"]


@pytest.mark.parametrize(
    "source",
    [
        "end = time.monotonic() + 60\nwhile not done():\n    assert time.monotonic() < end",
        "start = time.monotonic()\nprint(time.monotonic() - start)\nassert done()",
        "assert report.seconds - clock.now < 3",
        "assert datetime.time(10) < noon",
        "self._own = cls._own = super()._own()\nos._exit(3)",
        "assert value.__class__ is int and value._ is None",
        "assert row._replace(a=1)._fields == ('a',)",
        "# value._hidden\ntext = 'value._hidden'",
    ],
)
def test_what_passes(lint: ModuleType, source: str) -> None:
    assert lint.check(source, "t.py") == []


def test_findings_name_the_place_and_what_to_do(
    lint: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_a.py").write_text("x = 1\nassert x._y\n")
    assert lint.main([str(tmp_path)]) == 1
    assert "test_a.py:2: private-attribute: `x._y` reads" in capsys.readouterr().out
    (tmp_path / "test_a.py").write_text("x = 1\n")
    assert lint.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_a_folder_without_python_is_refused(lint: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no Python file"):
        lint.main([str(tmp_path)])
