"""The lexicon: its label, its licence and its readings; lemmas of nouns and verbs."""

from __future__ import annotations

import gzip
import hashlib
from importlib import resources

import pytest

from hallujudge.judge_service.extractors.rules.lexicon import Morphology, load_lexicon
from hallujudge.judge_service.extractors.rules.rule_extractors import (
    RuleKeywordExtractor,
    RuleTripletExtractor,
)

DATA = resources.files("hallujudge.judge_service.extractors.rules") / "data"


def test_the_lexicon_is_the_one_that_the_label_names() -> None:
    text = gzip.decompress((DATA / "lexicon.txt.gz").read_bytes())
    # Another lexicon finds other claims: change this digest and the label together.
    digest = hashlib.sha256(text).hexdigest()
    assert (RuleTripletExtractor().label, digest[:16]) == ("rules-3", "8e8d1defe1e3c4dc")
    assert RuleKeywordExtractor().label == RuleTripletExtractor().label


def test_the_licence_travels_with_the_lexicon() -> None:
    licence = (DATA / "LICENSE.wordnet").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
    assert "build_lexicon.py" in licence


def test_readings() -> None:
    lexicon = load_lexicon()
    walk = lexicon.reading("walk")
    assert walk.verb > walk.noun > 0
    assert walk.adjective == -1
    assert lexicon.reading("red").visible
    assert not lexicon.reading("public").visible
    assert lexicon.reading("surfer").person
    assert lexicon.reading("fork").tangible > 3
    assert lexicon.reading("no such word").noun == -1
    assert lexicon.is_verb("pick_up")
    assert not lexicon.is_verb("dog_up")
    assert lexicon.is_noun("living_room")


@pytest.mark.parametrize(
    ("form", "lemma", "plural"),
    [
        ("dogs", "dog", True),
        ("children", "child", True),
        ("people", "person", True),
        ("men", "man", True),
        ("knives", "knife", True),
        ("shelves", "shelf", True),
        ("leaves", "leaf", True),
        ("buses", "bus", True),
        ("bus", "bus", False),
        ("grass", "grass", False),
        ("dress", "dress", False),
        ("boxes", "box", True),
        ("cookies", "cookie", True),
        ("berries", "berry", True),
        ("potatoes", "potato", True),
        ("glasses", "glasses", True),
        ("scissors", "scissors", True),
        ("jeans", "jeans", True),
        ("skis", "ski", True),
        ("tennis", "tennis", False),
        ("teeth", "tooth", True),
        ("sheep", "sheep", False),
        ("series", "series", True),
    ],
)
def test_nouns(form: str, lemma: str, plural: bool) -> None:
    found, weight, is_plural = Morphology(load_lexicon()).noun(form)
    assert (found, is_plural) == (lemma, plural)
    assert weight > 0


@pytest.mark.parametrize(
    ("form", "lemma", "kind"),
    [
        ("picks", "pick", "s"),
        ("carries", "carry", "s"),
        ("watches", "watch", "s"),
        ("riding", "ride", "g"),
        ("sitting", "sit", "g"),
        ("lying", "lie", "g"),
        ("panicking", "panic", "g"),
        ("stopped", "stop", "d"),
        ("held", "hold", "d"),
        ("took", "take", "p"),
        ("taken", "take", "e"),
        ("walk", "walk", "b"),
        ("put", "put", "b"),
    ],
)
def test_verbs(form: str, lemma: str, kind: str) -> None:
    found, weight, form_kind = Morphology(load_lexicon()).verb(form)
    assert (found, form_kind) == (lemma, kind)
    assert weight > 0
