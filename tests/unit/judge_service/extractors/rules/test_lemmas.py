"""Phrases that say the same in other forms of their words."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.rules.rule_extractors import lemma_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("riding", "is riding a"),
        ("Dogs", "the dog"),
        ("sitting on", "sits on"),
        ("is", "IS"),
        ("", ""),
        ("犬", "犬"),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert lemma_key(one) == lemma_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("on", "under"), ("black dog", "dog"), ("is", "are"), ("", "dog"), ("犬", "猫")],
)
def test_something_else(one: str, other: str) -> None:
    assert lemma_key(one) != lemma_key(other)
