"""Support of objects: similarity, one-to-one assignment, context and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hallujudge.judge_service.engine.families.open_objects import (
    assign,
    compared,
    normal,
    reference_of,
    texts_of,
)
from hallujudge.judge_service.extractors.rules.rule_extractors import read_caption
from hallujudge.metrics.open_objects import ComparedObject

WORDS = ("dog", "cat", "piano", "runs", "sleeps", "sofa")


def vectors(texts: Iterable[str]) -> Mapping[str, NDArray[np.float32]]:
    """Return vectors that have a coordinate for each of a few words."""
    found = {}
    for text in texts:
        vector = np.array([1.0, *(word in text for word in WORDS)], dtype=np.float32)
        found[text] = vector / np.linalg.norm(vector)
    return found


def roots(name: str) -> str | None:
    return {"couch": "couch", "sofa": "couch"}.get(name)


def found(
    caption: str, captions: tuple[str, ...], names: tuple[str, ...] = ()
) -> tuple[dict[str, ComparedObject], dict[str, bool]]:
    sentences, reference = read_caption(caption), reference_of(captions, names)
    known = vectors(texts_of(sentences, reference))
    objects, named = compared(sentences, reference, known, roots)
    return {each.object: each for sentence in objects for each in sentence}, named


def test_equal_nouns_and_equal_roots_are_alike() -> None:
    objects, named = found("A dog on a sofa.", ("A dog lies on a couch.",))
    assert [(o.reference, o.similarity) for o in objects.values()] == [("dog", 1.0), ("couch", 1.0)]
    assert named == {"dog": True, "couch": True}


def test_two_persons_are_nearly_alike() -> None:
    objects, _ = found("A skier.", ("A man stands.",))
    assert objects["skier"].similarity == pytest.approx(1.0)
    objects, _ = found("A dog.", ("A man stands.",))
    assert objects["dog"].similarity < 0.9


def test_each_reference_object_supports_one_object() -> None:
    objects, named = found("A dog near a cat.", ("A dog runs.",))
    assert (objects["dog"].reference, objects["cat"].reference) == ("dog", "")
    assert objects["cat"].similarity == 0.0
    assert named == {"dog": True}


def test_an_object_named_twice_is_the_same() -> None:
    sentences = read_caption("A dog runs. The dog sleeps.")
    reference = reference_of(("A dog runs near a cat.",), ())
    known = vectors(texts_of(sentences, reference))
    objects, named = compared(sentences, reference, known, roots)
    assert [[o.reference for o in sentence] for sentence in objects] == [["dog"], ["dog"]]
    assert named == {"dog": True, "cat": False}


def test_a_word_that_the_references_lack_gains() -> None:
    objects, _ = found("A dog runs near a piano.", ("A dog runs.", "The dog runs."))
    assert objects["piano"].gain > 0 >= objects["dog"].gain
    assert objects["piano"].closeness == objects["dog"].closeness < 1


@pytest.mark.parametrize(
    ("caption", "uncounted"),
    [
        ("Two dogs.", False),
        ("Three dogs.", True),
        ("Three pictures of dogs.", True),
        ("Dogs.", False),
        ("One dog.", False),
    ],
)
def test_a_number_that_fewer_than_half_of_the_references_state(
    caption: str, uncounted: bool
) -> None:
    objects, _ = found(caption, ("A pair of dogs.", "Two dogs.", "Three dogs.", "Dogs."))
    assert objects["dog"].uncounted is uncounted


def test_objects_alone_give_no_context() -> None:
    objects, named = found("Three dogs near a piano.", (), ("Dog", "cat"))
    assert {(o.closeness, o.gain, o.uncounted) for o in objects.values()} == {(1.0, 0.0, False)}
    assert named == {"dog": True, "cat": False}


def test_captions_are_compared_without_case_and_full_stop() -> None:
    assert normal(" A DOG  runs. ") == "a dog runs"


matrices = st.integers(0, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.floats(0, 1), min_size=columns, max_size=columns), max_size=4
    )
)


@given(matrices)
def test_the_assignment_has_the_largest_sum(values: list[list[float]]) -> None:
    chosen = assign(values)
    columns = [column for column in chosen if column is not None]
    assert len(columns) == len(set(columns)) == min(len(values), len(values[0]) if values else 0)
    total = sum(values[row][column] for row, column in enumerate(chosen) if column is not None)
    assert total == pytest.approx(largest_sum(values))


def largest_sum(values: list[list[float]]) -> float:
    """Return the largest sum by trying all assignments."""
    rows, columns = len(values), len(values[0]) if values else 0
    if rows > columns:
        return largest_sum([list(column) for column in zip(*values, strict=True)])
    tried = permutations(range(columns), rows)
    return max(sum(values[row][at] for row, at in enumerate(order)) for order in tried)
