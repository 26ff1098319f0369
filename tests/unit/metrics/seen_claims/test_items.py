"""The kind of a claim, by its words."""

from __future__ import annotations

import pytest

from hallujudge.metrics.framework.claims import Sentence, Triplet
from hallujudge.metrics.seen_claims.items import kind_of


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (("dog", "is", "present"), "object"),
        (("cars", "is not", "present"), "object"),
        (("image", "shows", "dog"), "object"),
        (("dog", "in", "image"), "object"),
        (("dog", "is visible in", "photo"), "object"),
        (("dog", "is", "brown"), "attribute"),
        (("bus", "is not", "red"), "attribute"),
        (("man", "is", "chef"), "attribute"),
        (("girl", "is", "3-year-old"), "attribute"),
        (("dogs", "is", "2"), "count"),
        (("dogs", "are", "two"), "count"),
        (("two dogs", "is", "present"), "count"),
        (("picture", "has", "three cups"), "count"),
        (("number of dogs", "is", "one"), "count"),
        (("dog", "on", "sofa"), "relation"),
        (("man", "holds", "two cups"), "relation"),
        (("man", "in", "boots"), "relation"),
        (("people", "not on", "beach"), "relation"),
        (("man", "has", "hat"), "relation"),
    ],
)
def test_the_kind_follows_from_the_words(claim: tuple[str, str, str], kind: str) -> None:
    assert kind_of(Triplet(*claim)) == kind


def test_a_sentence_has_no_kind() -> None:
    assert kind_of(Sentence("Two dogs are brown.")) == ""
