"""Hashes of records, which items.jsonl keeps."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.engine.pipelines import record_hash
from hallujudge.metrics.framework.results import CanonicalRecord


@pytest.mark.parametrize(
    ("record", "digest"),
    [
        (None, "7376b2cbfa0ad26e"),
        ("yes", "dec2da0b68a0d289"),
        (["cat", "dog"], "8dad5a3906fcfb17"),
        ("Ein Zäpfchen \ud800?", "0fd8c1b47261f3c0"),
    ],
)
def test_hashes_of_records_are_pinned(record: CanonicalRecord, digest: str) -> None:
    assert record_hash(record) == digest


def test_lists_and_tuples_are_alike_and_nesting_is_not() -> None:
    assert record_hash(("a", ("b", 1))) == record_hash(["a", ["b", 1]])
    assert record_hash(("a", ("b", 1))) != record_hash(["a", "b", 1])


def test_a_long_text_is_hashed_as_a_short_one_is() -> None:
    assert record_hash("x" * 500) == record_hash("x" * 500)
    assert record_hash("x" * 500) != record_hash("x" * 501)
