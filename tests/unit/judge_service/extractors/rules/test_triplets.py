"""Each rule of the triplet extractor, with an example or two."""

from __future__ import annotations

import asyncio

import pytest

from hallujudge.judge_service.extractors.extractor_interface import (
    TripletExtractor,
)
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor

_EXTRACTOR = RuleTripletExtractor()


def _claims(text: str) -> set[tuple[str, str, str]]:
    return {triplet.parts for triplet in _EXTRACTOR.extract(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # attributes
        ("The bus is red.", {("bus", "is", "red")}),
        ("A red bus stops.", {("bus", "is", "red"), ("bus", "is", "stopping")}),
        ("The sky is clear and blue.", {("sky", "is", "clear"), ("sky", "is", "blue")}),
        ("The man is a chef.", {("man", "is", "chef")}),
        ("The cars are parked.", {("cars", "is", "parked")}),
        # prepositions
        ("A cup is on the table.", {("cup", "on", "table")}),
        ("A cup stands in front of a box.", {("cup", "stands in front of", "box")}),
        ("A dog lies next to a couch.", {("dog", "lies next to", "couch")}),
        ("The dog is afraid of the cat.", {("dog", "is", "afraid"), ("dog", "afraid of", "cat")}),
        # verbs and particles
        ("A man is riding a wave.", {("man", "riding", "wave")}),
        ("The girl picks up a ball.", {("girl", "picks up", "ball")}),
        ("The girl picks the ball up.", {("girl", "picks up", "ball")}),
        ("The dog is running.", {("dog", "is", "running")}),
        ("He cuts bread with a knife.", {("he", "cuts", "bread"), ("he", "cuts with", "knife")}),
        # passives
        ("The pizza is eaten by a man.", {("pizza", "eaten by", "man")}),
        ("The hill is covered in snow.", {("hill", "covered in", "snow")}),
        # possession
        ("The man's hat is big.", {("man", "has", "hat"), ("hat", "is", "big")}),
        ("A man lifts his hat.", {("man", "lifts", "hat"), ("man", "has", "hat")}),
        ("The room has a window.", {("room", "has", "window")}),
        # coordination
        ("A man and a woman hold a kite.", {("man", "hold", "kite"), ("woman", "hold", "kite")}),
        ("She holds a cup and a fork.", {("she", "holds", "cup"), ("she", "holds", "fork")}),
        ("A boy sits and reads a book.", {("boy", "is", "sitting"), ("boy", "reads", "book")}),
        # relative clauses and participles
        ("A man in boots holds a cup.", {("man", "in", "boots"), ("man", "holds", "cup")}),
        ("A dog wearing a hat eats.", {("dog", "wearing", "hat"), ("dog", "is", "eating")}),
        ("A man who has a beard sleeps.", {("man", "has", "beard"), ("man", "is", "sleeping")}),
        ("The cup that the man holds is red.", {("man", "holds", "cup"), ("cup", "is", "red")}),
        ("A wall built by monks is old.", {("wall", "built by", "monks"), ("wall", "is", "old")}),
        # existence
        ("There is a dog.", {("dog", "is", "present")}),
        ("There are two dogs on the beach.", {("dogs", "on", "beach")}),
        ("The image shows a cat on a chair.", {("cat", "on", "chair")}),
        ("On the table, there is a vase.", {("vase", "on", "table")}),
        ("A group of people is walking.", {("people", "is", "walking")}),
        ("A baseball game.", {("baseball game", "is", "present")}),
        # negation
        ("The man is not wearing a hat.", {("man", "not wearing", "hat")}),
        ("There are no people on the beach.", {("people", "not on", "beach")}),
        ("The bus isn't red.", {("bus", "is not", "red")}),
        ("The dog does not chase the cat.", {("dog", "not chase", "cat")}),
        ("It's unlikely that the dog is a poodle.", {("dog", "is not", "poodle")}),
        ("The cat is unlikely to be asleep.", {("cat", "is not", "asleep")}),
        # chains
        ("The man seems to be holding a cup.", {("man", "holding", "cup")}),
        ("The boy is seen throwing a ball.", {("boy", "throwing", "ball")}),
        ("The woman might be happy.", {("woman", "is", "happy")}),
    ],
)  # fmt: skip
def test_rules(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert _claims(text) == expected


def test_pronouns_refer_to_nouns_that_agree() -> None:
    claims = _EXTRACTOR.extract("A man holds a cup. He drinks from it.")
    assert [claim.parts for claim in claims] == [
        ("man", "holds", "cup"),
        ("man", "drinks from", "cup"),
    ]
    assert claims[1].subject_span == (19, 21)  # where "He" stands


def test_an_unknown_pronoun_stays_as_subject_and_is_not_an_object() -> None:
    assert _claims("She holds it.") == {("she", "is", "holding")}


def test_spans_point_at_the_text() -> None:
    text = "A small dog chases the polar bear."
    claims = _EXTRACTOR.extract(text)
    assert claims
    for claim in claims:
        assert text[slice(*claim.subject_span)] == claim.subject
        assert text[slice(*claim.object_span)] == claim.object
        assert claim.start <= claim.subject_span.start
        assert claim.object_span.end <= claim.end


def test_negation_is_in_the_relation_and_on_the_claim() -> None:
    (claim,) = _EXTRACTOR.extract("The man is not wearing a hat.")
    assert claim.negated
    assert claim.relation == "not wearing"


def test_many_texts_keep_their_order() -> None:
    assert isinstance(_EXTRACTOR, TripletExtractor)
    found = asyncio.run(_EXTRACTOR.extract_many(["A dog runs.", "", "A cat sleeps."]))
    assert [[claim.subject for claim in claims] for claims in found] == [["dog"], [], ["cat"]]
