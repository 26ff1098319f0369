"""POPE: answers in columns, and its analyses on small cases worked out by hand."""

from __future__ import annotations

import pytest

from hallujudge.metrics import OptionError
from hallujudge.metrics.pope import (
    PopeMetric,
    accumulated_proportions,
    caption_consistency,
    hit_ratio_by_company,
    hit_ratio_by_frequency,
    template_stability,
)
from hallujudge.metrics.pope.question_builder import count_objects


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OptionError, match="maybe"):
        PopeMetric().rows(["yes"], ["maybe"])
    with pytest.raises(OptionError, match="1 labels for 2"):
        PopeMetric().rows(["yes", "no"], ["no"])


IMAGES = {
    "1": ["dog", "cat", "car"],
    "2": ["dog", "bus"],
    "3": ["dog", "cat", "bus", "apple"],
    "4": ["umbrella", "cat", "dog"],
}


def test_hit_ratios() -> None:
    counts = count_objects(IMAGES)
    assert counts.by_frequency() == ("dog", "cat", "bus", "apple", "car", "umbrella")
    made_up = [["dog", "car", "car"], [], ["umbrella"], ["cat"]]
    first, second = hit_ratio_by_frequency(made_up, counts, ks=(2, 6))
    assert first.value == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert first.n == 3
    assert second.value == 1
    by_image = {"1": ["bus"], "2": ["umbrella", "apple", "apple"], "3": ["car"]}
    (ratio,) = hit_ratio_by_company(by_image, IMAGES, "bus", counts, ks=(2,))
    # Bus stands with dog (2), then apple and cat (1 each): images 2 and 3 show a bus.
    assert ratio.value == pytest.approx(1 / 3), "each mention counts"
    assert ratio.n == 2
    assert hit_ratio_by_frequency([[]], counts)[0].value is None
    assert accumulated_proportions([["dog", "dog"], ["car"]], counts.by_frequency(), (1, 6)) == [
        pytest.approx(2 / 3),
        1,
    ]
    assert accumulated_proportions([], ["dog"], (1,)) == [None]


def test_ties_of_company_are_in_the_order_of_counting() -> None:
    shown = {"1": ["cat", "zebra"], "2": ["ant", "cat"]}
    made_up = {"1": ["zebra"], "2": ["ant", "ant", "zebra"]}
    (first,) = hit_ratio_by_company(made_up, shown, "cat", count_objects(shown), ks=(1,))
    assert first.value == pytest.approx((1 + 1 / 3) / 2), "the zebra was met first"


def test_table_4_of_the_pope_paper() -> None:
    pope = template_stability({"1": 68.65, "2": 66.83, "3": 66.67, "4": 67.58})
    chair = template_stability({"1": 10.5, "2": 18.8, "3": 14.6, "4": 11.6})
    assert (round(pope.mean, 2), round(pope.std, 2)) == (67.43, 0.78)
    assert (round(chair.mean, 2), round(chair.std, 2)) == (13.88, 3.22)
    with pytest.raises(ValueError, match="at least one"):
        template_stability({})


def test_captions_beside_answers() -> None:
    polled = [
        ("1", "dog", "yes"),
        ("1", "cat", "no"),
        ("1", "bus", None),
        ("2", "dog", "no"),
        ("2", "car", "no"),
        ("1", "dog", "no"),
        ("9", "dog", "no"),
    ]
    found = caption_consistency(polled, {"1": {"dog", "bus"}, "2": {"dog"}})
    assert (found.denied, found.denied_but_mentioned) == (3, 1)
    assert (found.mentioned, found.mentioned_and_affirmed) == (2, 1)
    assert found.denial_rate == pytest.approx(2 / 3)
    assert found.affirmation_rate == 0.5
