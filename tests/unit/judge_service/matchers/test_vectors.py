"""The store of vectors and the batches that are encoded together."""

from __future__ import annotations

from support.word_matchers import WordEncoder, judged, published, query

from hallujudge.judge_service.matchers.vectors import VectorStore, length_batches


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
