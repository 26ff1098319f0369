"""Shares of rows add up to the change of a score, exactly."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hallujudge.studies.audit.waterfall import Ratio, Stage, changed_rows, score_of, shares_of

COUNTS = st.fixed_dictionaries({"rows": st.just(1), "a": st.integers(0, 9), "b": st.integers(0, 9)})
ROWS = st.lists(st.tuples(COUNTS, COUNTS | st.just({})), max_size=12)
RATIO = Ratio(numerator=("a", "a"), denominator=("a", "b"))
# A row that never changes, so that every score is defined.
FIXED = ({"rows": 1, "a": 1, "b": 1}, {"rows": 1, "a": 1, "b": 1})


def stage(counts: list[dict[str, int]]) -> Stage:
    return Stage(cause="c", meaning="", counts=counts)


@given(ROWS)
def test_shares_add_up_exactly(rows: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    rows = [FIXED, *rows]
    before, after = stage([old for old, _ in rows]), stage([new for _, new in rows])
    first, last = score_of(before, RATIO), score_of(after, RATIO)
    shares = shares_of(before, after, RATIO)
    assert first is not None
    assert last is not None
    assert sum(shares.values(), Fraction(0)) == last - first
    assert list(shares) == list(changed_rows(before, after, ("a", "b")))
    assert 0 not in shares


def test_a_score_without_a_denominator_is_undefined() -> None:
    assert score_of(stage([{"rows": 1}]), RATIO) is None
    assert stage([{"rows": 2}, {}]).rows == 2
