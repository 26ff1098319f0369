"""The texts of claims and references that a model reads."""

from __future__ import annotations

from support.word_matchers import GRAPH

from hallujudge.judge_service.matchers.matcher_interface import claim_text, reference_text
from hallujudge.metrics.framework.claims import Triplet


def test_texts_are_the_released_ones() -> None:
    assert claim_text(Triplet("Lamp (old)", "turned on", "a, b")) == "Lamp (old) turned on a, b"
    assert reference_text(Triplet("Lamp (old)", "is", "a, b")) == "Lamp old is a b."
    assert reference_text(GRAPH[3]) == "bus isred."
    assert claim_text(Triplet("a\ud800", "b", "c")) == "a� b c".replace("�", "�" * 3)
