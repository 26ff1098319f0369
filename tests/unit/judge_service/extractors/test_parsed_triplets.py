"""Claims from dependency trees, which are written by hand: no pipeline is needed."""

from __future__ import annotations

import pytest
from support.spacy_sample import parsed

from hallujudge.judge_service.extractors import (
    ExtractedTriplet,
)
from hallujudge.judge_service.extractors.parsed_triplets import ParsedTriplets
from hallujudge.judge_service.extractors.rules.lexicon import load_lexicon
from hallujudge.metrics.framework.claims import Modality

STATED, HEDGED, CONDITIONAL = Modality.STATED, Modality.HEDGED, Modality.CONDITIONAL


def _found(rows: str, offset: int = 0) -> list[ExtractedTriplet]:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    claims = ParsedTriplets(load_lexicon())
    claims.read(parsed(spacy.blank("en").vocab, rows), offset)
    return claims.found


HEDGE = (
    "The/DET/DT/det/1/the man/NOUN/NN/nsubj/3/man might/AUX/MD/aux/2/might be/AUX/VB/aux/1/be "
    "reading/VERB/VBG/ROOT/0/read a/DET/DT/det/1/a book/NOUN/NN/dobj/-2/book "
    "on/ADP/IN/prep/-3/on a/DET/DT/det/1/a bench/NOUN/NN/pobj/-2/bench"
)
TREES = {
    HEDGE: {("man", "reading", "book"): HEDGED, ("man", "reading on", "bench"): HEDGED},
    # The bread is sliced but not buttered
    "The/DET/DT/det/1/the bread/NOUN/NN/nsubjpass/2/bread is/AUX/VBZ/auxpass/1/be "
    "sliced/VERB/VBN/ROOT/0/slice but/CCONJ/CC/cc/-1/but not/PART/RB/neg/1/not "
    "buttered/VERB/VBN/conj/-3/butter": {
        ("bread", "is", "sliced"): STATED,
        ("bread", "is not", "buttered"): STATED,
    },
    # There is a cat but not a dog
    "There/PRON/EX/expl/1/there is/VERB/VBZ/ROOT/0/be a/DET/DT/det/1/a cat/NOUN/NN/attr/-2/cat "
    "but/CCONJ/CC/cc/-1/but not/PART/RB/neg/2/not a/DET/DT/det/1/a dog/NOUN/NN/conj/-4/dog": {
        ("cat", "is", "present"): STATED,
        ("dog", "is not", "present"): STATED,
    },
    # A dog can be seen in the background
    "A/DET/DT/det/1/a dog/NOUN/NN/nsubjpass/3/dog can/AUX/MD/aux/2/can be/AUX/VB/auxpass/1/be "
    "seen/VERB/VBN/ROOT/0/see in/ADP/IN/prep/-1/in the/DET/DT/det/1/the "
    "background/NOUN/NN/pobj/-2/background": {("dog", "in", "background"): STATED},
    # A red bus stops in front of a shop
    "A/DET/DT/det/2/a red/ADJ/JJ/amod/1/red bus/NOUN/NN/nsubj/1/bus stops/VERB/VBZ/ROOT/0/stop "
    "in/ADP/IN/prep/-1/in front/NOUN/NN/pobj/-1/front of/ADP/IN/prep/-1/of a/DET/DT/det/1/a "
    "shop/NOUN/NN/pobj/-2/shop": {
        ("bus", "is", "red"): STATED,
        ("bus", "stops in front of", "shop"): STATED,
    },
    # The cup that the man holds is full
    "The/DET/DT/det/1/the cup/NOUN/NN/nsubj/5/cup that/PRON/WDT/dobj/3/that the/DET/DT/det/1/the "
    "man/NOUN/NN/nsubj/1/man holds/VERB/VBZ/relcl/-4/hold is/AUX/VBZ/ROOT/0/be "
    "full/ADJ/JJ/acomp/-1/full": {
        ("man", "holds", "cup"): STATED,
        ("cup", "is", "full"): STATED,
    },
    # If the rain stops , the children will play
    "If/SCONJ/IN/mark/3/if the/DET/DT/det/1/the rain/NOUN/NN/nsubj/1/rain "
    "stops/VERB/VBZ/advcl/5/stop ,/PUNCT/,/punct/4/, the/DET/DT/det/1/the "
    "children/NOUN/NNS/nsubj/2/child will/AUX/MD/aux/1/will play/VERB/VB/ROOT/0/play": {
        ("rain", "is", "stopping"): CONDITIONAL,
        ("children", "is", "playing"): CONDITIONAL,
    },
    # The image shows a girl and her kite
    "The/DET/DT/det/1/the image/NOUN/NN/nsubj/1/image shows/VERB/VBZ/ROOT/0/show a/DET/DT/det/1/a "
    "girl/NOUN/NN/dobj/-2/girl and/CCONJ/CC/cc/-1/and her/PRON/PRP$/poss/1/her "
    "kite/NOUN/NN/conj/-3/kite": {
        ("girl", "is", "present"): STATED,
        ("girl", "has", "kite"): STATED,
    },
    # A group of people is walking
    "A/DET/DT/det/1/a group/NOUN/NN/nsubj/4/group of/ADP/IN/prep/-1/of "
    "people/NOUN/NNS/pobj/-1/people is/AUX/VBZ/aux/1/be walking/VERB/VBG/ROOT/0/walk": {
        ("people", "is", "walking"): STATED
    },
    # The girl picks the ball up
    "The/DET/DT/det/1/the girl/NOUN/NN/nsubj/1/girl picks/VERB/VBZ/ROOT/0/pick "
    "the/DET/DT/det/1/the ball/NOUN/NN/dobj/-2/ball up/ADP/RP/prt/-3/up": {
        ("girl", "picks up", "ball"): STATED
    },
    # The cup holds tea or milk
    "The/DET/DT/det/1/the cup/NOUN/NN/nsubj/1/cup holds/VERB/VBZ/ROOT/0/hold "
    "tea/NOUN/NN/dobj/-1/tea or/CCONJ/CC/cc/-1/or milk/NOUN/NN/conj/-2/milk": {
        ("cup", "holds", "tea"): HEDGED,
        ("cup", "holds", "milk"): HEDGED,
    },
    # The cat's tail is long
    "The/DET/DT/det/1/the cat/NOUN/NN/poss/2/cat 's/PART/POS/case/-1/'s tail/NOUN/NN/nsubj/1/tail "
    "is/AUX/VBZ/ROOT/0/be long/ADJ/JJ/acomp/-1/long": {
        ("cat", "has", "tail"): STATED,
        ("tail", "is", "long"): STATED,
    },
    # Ready to run: the root of the tree is not a verb.
    "Ready/ADJ/JJ/ROOT/0/ready to/PART/TO/aux/1/to run/VERB/VB/xcomp/-2/run": {},
    # Is the cat black ?
    "Is/AUX/VBZ/ROOT/0/be the/DET/DT/det/1/the cat/NOUN/NN/nsubj/-2/cat "
    "black/ADJ/JJ/acomp/-3/black ?/PUNCT/./punct/-4/?": {},
}


@pytest.mark.parametrize(("rows", "expected"), TREES.items())
def test_trees(rows: str, expected: dict[tuple[str, str, str], Modality]) -> None:
    assert {claim.parts: claim.modality for claim in _found(rows)} == expected


def test_places_are_those_of_the_text() -> None:
    text = "The man might be reading a book on a bench"
    for claim in _found(HEDGE, offset=100):
        place = slice(claim.object_span.start - 100, claim.object_span.end - 100)
        assert text[place] == claim.object
        assert claim.start >= 100


def test_long_lists_are_cut() -> None:
    things = [f"box{i}/NOUN/NN/conj/{-i}/box{i}" for i in range(1, 200)]
    rows = "Men/NOUN/NNS/nsubj/1/man hold/VERB/VBP/ROOT/0/hold box0/NOUN/NN/dobj/-1/box0 "
    held = [claim for claim in _found(rows + " ".join(things)) if claim.relation == "hold"]
    assert len(held) == 31
