"""Answers that put options in order."""

from __future__ import annotations

import pytest

from hallujudge.metrics.answers.orders import read_order, read_order_published

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
