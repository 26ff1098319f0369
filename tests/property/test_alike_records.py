"""Answers of records that have the same keys are read as those of each record alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.example_archives import declared_examples, numbered

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import HallujudgeError

_VALUES: st.SearchStrategy[Any] = st.sampled_from(
    (None, True, 1, 1.0, "", " 1 ", "1.0", "Yes", "é", "\ud800", ["a"], {})
)
# Their files have a record for each answer; HumbleBench drops those with a further key.
_NAMES = ["avhbench", "charthal", "cmm", "crpe", "haven", "vlms-are-biased"]
_ALONE = [each for each in declared_examples() if each.name in _NAMES]


def _read(declared: ClosedQuestions, records: list[dict[str, Any]]) -> object:
    try:
        return list(read_items(declared.name, records, None).make())
    except HallujudgeError as err:
        return type(err), err.reason


@pytest.mark.parametrize("declared", _ALONE, ids=[each.name for each in _ALONE])
@given(data=st.data())
def test_a_record_with_a_key_of_its_own_changes_no_other_item(
    declared: ClosedQuestions, data: st.DataObject
) -> None:
    whole, record = numbered(declared)
    records = [record(n) for n in range(3 * whole)]
    key = data.draw(st.sampled_from(sorted(records[0])))
    for each in records[1:]:
        each[key] = data.draw(st.one_of(st.just(each.get(key)), _VALUES))
    others = [*records[:-1], {**records[-1], "a key of its own": 1}]
    assert _read(declared, others) == _read(declared, records)
