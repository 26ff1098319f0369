"""Lemmas of nouns and verbs."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.rules.lexicon import Morphology, load_lexicon


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        ("dogs", "dog"),
        ("children", "child"),
        ("people", "person"),
        ("men", "man"),
        ("knives", "knife"),
        ("shelves", "shelf"),
        ("leaves", "leaf"),
        ("buses", "bus"),
        ("bus", "bus"),
        ("grass", "grass"),
        ("dress", "dress"),
        ("boxes", "box"),
        ("cookies", "cookie"),
        ("berries", "berry"),
        ("potatoes", "potato"),
        ("glasses", "glasses"),
        ("scissors", "scissors"),
        ("jeans", "jeans"),
        ("skis", "ski"),
        ("tennis", "tennis"),
        ("teeth", "tooth"),
        ("sheep", "sheep"),
    ],
)
def test_nouns(form: str, lemma: str) -> None:
    assert Morphology(load_lexicon()).noun(form)[0] == lemma


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
