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
