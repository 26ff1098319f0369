"""The declaration of a benchmark stays small: what one paper does is a function of its module."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# What there is now. These numbers only go down, to 22, 45 and 0.
MOST_OF_A_BENCHMARK = 21
MOST_OF_ALL_CLASSES = 44
MOST_RARE = 0


@pytest.fixture(scope="module")
def fields() -> Iterator[Any]:
    """Return the module tools/declaration_fields.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "tools"))
        yield importlib.import_module("declaration_fields")


@pytest.fixture(scope="module")
def found(fields: Any) -> dict[str, set[str]]:
    """Return ``Class.field`` -> names of the benchmarks that use the field."""
    users: dict[str, set[str]] = fields.users(fields.benchmarks())
    return users


def test_a_declaration_has_few_fields(found: dict[str, set[str]]) -> None:
    own = [name for name in found if name.startswith("ClosedQuestions.")]
    assert len(own) == MOST_OF_A_BENCHMARK, (
        f"ClosedQuestions has {len(own)} fields, not {MOST_OF_A_BENCHMARK}. If it has more, write "
        "what the paper does as a function of the family's module: a parser, unfold, complete, or "
        "a method of its base class. If it has fewer, lower the number here"
    )


def test_all_classes_of_a_declaration_have_few_fields(found: dict[str, set[str]]) -> None:
    assert len(found) == MOST_OF_ALL_CLASSES, (
        f"the classes have {len(found)} fields, not {MOST_OF_ALL_CLASSES}; see the test above"
    )


def test_fields_are_used_by_several_benchmarks(fields: Any, found: dict[str, set[str]]) -> None:
    rare = sorted(name for name, by in found.items() if len(by) < fields.FEW)
    assert len(rare) == MOST_RARE, (
        f"{len(rare)} fields are used by fewer than {fields.FEW} benchmarks, not {MOST_RARE}: "
        f"{', '.join(rare)}. Write what a new one does as a function of the family's module, or "
        "lower the number here if one is gone"
    )


def test_a_field_counts_as_used_where_it_differs_from_its_default(fields: Any) -> None:
    [pope] = [each for each in fields.benchmarks() if each.name == "pope"]
    found = fields.users([pope])
    assert found["ClosedQuestions.name"] == found["ClosedQuestions.group_by"] == {"pope"}
    assert found["ClosedQuestions.tables"] == found["InputTable.name"] == set()
