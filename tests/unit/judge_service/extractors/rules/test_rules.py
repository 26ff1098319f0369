"""Texts that are hostile or meaningless."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import sized
from support.work import calls_of

from hallujudge.judge_service.extractors.rules.rule_extractors import (
    RuleKeywordExtractor,
    RuleTripletExtractor,
)

_TRIPLETS, _KEYWORDS = RuleTripletExtractor(), RuleKeywordExtractor()

_WORDS = """the a dog man is are not n't 's walking red and or , . ! to who that there on of in
    front it his her can 20-pound up picks Yes no \u200b 狗 ' - " ( 1. e.g."""
_PIECES = st.sampled_from(_WORDS.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "\u200b\u200b",
        "...!!!???",
        "一个男人在街上走。狗在跑。",
        "رجل يمشي في الشارع مع كلب.",
        "Ein Mann geht über die Straße und winkt einer Frau auf einem Fahrrad zu.",
        "Un homme marche dans la rue avec son chien et une grande voiture rouge.",
        "🐶🐱" * 50,
        "x" * 10_000,
        "lorem ipsum dolor sit amet consectetur adipiscing elit",
    ],
)
def test_no_claim_is_made_of_what_is_not_english(text: str) -> None:
    assert _TRIPLETS.extract(text) == []
    assert _KEYWORDS.extract(text).objects == ()


def test_zero_width_characters_hide_nothing_and_spans_keep_them() -> None:
    text = "A do\u200bg is chasing a b\u200dall."
    (claim,) = _TRIPLETS.extract(text)
    assert claim.parts == ("dog", "chasing", "ball")
    assert text[slice(*claim.subject_span)] == "do\u200bg"


@given(st.lists(_PIECES, max_size=60).map(" ".join))
@settings(deadline=None)
def test_any_order_of_words_is_read_and_spans_lie_in_it(text: str) -> None:
    for claim in _TRIPLETS.extract(text):
        assert 0 <= claim.start < claim.end <= len(text)
        for part in claim.parts:
            assert part.strip()
    keywords = _KEYWORDS.extract(text)
    for keyword in (*keywords.objects, *keywords.behaviors):
        assert 0 <= keyword.start < keyword.end <= len(text)


@given(st.text(max_size=200))
@settings(deadline=None)
def test_any_text_is_read(text: str) -> None:
    assert all(claim.end <= len(text) for claim in _TRIPLETS.extract(text))
    assert isinstance(_KEYWORDS.extract(text).objects, tuple)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "A man in a red jacket walks across the street. ",
        "a dog and a cat and ",
        "the top of ",
        "the man's ",
        "a-",
        "a'",
        "\n ",
        '"',
        "1,2-a ",
        "who ",
        "\u200b",
    ],
)
def test_work_grows_with_length_and_no_faster(piece: str) -> None:
    def work(size: int) -> int:
        text = (piece * (size // len(piece) + 1))[:size]
        return calls_of(lambda: (_TRIPLETS.extract(text), _KEYWORDS.extract(text)))

    work(1_000)
    small, large = work(sized(2_000, 5_000)), work(sized(16_000, 40_000))
    assert large <= 8.5 * small
    if small < 1_000:
        # All the work is in a few regular expressions, which count as one call each: a text of this
        # length would take hours if one of them backtracked.
        assert work(400_000) <= 8.5 * small
