"""Paired differences: intervals, p-values, and what they do at the edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.metrics import ScoreDefinition
from hallujudge.metrics.framework.columns_and_scores import ratio
from hallujudge.metrics.framework.comparison import (
    ComparisonSettings,
    PairedClusters,
    PairedDifference,
    compact_letters,
    holm,
    paired_differences,
    summed,
)

RATE = ScoreDefinition(name="rate", columns=("top", "bottom"), value=ratio("top", "bottom"))
SETTINGS = ComparisonSettings(replicates=2000)


def clusters(first: Sequence[Any], second: Sequence[Any]) -> PairedClusters:
    sides = (np.array(rows, dtype=np.float64) for rows in (first, second))
    one, other = ({"top": side[:, 0], "bottom": side[:, 1]} for side in sides)
    return PairedClusters(first=one, second=other)


def compared(
    first: Sequence[Any], second: Sequence[Any], settings: ComparisonSettings = SETTINGS
) -> PairedDifference:
    [[found]] = paired_differences([([RATE], clusters(first, second))], settings)
    return found


def drawn(rate: float, seed: int, size: int = 200) -> list[tuple[int, int]]:
    random = np.random.default_rng(seed)
    return [(int(random.random() < rate), 1) for _ in range(size)]


def test_values_and_the_direction_of_the_difference() -> None:
    found = compared([(1, 4), (1, 4)], [(2, 4), (4, 4)])
    assert (found.first, found.second, found.difference) == (0.25, 0.75, 0.5)
    assert (found.clusters, found.changed) == (2, 2)


def test_equal_input_gives_equal_output_and_the_seed_counts() -> None:
    first, second = drawn(0.3, 1), drawn(0.4, 2)
    assert compared(first, second) == compared(first, second)
    other = compared(first, second, replace(SETTINGS, seed=7))
    assert (other.ci_low, other.p) != (compared(first, second).ci_low, compared(first, second).p)


def test_swapping_the_runs_turns_the_difference_around() -> None:
    one, other = compared(drawn(0.3, 1), drawn(0.5, 2)), compared(drawn(0.5, 2), drawn(0.3, 1))
    assert other.difference == -(one.difference or 0)
    assert (other.ci_low, other.ci_high) == pytest.approx((-(one.ci_high or 0), -(one.ci_low or 0)))
    assert other.p == one.p


def test_a_large_difference_is_found() -> None:
    found = compared(drawn(0.2, 1), drawn(0.6, 2))
    assert found.p == 1 / 2001
    assert (found.ci_low or 0) > 0.25


def test_equal_runs_have_no_difference() -> None:
    found = compared(drawn(0.2, 1), drawn(0.2, 1))
    assert (found.difference, found.ci_low, found.ci_high, found.p) == (0, 0, 0, 1)
    assert found.changed == 0


def test_few_changed_clusters_are_tested_exactly() -> None:
    first = [(0, 1)] * 300
    second = [(1, 1)] * 3 + [(0, 1)] * 297
    assert compared(first, second).p == 2 / 2**3


def test_clusters_that_do_not_count_are_left_out() -> None:
    first, second = drawn(0.3, 1), drawn(0.4, 2)
    more = compared([*first, (0, 0), (0, 0)], [*second, (0, 0), (0, 0)])
    assert more.clusters == 200
    assert more.p == compared(first, second).p


def test_an_undefined_score_has_neither_interval_nor_test() -> None:
    found = compared([(0, 0), (0, 0)], [(1, 2), (1, 2)])
    assert (found.first, found.difference, found.ci_low, found.p) == (None, None, None, None)


def test_a_score_that_many_samples_leave_undefined_has_no_interval() -> None:
    found = compared([(1, 1), (0, 0), (0, 0)], [(0, 1), (0, 0), (1, 1)])
    assert found.difference is not None
    assert (found.ci_low, found.ci_high) == (None, None)


def test_one_cluster_has_no_interval() -> None:
    found = compared([(1, 4)], [(2, 4)])
    assert (found.ci_low, found.p) == (None, 1.0)


def test_the_largest_of_several_has_no_test() -> None:
    largest = replace(RATE, largest_of=(RATE.value,))
    pair = clusters(drawn(0.3, 1), drawn(0.5, 2))
    [[found]] = paired_differences([([largest], pair)], SETTINGS)
    assert found.p is None
    assert found.ci_low is not None


def test_runs_with_different_lengths_and_equal_rates_rarely_differ_significantly() -> None:
    # Swapping without dividing by the standard error rejects about 17 % of these at 5 %.
    random = np.random.default_rng(3)
    rejected, runs = 0, 300
    for _ in range(runs):
        long, short = 1 + random.poisson(9, 60), 1 + random.poisson(0.5, 60)
        first = np.column_stack([random.binomial(long, 0.3), long])
        second = np.column_stack([random.binomial(short, 0.3), short])
        p = compared(first.tolist(), second.tolist(), replace(SETTINGS, replicates=400)).p
        rejected += p is not None and p <= 0.05
    assert rejected / runs < 0.09


@pytest.mark.parametrize(
    "wrong", [{"replicates": 10}, {"replicates": 10**7}, {"seed": -1}, {"confidence": 1.0}]
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ComparisonSettings(**wrong)


@pytest.mark.parametrize("shape", [(3, 5000, 3), (700, 40, 20), (2, 9000, 110), (1, 1, 1)])
@pytest.mark.parametrize("scale", [1, 1e6, 0.1])
def test_rows_are_added_up_in_parts_as_in_one_product(
    shape: tuple[int, int, int], scale: float
) -> None:
    rows, depth, width = shape
    random = np.random.default_rng(depth)
    counts = random.integers(0, 2, size=(rows, depth), dtype=np.uint8)
    table = random.integers(-9, 9, size=(depth, width)).astype(np.float64) * scale
    found, plain = summed(counts, table), counts.astype(np.float64) @ table
    if scale < 1:
        assert found == pytest.approx(plain, rel=1e-12, abs=1e-9)
    else:
        assert (found == plain).all()


def test_pairs_that_share_their_draws_are_compared_as_if_alone() -> None:
    pairs = [
        ([RATE], clusters(drawn(0.3, 1), drawn(0.4, 2))),
        ([RATE], clusters(drawn(0.3, 3, size=90), drawn(0.4, 4, size=90))),
        ([RATE, replace(RATE, name="half", columns=("bottom", "top"))],
         clusters(drawn(0.5, 5), drawn(0.4, 6))),
    ]  # fmt: skip
    alone = [paired_differences([pair], SETTINGS)[0] for pair in pairs]
    assert paired_differences(pairs, SETTINGS) == alone
    assert paired_differences([], SETTINGS) == []


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
