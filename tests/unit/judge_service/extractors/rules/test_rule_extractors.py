"""The keyword extractor, and keys of phrases that differ only in word forms."""

from __future__ import annotations

import asyncio

import pytest

from hallujudge.judge_service.extractors.rules.rule_extractors import (
    RuleCounts,
    RuleKeywordExtractor,
    lemma_key,
)

_EXTRACTOR = RuleKeywordExtractor()


def _keywords(text: str) -> tuple[list[str], list[str]]:
    found = _EXTRACTOR.extract(text)
    return [k.text for k in found.objects], [k.text for k in found.behaviors]


@pytest.mark.parametrize(
    ("text", "objects", "behaviors"),
    [
        ("A man picks up two boxes.", ["man", "box"], ["pick up"]),
        ("She puts the helmet on.", ["helmet"], ["put on"]),
        ("The girl takes a walk with her dogs.", ["girl", "dog"], ["walk"]),
        ("He gives her a hug.", [], ["hug"]),
        ("A woman takes a picture.", ["woman"], ["take picture"]),
        ("The men have a beard.", ["man", "beard"], []),
        ("The robotic arm opens the bottom drawer.", ["robotic arm", "drawer"], ["open"]),
        ("The image shows a cat that is yawning.", ["cat"], ["yawn"]),
        ("There is a cutting board on the table.", ["cutting board", "table"], []),
        ("A group of friends begins to dance.", ["friend"], ["dance"]),
        ("The drawer is pulled open.", ["drawer"], ["pull open"]),
        ("A boy with red shorts is seen running away.", ["boy", "shorts"], ["run away"]),
        ("In the background, the weather is nice.", [], []),
    ],
)
def test_keywords(text: str, objects: list[str], behaviors: list[str]) -> None:
    assert _keywords(text) == (objects, behaviors)


def test_each_root_form_appears_once_at_its_first_place() -> None:
    text = "Dogs run. A dog ran."
    found = _EXTRACTOR.extract(text)
    assert [(k.text, text[k.start : k.end]) for k in found.objects] == [("dog", "Dogs")]
    assert [(k.text, text[k.start : k.end]) for k in found.behaviors] == [("run", "run")]


def test_no_object_has_more_than_two_words() -> None:
    objects, _ = _keywords("A big red kitchen table cloth lies near the old city bus stop sign.")
    assert objects
    assert all(len(name.split()) <= 2 for name in objects)


def test_many_texts_keep_their_order() -> None:
    found = asyncio.run(_EXTRACTOR.extract_many(["A dog.", "", "A cat."]))
    assert [[k.text for k in keywords.objects] for keywords in found] == [["dog"], [], ["cat"]]


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


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Two dogs sleep.", [("dogs", "is", "2")]),
        ("There are 3 blue balls and a box.", [("balls", "is", "3")]),
        ("There are two traffic lights.", [("traffic lights", "is", "2")]),
        ("Three young men ride two bikes.", [("men", "is", "3"), ("bikes", "is", "2")]),
        ("The five-year-old has 2 cups.", [("cups", "is", "2")]),
        # What counts nothing.
        ("A five-year-old boy waves.", []),
        ("A dog is on the sofa.", []),
        ("There are no dogs.", []),
        ("Two college graduates pack.", []),
        ("A couple walks with a pair of glasses.", []),
        ("The bus stops at 3.5 meters.", []),
    ],
)
def test_a_number_of_things_is_a_claim(text: str, claims: list[tuple[str, str, str]]) -> None:
    found = RuleCounts().extract(text)
    assert [claim.parts for claim in found] == claims
    assert all(claim.subject in text[claim.start : claim.end] for claim in found)
