"""Alternatives of a guess, completed nouns and verb chains: what joins to one phrase, and not."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.rules.phrases import NounPhrase, worth_stating
from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor

_EXTRACTOR = RuleTripletExtractor()


def _claims(text: str) -> list[str]:
    return [", ".join(claim.parts) for claim in _EXTRACTOR.extract(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Perhaps a zoo or a park.", ["zoo or park, is, present"]),
        ("It could be a zoo, or a park.", ["zoo or park, is, present"]),
        ("Perhaps a cup or a dog runs.", ["cup or dog, is, running"]),
        ("It might be a red bus or a green van.", ["red bus or green van, is, present"]),
        ("The box might hold apples, pears, or plums.",
         ["box, hold, apples, pears or plums"]),
        ("The man might hold a cup and a fork or a spoon.",
         ["man, hold, cup, fork or spoon"]),
        # no "or", or other kinds of phrases
        ("The man might hold a cup, a fork.", ["man, hold, cup", "man, hold, fork"]),
        ("It could be a zoo or red.", ["zoo, is, present"]),
        # what is denied is denied of each
        ("The box could not hold apples or pears.",
         ["box, not hold, apples", "box, not hold, pears"]),
        ("The man might leave without a hat or a coat.",
         ["man, leave without, hat", "man, leave without, coat"]),
        # pronouns, and the subject of another clause
        ("The man could hold a cup or it.", ["man, hold, cup"]),
        ("The man might hold a cup or a dog barks.", ["man, hold, cup", "dog, is, barking"]),
    ],
)  # fmt: skip
def test_the_alternatives_of_a_guess_are_one_claim(text: str, expected: list[str]) -> None:
    assert _claims(text) == expected


def test_joined_alternatives_have_the_place_of_all() -> None:
    text = "It might be a red bus or a green van."
    (claim,) = _EXTRACTOR.extract(text)
    assert text[slice(*claim.subject_span)] == "red bus or a green van"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The color of the shirt is red.", ["color of shirt, is, red"]),
        ("The reason for the party is a birthday.", ["reason for party, is, birthday"]),
        ("The role of the man is a chef.", ["man, is, chef"]),
        ("The purpose of the net is to stop the ball.", ["net, stop, ball"]),
        ("A body of water is near.", ["body of water, is, present", "water, is, present"]),
        # tangible, a measure, a medium, a pronoun, or several complements
        ("The dog of the man sleeps.", ["dog, of, man", "dog, is, sleeping"]),
        ("A group of people waves.", ["people, is, waving"]),
        ("The color of the photo is red.", ["color, is, red"]),
        ("The color of it is red.", ["color, is, red"]),
        ("The colors of the shirt and the hat are bright.",
         ["colors, of, shirt", "colors, is, bright", "hat, is, bright"]),
    ],
)  # fmt: skip
def test_a_complement_belongs_to_its_abstract_noun(text: str, expected: list[str]) -> None:
    assert _claims(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The man seems to be walking.", ["man, is, walking"]),
        ("The man does not seem to be walking.", ["man, is not, walking"]),
        ("The man is unlikely to be walking.", ["man, is not, walking"]),
        ("The man is not likely to sleep.", ["man, is not, sleeping"]),
        ("The man is able to lift a box.", ["man, lift, box"]),
        ("The man goes walking.", ["man, is, walking"]),
        ("The man keeps on walking.", ["man, keeps on, walking"]),
        ("A dog is seen running.", ["dog, is, running"]),
        ("He is being watched by a dog.", ["he, watched by, dog"]),
        ("The boy has been riding a horse.", ["boy, riding, horse"]),
        ("The boy never really rides a horse.", ["boy, not rides, horse"]),
        ("What appears to be a train is near.", ["train, is, present"]),
    ],
)
def test_a_chain_of_verbs_is_one_verb(text: str, expected: list[str]) -> None:
    assert _claims(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The man holds a cup and a boy in shorts on a bench throws a ball.",
         ["man, holds, cup", "boy, in, shorts", "boy, throws, ball", "shorts, on, bench"]),
        ("There is a dog, and a boy in shorts on the grass holds a ball.",
         ["dog, is, present", "boy, in, shorts", "boy, holds, ball", "shorts, on, grass"]),
    ],
)  # fmt: skip
def test_a_subject_is_known_by_its_verb_after_two_places(text: str, expected: list[str]) -> None:
    assert _claims(text) == expected


@pytest.mark.parametrize(
    ("lemma", "pronoun", "tangible", "verbless", "expected"),
    [
        ("dog", False, True, False, True),
        ("winter", False, False, True, True),
        ("winter", False, False, False, False),
        ("they", True, True, True, False),
        ("photo", False, True, True, False),
    ],
)
def test_presence_is_claimed_of_things_but_not_of_pronouns_or_pictures(
    lemma: str, *, pronoun: bool, tangible: bool, verbless: bool, expected: bool
) -> None:
    phrase = NounPhrase(lemma, 0, 1, 0, len(lemma))
    phrase.pronoun, phrase.tangible = pronoun, tangible
    assert worth_stating(phrase, verbless) is expected
