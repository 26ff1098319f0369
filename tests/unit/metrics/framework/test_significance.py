"""Holm's correction and compact letters."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.metrics.framework.significance import compact_letters, holm


def test_holm_multiplies_the_smallest_most() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([]) == ()
    assert holm([0.8, 0.9]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_its_steps_reject(p_values: list[float]) -> None:
    level, rejected = 0.05, set()
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if (len(p_values) - rank) * p_values[at] > level:
            break
        rejected.add(at)
    found = holm(p_values)
    assert {at for at, p in enumerate(found) if p <= level} == rejected
    assert all(one >= other for one, other in zip(found, p_values, strict=True))


def test_letters_of_three() -> None:
    assert compact_letters(3, []) == ("a", "a", "a")
    assert compact_letters(3, [(0, 2)]) == ("a", "ab", "b")
    assert compact_letters(3, [(0, 1), (0, 2), (1, 2)]) == ("a", "b", "c")
    assert compact_letters(0, []) == ()
    assert compact_letters(1, []) == ("a",)


def test_letters_go_on_after_z() -> None:
    letters = compact_letters(28, combinations(range(28), 2))
    assert letters[25:] == ("z", "a1", "b1")


@given(st.integers(1, 7), st.data())
def test_two_share_a_letter_unless_they_differ(count: int, data: st.DataObject) -> None:
    pairs = list(combinations(range(count), 2))
    different = set(data.draw(st.lists(st.sampled_from(pairs), unique=True))) if pairs else set()
    letters = compact_letters(count, different)
    assert all(letters)
    for pair in pairs:
        shared = set(letters[pair[0]]) & set(letters[pair[1]])
        assert bool(shared) == (pair not in different)
