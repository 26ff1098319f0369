"""Tags of words that belong to two classes."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.rules.rule_extractors import shared_analyser
from hallujudge.judge_service.extractors.rules.words import sentences


def _tags(text: str) -> str:
    analyser = shared_analyser()
    (tokens,) = sentences(text)
    return "".join(analyser.tagger.tag([analyser.book.word(token.text) for token in tokens]))


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("The man waves at a wave.", "DNVIDN."),
        ("A bus drives down the street.", "DNVIDN."),
        ("She talks and walks.", "PVCV."),
        ("A stuffed bear is on the kitchen counter.", "DANBIDNN."),
        ("The dog is running to the open door.", "DNBGTDAN."),
        ("He wants to water the plants.", "PVTVDN."),
        ("A building covered in snow is near.", "DNEINBI."),
        ("There is a can of paint.", "XBDNIN."),
    ],
)
def test_words_of_two_classes(text: str, tags: str) -> None:
    assert _tags(text) == tags
