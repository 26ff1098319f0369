"""Plans: strata, chances, nesting, gains."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.labels.label_plans import (
    allocate,
    drawn_places,
    expected_width,
    plan_labels,
    read_plan,
)
from hallujudge.labels.verdicts import DecidedClaim, DecidedItem
from hallujudge.sdk.errors import ArchiveError, InvalidInputError


def items(count: int = 100, *, margins: bool = True) -> list[DecidedItem]:
    """Items of three claims, the last of which is rejected."""
    return [
        DecidedItem(
            id=str(number),
            cluster=str(number // 2),
            statistics={},
            claims=tuple(
                DecidedClaim(
                    index=index,
                    text=f"claim {index}",
                    hallucinated=index == 2,
                    margin=(number * 3 + index) / 300 if margins else None,
                )
                for index in range(3)
            ),
            fields={},
            response="A response.",
        )
        for number in range(count)
    ]


def test_strata_are_verdicts_by_thirds_of_the_margin() -> None:
    plan = plan_labels(items(), signature="s", count=90)
    assert [(s.verdict, s.units) for s in plan.strata] == [
        ("supported", 66), ("supported", 67), ("supported", 67),
        ("not_supported", 33), ("not_supported", 33), ("not_supported", 34),
    ]  # fmt: skip
    assert sum(s.drawn for s in plan.strata) == len(plan.units) == 90
    assert Counter(unit.stratum for unit in plan.units) == {
        place: stratum.drawn for place, stratum in enumerate(plan.strata)
    }


def test_few_labels_or_no_margins_leave_two_strata() -> None:
    assert len(plan_labels(items(), signature="s", count=50).strata) == 2
    assert len(plan_labels(items(margins=False), signature="s", count=90).strata) == 2


@pytest.mark.parametrize("count", range(1, 25))
def test_exactly_as_many_are_drawn_as_asked_for(count: int) -> None:
    first = plan_labels(items(), signature="s", count=count)
    assert len(first.units) == count
    more = plan_labels(items(), signature="s", count=count, before=first)
    assert len(more.units) == 2 * count
    assert set(first.units) < set(more.units)


def test_items_are_drawn_by_the_worst_of_their_claims() -> None:
    plan = plan_labels(items(margins=False), signature="s", count=20, by="item")
    assert [(s.verdict, s.drawn, s.units) for s in plan.strata] == [("not_supported", 20, 100)]
    assert all(unit.claim is None for unit in plan.units)


def test_a_plan_is_seeded() -> None:
    first, again, other = (
        plan_labels(items(), signature="s", count=30, seed=seed).units for seed in (1, 1, 2)
    )
    assert first == again != other


def test_more_labels_add_to_a_plan() -> None:
    first = plan_labels(items(), signature="s", count=40, seed=3)
    more = plan_labels(items(), signature="s", count=40, before=first)
    assert len(more.units) == 80
    assert set(first.units) < set(more.units)
    assert more.seed == 3


def test_next_labels_go_where_the_judge_errs() -> None:
    first = plan_labels(items(margins=False), signature="s", count=40)
    truths = {
        (unit.item, unit.claim): unit.stratum == 0 and int(unit.item) % 2 == 0
        for unit in first.units
    }
    more = plan_labels(items(margins=False), signature="s", count=60, before=first, truths=truths)
    gained = [b.drawn - a.drawn for a, b in zip(first.strata, more.strata, strict=True)]
    assert gained[0] > 4 * gained[1]


def test_labels_that_were_not_planned_yet_gain_less_and_less() -> None:
    widths = [gain.width for gain in plan_labels(items(), signature="s", count=50).gains]
    assert [gain.labels for gain in plan_labels(items(), signature="s", count=50).gains] == [
        50, 150, 250, 300,
    ]  # fmt: skip
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0


def test_a_plan_is_read_again(tmp_path: Path) -> None:
    plan = plan_labels(items(), signature="s", count=70)
    (tmp_path / "plan.json").write_text(plan.to_text(), encoding="utf-8")
    assert read_plan(tmp_path / "plan.json") == plan
    (tmp_path / "other.json").write_text('{"by": "page"}', encoding="utf-8")
    with pytest.raises(
        ArchiveError,
        match=expected_message("labels.label_plans:not-plan-of-hallujudge-label-plan"),
    ):
        read_plan(tmp_path / "other.json")


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.label_plans:count-is-give-number-from"),
    ):
        plan_labels(items(), signature="s", count=0)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.label_plans:no-verdicts-to-label"),
    ):
        plan_labels([], signature="s", count=10)
    with pytest.raises(InvalidInputError, match="of another run"):
        plan_labels(
            items(), signature="t", count=9, before=plan_labels(items(), signature="s", count=9)
        )


def test_each_unit_has_the_same_chance() -> None:
    """2,000 draws of 7 of 20 units: each is drawn 700 times, give or take 4 standard errors."""
    drawn = Counter(place for seed in range(2_000) for place in drawn_places(20, 7, str(seed)))
    assert max(abs(count - 700) for count in drawn.values()) < 4 * (2_000 * 0.35 * 0.65) ** 0.5
    assert len(drawn) == 20


def test_drawn_units_are_spread() -> None:
    places = sorted(drawn_places(1_000, 8, "seed"))
    gaps = [b - a for a, b in zip(places, [*places[1:], places[0] + 1_000], strict=True)]
    assert set(gaps) == {125}
    assert drawn_places(3, 10, "seed") in (
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    )
    assert drawn_places(0, 10, "seed") == []


def test_labels_are_allocated_by_size_and_spread() -> None:
    assert allocate(100, [900, 100], [0.3, 0.3], [0, 0]) == [90, 10]
    assert allocate(100, [500, 500], [0.1, 0.4], [0, 0]) == [20, 80]
    assert allocate(30, [1_000, 3], [0.5, 0.0], [0, 0]) == [27, 3]
    assert allocate(100, [20, 30], [0.5, 0.5], [0, 0]) == [20, 30]
    assert allocate(60, [500, 500], [0.0, 0.5], [40, 10])[0] == 40


def test_fewer_labels_than_five_a_stratum_are_shared_out() -> None:
    assert allocate(9, [500, 500], [0.4, 0.4], [0, 0]) in ([5, 4], [4, 5])
    assert allocate(5, [900, 100], [0.3, 0.3], [0, 0]) == [3, 2]
    assert allocate(1, [900, 100], [0.3, 0.3], [0, 0]) == [1, 0]
    assert allocate(9, [500, 500], [0.4, 0.4], [1, 7]) == [2, 7]


def test_the_expected_width_is_that_of_a_stratified_share() -> None:
    assert expected_width([10_000], [0.5], [100]) == pytest.approx(0.196, abs=1e-3)
    assert expected_width([50, 50], [0.2, 0.8], [50, 50]) == 0


def test_a_stratum_without_labels_does_not_make_the_interval_narrow() -> None:
    none, one = (expected_width([100, 100], [0.2, 0.8], [5, count]) for count in (0, 1))
    assert none > one > expected_width([100, 100], [0.2, 0.8], [5, 5])
