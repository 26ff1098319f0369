"""Settings of matchers, and the texts of claims and references that a model reads.

The store of vectors and the batches that are encoded together.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.word_matchers import GRAPH, WordEncoder, judged, published, query

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.matchers.matcher_interface import (
    MatcherSettings,
    VectorStore,
    claim_text,
    length_batches,
    reference_text,
)
from hallujudge.metrics.framework.claims import Triplet


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": "best"}, "protocol"),
        ({"backend": "gpu"}, "backend"),
        ({"parts": "some"}, "parts"),
        ({"keep_above": 1.5}, "keep_above"),
        ({"support_above": float("nan")}, "support_above"),
        ({"small_above": -0.1}, "small_above"),
        ({"top": 0}, "top"),
        ({"threads": -1}, "threads"),
        ({"cached_vectors": -1}, "cached_vectors"),
        ({"protocol": "nli"}, "small_model"),
    ],
)
def test_settings_are_checked(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError, match=field) as caught:
        MatcherSettings(**changes)
    assert [violation.field for violation in caught.value.violations] == [field]


def test_texts_are_the_released_ones() -> None:
    assert claim_text(Triplet("Lamp (old)", "turned on", "a, b")) == "Lamp (old) turned on a, b"
    assert reference_text(Triplet("Lamp (old)", "is", "a, b")) == "Lamp old is a b."
    assert reference_text(GRAPH[3]) == "bus isred."
    assert claim_text(Triplet("a\ud800", "b", "c")) == "a� b c".replace("�", "�" * 3)


def test_each_distinct_text_is_embedded_once() -> None:
    encoder = WordEncoder()
    matcher = published(encoder)
    queries = [query("man", "riding", "horse"), query("cat", "eats", "fish")] * 50
    first = judged(matcher, *queries)
    assert len(encoder.asked) == len(set(encoder.asked))
    before = len(encoder.asked)
    assert judged(matcher, *queries) == first
    assert len(encoder.asked) == before, "a second call finds every vector"


def test_the_cache_is_bounded_and_can_be_off() -> None:
    for limit in (0, 3):
        encoder = WordEncoder()
        store = VectorStore(encoder, limit)
        texts = [f"text {number}" for number in range(10)]
        assert set(store.vectors(texts)) == set(texts)
        assert len(store) == limit
        store.vectors(texts[-3:])
        assert len(encoder.asked) == 10 + (3 if limit == 0 else 0)


def test_batches_are_of_equal_length_and_bounded() -> None:
    lengths = [5, 3, 5, 5, 900, 3]
    batches = length_batches(lengths, tokens=10)
    assert batches == [[1, 5], [0, 2], [3], [4]]
    assert length_batches([]) == []
    assert length_batches([0, 0]) == [[0, 1]]
