"""Lists and objects in cells of tables."""

from __future__ import annotations

import pytest

from hallujudge.metrics.answers.table_cells import listed, with_lists


@pytest.mark.parametrize(
    ("cell", "held"),
    [
        ('["a", "b"]', ["a", "b"]),
        ('{"a": 1}', {"a": 1}),
        ("['a', \"b's\"]", ["a", "b's"]),
        ("['a' 'b']", "['a' 'b']"),
        ("[sic", "[sic"),
    ],
)
def test_a_cell_is_the_list_that_json_or_python_prints(cell: str, held: object) -> None:
    assert listed(cell) == held


def test_only_cells_under_the_keys_are_taken_apart() -> None:
    record = {"qa": "[1]", "response": "[1]", "text": "2"}
    assert with_lists(record, ("qa", "text", "absent")) == {**record, "qa": [1]}
    assert with_lists(record, ("absent",)) is record
