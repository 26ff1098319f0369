"""Modules that import their names on first use, as the doors of the SDK do."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOOR = """
from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from json import dumps as dumps

    from . import part as part
    from .part import (
        a_name_that_does_not_fit_on_the_line as a_name_that_does_not_fit_on_the_line,
    )
    from .part import one, two

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
"""
PART = "one, two, a_name_that_does_not_fit_on_the_line = 1, 2, 3\n"


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    package = tmp_path / "opened_door"
    package.mkdir()
    (package / "__init__.py").write_text(DOOR)
    (package / "part.py").write_text(PART)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "opened_door", raising=False)
    monkeypatch.delitem(sys.modules, "opened_door.part", raising=False)
    return importlib.import_module("opened_door")


def test_names_are_those_that_type_checkers_see(door: ModuleType) -> None:
    long = "a_name_that_does_not_fit_on_the_line"
    assert dir(door) == sorted([long, "dumps", "one", "part", "two"])
    assert door.__all__ == dir(door)
    assert "opened_door.part" not in sys.modules, "nothing is imported before it is used"
    assert (door.one, door.two, getattr(door, long)) == (1, 2, 3)
    assert door.dumps([1]) == "[1]"


def test_a_name_may_be_a_module_of_the_package(door: ModuleType) -> None:
    assert door.part is importlib.import_module("opened_door.part")


def test_another_name_is_not_there(door: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'opened_door' has no attribute 'three'"):
        _ = door.three
