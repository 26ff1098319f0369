"""The questions that put captions in order two at a time."""

from __future__ import annotations

from itertools import permutations

import pytest

from hallujudge.metrics.vidhal.order_analyses import RelativeOrdering


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_planner_finds_every_order(size: int) -> None:
    letters = "ABCDE"[:size]
    most = 0
    for truth in permutations(letters):
        plan = RelativeOrdering(letters)
        while plan.question:
            assert plan.order is None
            plan.answer(min(plan.question, key=truth.index))
        assert plan.order == truth
        asked = [answer.question for answer in plan.answers]
        assert len(set(asked)) == len(asked), "no pair is asked twice"
        most = max(most, len(asked))
    assert most <= size * (size - 1) // 2


def test_three_captions_need_two_questions_or_three() -> None:
    plan = RelativeOrdering("ABC")
    assert plan.question == ("A", "B")
    plan.answer("A")
    assert plan.question == ("B", "C")
    plan.answer("B")
    assert plan.order == ("A", "B", "C")
    plan = RelativeOrdering("ABC")
    plan.answer("A")
    plan.answer("C")
    assert plan.question == ("A", "C"), "the third pair settles it"
    with pytest.raises(ValueError, match="neither"):
        plan.answer("B")
    plan.answer("C")
    assert plan.order == ("C", "A", "B")
    with pytest.raises(ValueError, match="is known"):
        plan.answer("A")
    with pytest.raises(ValueError, match="two different"):
        RelativeOrdering("AA")
