"""Objects of captions: names, numbers, and the words about each."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.rules.rule_extractors import numbers_of, read_caption


def names(text: str) -> list[str]:
    return [o.name for sentence in read_caption(text) for o in sentence.objects]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A man rides a wave near a picnic table.", ["man", "wave", "picnic table"]),
        ("There is no dog on the sofa.", ["sofa"]),
        ("An image of a horse in the background.", ["horse"]),
        ("It is sleeping.", []),
        ("", []),
    ],
)
def test_names(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("There isn't a dog.", []),
        ("There is not a large dog.", []),
        ("We do not see a dog in this picture.", []),
        ("The image does not show any bicycles, cars, or buses.", []),
        ("This is not a photo of a dog.", []),
        ("The room does not contain a bed.", ["room"]),
        ("A street without cars or people.", ["street"]),
        ("No car, bus or truck can be seen near the house.", ["house"]),
        ("The scene lacks any vehicles.", []),
        ("The road is free of cars, and a dog sleeps.", ["road", "dog"]),
        ("The bird is missing a wing.", ["bird"]),
        ("A dog is not visible.", []),
        ("Cars and people are absent.", []),
        ("The man is not holding an umbrella.", ["man"]),
        ("Nobody is wearing a hat.", []),
        ("The dog is not on a leash.", ["dog"]),
        ("Not a dog but a cat sits on the mat.", ["cat", "mat"]),
    ],
)
def test_what_a_caption_says_is_absent_is_no_object_of_it(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The dog is not on the sofa.", ["dog", "sofa"]),
        ("The man is no longer holding the ball.", ["man", "ball"]),
        ("The man doesn't have a hat, and a woman has an umbrella.", ["man", "woman", "umbrella"]),
        ("There are no cups, but a plate is on the table.", ["plate", "table"]),
        ("The cat is neither on the table nor on the floor.", ["cat", "table", "floor"]),
        ("Not all dogs are brown.", ["dog"]),
        ("A series of photos of a dog.", ["dog"]),
        ("The dog is not brown.", ["dog"]),
        ("It is not a large room, but there is a bed.", ["room", "bed"]),
    ],
)
def test_what_a_caption_denies_of_a_thing_leaves_the_thing(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('A sign that reads "Dog Park" hangs above two cats.', ["sign", "cat"]),
        ("A sign reading 'horse' hangs on the wall.", ["sign", "wall"]),
        ('The shirt has the word "cat" printed on it.', ["shirt"]),
        ("A book titled “The Old Man and the Sea” lies on a desk.", ["book", "desk"]),
        ("The dogs' bowls stand by the cats' toys.", ["bowl", "toy"]),
        ('"A dog runs on grass."', ["dog", "grass"]),
        ('Caption: "A dog on grass"', ["dog", "grass"]),
        ('Here is a caption:\n"A dog on grass"', ["dog", "grass"]),
        ('I would describe it as "a dog runs on grass."', ["dog", "grass"]),
        ('The sign says: "Dog Park"', ["sign"]),
    ],
)
def test_what_a_caption_quotes_is_no_object_of_it(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Two small dogs.", 2),
        ("A couple of dogs.", 2),
        ("12 dogs.", 12),
        ("One dog.", 0),
        ("Three pictures of a dog.", 3),
        ("Some dogs.", 0),
    ],
)
def test_numbers_of_an_object(text: str, number: int) -> None:
    [sentence] = read_caption(text)
    assert [o.number for o in sentence.objects] == [number]


def test_numbers_of_a_text() -> None:
    assert numbers_of("Two men, three dogs and 4 cats, one of 20000") == {2, 3, 4}


def test_every_word_is_about_one_object() -> None:
    text = "Today. A man happily rides a wave now."
    _, second = read_caption(text)
    assert second.text == "A man happily rides a wave now."
    said = [[text[a:b] for a, b in o.words] for o in second.objects]
    assert said == [["A", "man"], ["happily", "rides", "a", "wave", "now"]]
    assert second.without(second.objects[1].words[1]) == "A man happily  a wave now."


def test_persons_are_known() -> None:
    [sentence] = read_caption("A skier near a dog.")
    assert [o.person for o in sentence.objects] == [True, False]
