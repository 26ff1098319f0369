"""Fields of records that share keys or values are read as those of each record alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from hallujudge.sdk.archives.record_fields import DeclaredFields, FieldWay
from hallujudge.sdk.errors import ArchiveError

_KEYS = ("kind", "type", "size")
# Equal to Python and different as texts: 1, 1.0 and true, and the two zeros.
_VALUES = st.sampled_from(("a", "b", "", "1", 1, 1.0, True, 0.0, -0.0, None, ["a"], {"a": 1}))
_RECORDS = st.lists(st.dictionaries(st.sampled_from(_KEYS), _VALUES), min_size=1, max_size=12)


def _ways(needed: bool) -> Sequence[FieldWay]:
    return (
        FieldWay("kind", ("kind", "type"), None, needed),
        FieldWay("size", ("size",), str.upper, False),
    )


def _read(fields: DeclaredFields, values: Mapping[str, object]) -> Mapping[str, str] | None:
    try:
        return fields.of(values, "line 1")
    except ArchiveError:
        return None


@given(records=_RECORDS, needed=st.booleans(), keeps=st.booleans())
def test_what_was_read_before_changes_no_fields(
    records: list[dict[str, object]], needed: bool, keeps: bool
) -> None:
    shared = DeclaredFields(_ways(needed), "give it", keeps_empty=keeps)
    for values in (*records, *records):
        alone = DeclaredFields(_ways(needed), "give it", keeps_empty=keeps)
        assert _read(shared, values) == _read(alone, values)


@given(values=st.dictionaries(st.sampled_from(_KEYS), _VALUES))
def test_a_field_is_the_first_text_number_or_truth_value_of_its_keys(
    values: dict[str, object],
) -> None:
    held = next((values[key] for key in ("kind", "type") if values.get(key) is not None), None)
    text = str(held).casefold() if isinstance(held, bool) else str(held)
    plain = text if isinstance(held, (str, int, float)) else ""
    assert DeclaredFields(_ways(needed=False), "").of(values, "line 1")["kind"] == plain


def test_a_number_that_no_field_is_read_of_may_have_any_length() -> None:
    values = {"kind": "a", "type": 10**5000}
    assert DeclaredFields(_ways(needed=False), "").of(values, "line 1")["kind"] == "a"
