"""Answers that put options in order."""

from __future__ import annotations

from itertools import permutations

import pytest

from hallujudge.metrics.answers.orders import (
    PairAnswer,
    PairQuestion,
    RelativeOrdering,
    order_of_pairs,
    read_order,
    read_order_published,
)

SHOWN = {"A": "Two men, dancing.", "B": "Three men", "C": "Four men"}


ORDERS = [
    # answer, published, corrected: letters, or what is wrong
    ("A, B, C", "ABC", "ABC"),
    ("C,B,A", "CBA", "CBA"),
    (" B , A , C ", "BAC", "BAC"),
    ('["B", "A", "C"]', "BAC", "BAC"),
    ("C > B > A", "partial", "CBA"),
    ("BAC", "partial", "BAC"),
    ("b, a, c", "unknown", "BAC"),
    ("1. B 2. C 3. A", "partial", "BCA"),
    ("The order is B, A, C.", "unknown", "BAC"),
    ("A, B", "partial", "partial"),
    ("B", "partial", "partial"),
    ("A, A, B", "repeated", "repeated"),
    ("A, B, C, A", "repeated", "repeated"),
    ("A, B, D", "unknown", "unknown"),
    ("", "empty", "empty"),
    ("  ", "empty", "empty"),
    ("I cannot tell", "partial", "unknown"),
    ("Three men\nTwo men, dancing.\nFour men", "BAC", "BAC"),
    ("Four men, then three men", "partial", "partial"),
    ("The order of A, B and C is unclear: A? Final order: B, A, C", "unknown", "BAC"),
    ("The answer is B, A, C, in this order.", "unknown", "BAC"),
    ("Answer: B, A, C\n\nExplanation: A is next since C shows a dog.", "unknown", "BAC"),
    ("The order from best to worst: B, A, C. A is second.", "unknown", "BAC"),
    ("I think B is best, then A, and C is last.", "unknown", "BAC"),
    ("Order: A, B, C? No, wait: B, A, C", "unknown", "BAC"),
    ("A: 2, B: 1, C: 3", "unknown", "BAC"),
    ("A = 2nd\nB = 1st\nC = 3rd", "partial", "BAC"),
    ("A: 2 men, B: 3 men, C: 4 men", "unknown", "ABC"),
    ("A, B, C. Actually, B, A, C.", "unknown", "BAC"),
    ("1. **B**: Three men\n2. **A**\n3. **C**", "partial", "BAC"),
    ("[" * 5000, "partial", "unknown"),
]


@pytest.mark.parametrize(
    ("answer", "published", "corrected"), ORDERS, ids=[repr(row[0])[:40] for row in ORDERS]
)
def test_orders(answer: str, published: str, corrected: str) -> None:
    for read, wanted in ((read_order_published, published), (read_order, corrected)):
        order = read(answer, SHOWN)
        assert (order.problem or "".join(order.letters)) == wanted, read
        assert order.valid == (sorted(order.letters) == list(SHOWN))


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


@pytest.mark.parametrize("truth", list(permutations("ABC")))
def test_orders_of_archived_answers(truth: tuple[str, ...]) -> None:
    pairs = [PairQuestion(*pair) for pair in ("AB", "BC", "AC")]
    answers = [PairAnswer(question=pair, chosen=min(pair, key=truth.index)) for pair in pairs]
    assert order_of_pairs("ABC", answers) == truth
    assert order_of_pairs("ABC", answers[1:]) is None
