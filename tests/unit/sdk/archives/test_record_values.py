"""Which values are ids and responses, and what is said of others."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from hallujudge.sdk import read_items
from hallujudge.sdk.errors import ArchiveError


def rows(value: object) -> list[dict[str, object]]:
    return [{"question_id": value, "response": "Yes", "label": "yes"}]


@pytest.mark.parametrize("value", [42, "42", 42.0, "42.0", Decimal(42), Decimal("42.00")])
def test_one_id_however_it_is_written(value: object) -> None:
    for archive in (rows(value), pd.DataFrame(rows(value), dtype=object)):
        (item,) = read_items("pope", archive, None)
        assert item.id == "42"


def test_bytes_of_a_table_are_texts() -> None:
    """Older tools write texts as bytes; JSON has none."""
    (item,) = read_items("pope", pd.DataFrame(rows(b"a1"), dtype=object), None)
    assert item.id == "a1"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.5, r"record 0: 0\.5 is not an id; give a whole number or a text"),
        (Decimal("0.5"), r"0\.5'\) is not an id; give a whole number or a text"),
        (float("inf"), "is not an id; give a whole number or a text"),
        (Decimal("NaN"), "is not an id; give a whole number or a text"),
        (True, "record 0: true is not an id; give a whole number or a text"),
        (None, "record 0: null is not an id; give a whole number or a text"),
        (b"a1", r"record 0: the id is bytes \(b'a1'\); decode it to a text"),
        (2.0**60, "record 0: the id 1152921504606846976 may have lost its last digits"),
    ],
)
def test_other_values_are_refused_with_the_reason(value: object, said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        list(read_items("pope", rows(value), None))


@pytest.mark.parametrize("metric", ["open-objects", "object-halbench", "mementos"])
def test_a_caption_in_a_list_of_one_is_that_caption_and_null_is_none(metric: str) -> None:
    known = {"references": ["A dog."], "objects": ["dog"], "objs": ["dog"], "reference": "A dog."}
    given = [{"image_id": n, "caption": [text], **known} for n, text in ((1, "A cat."), (2, None))]
    items: list[Any] = list(read_items(metric, given, None))
    assert [item.response for item in items] == ["A cat.", None]
