"""Mentions that deny an object: "there is no dog"."""

from __future__ import annotations

import pytest

from hallujudge.synonym_graphs import compile_matcher, load_graph

CORRECTED = compile_matcher(load_graph("coco"), variant="corrected")
PUBLISHED = compile_matcher(load_graph("coco-published"), variant="published")


@pytest.mark.parametrize(
    ("caption", "claimed", "denied"),
    [
        ("There is no dog.", [], ["dog"]),
        ("There is no dog on the bench.", ["bench"], ["dog"]),
        ("There isn't a person in sight.", [], ["person"]),
        ("There isn’t any car.", [], ["car"]),
        ("The image does not show a dog.", [], ["dog"]),
        ("There does not appear to be a person.", [], ["person"]),
        ("It is not a cat but a dog.", ["dog"], ["cat"]),
        ("A street without any cars or people.", [], ["car", "people"]),
        ("no cars, buses, or trucks, but a dog", ["dog"], ["car", "bus", "truck"]),
        ("Neither a dog nor a cat.", [], ["dog", "cat"]),
        ("There's not a single dog. A cat sleeps.", ["cat"], ["dog"]),
        ("There are no other animals or people.", [], ["people"]),
        ("A road free of cars.", [], ["car"]),
        ("The room lacks a chair.", [], ["chair"]),
    ],
)
def test_a_denied_object_is_not_claimed(
    caption: str, claimed: list[str], denied: list[str]
) -> None:
    assert [mention.word for mention in CORRECTED.find(caption)] == claimed
    assert [mention.word for mention in CORRECTED.find_absent(caption)] == denied


@pytest.mark.parametrize(
    ("caption", "claimed"),
    [
        ("No one is on the bench.", ["bench"]),
        ("There is no room for more motorcycles.", ["motorcycle"]),
        ("Not only a dog but a cat.", ["dog", "cat"]),
        ("The dog is not wearing a tie.", ["dog", "tie"]),
        ("No doubt a dog.", ["dog"]),
        ("No dog, a cat.", ["cat"]),
        ("The bench is not far from the bus.", ["bench", "bus"]),
    ],
)
def test_other_negations_are_left_alone(caption: str, claimed: list[str]) -> None:
    assert [mention.word for mention in CORRECTED.find(caption)] == claimed


def test_the_published_variant_counts_every_mention() -> None:
    assert [mention.word for mention in PUBLISHED.find("There is no dog.")] == ["dog"]
    assert PUBLISHED.find_absent("There is no dog.") == []


def test_a_long_list_is_read_once() -> None:
    """The work grows with the length of the caption, not with its square."""
    caption = "no " + "dog, " * 20_000 + "or cat"
    assert CORRECTED.find(caption) == []
    assert len(CORRECTED.find_absent(caption)) == 20_001


def test_places_are_those_of_the_caption() -> None:
    caption = "A cat, and no DOGS."
    (dog,) = CORRECTED.find_absent(caption)
    assert caption[dog.start : dog.end] == "DOGS"
