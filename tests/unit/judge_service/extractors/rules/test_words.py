"""Tokens and sentences: offsets that hold, and ends in the right places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.judge_service.extractors.rules.words import Token, clean, sentences


def _texts(text: str) -> list[list[str]]:
    return [[token.text for token in sentence] for sentence in sentences(text)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("A dog runs. A cat sleeps.", 2),
        ("Dr. Smith holds a cup. He drinks.", 2),
        ("The U.S. flag is red.", 1),
        ("It is 3.5 m high. It is red!", 2),
        ("1. A dog\n2. A cat", 2),
        ("A dog\n\nA cat", 2),
        ("- a dog\n- a cat", 2),
        ("A long line that\ngoes on here.", 1),
        ('"Stop." She runs.', 2),
        ("Fruit, e.g. apples, lies there.", 1),
        ("What is it? A dog... runs.", 3),
        ("", 0),
        (" \n\t ", 0),
    ],
)
def test_sentence_ends(text: str, count: int) -> None:
    assert len(list(sentences(text))) == count


def test_contractions_and_possessives_come_apart() -> None:
    assert _texts("The man's dog isn't here") == [["The", "man", "'s", "dog", "is", "n't", "here"]]


def test_phrases_are_one_token() -> None:
    assert _texts("a cup in front of the cat") == [["a", "cup", "in front of", "the", "cat"]]


def test_curly_quotes_and_nonbreaking_hyphens_read_as_plain_ones() -> None:
    assert _texts("the man\u2019s T\u2011shirt") == [["the", "man", "'s", "T-shirt"]]


def test_invisible_characters_are_left_out_and_offsets_still_hold() -> None:
    text = "a do\u200bg \ufeffruns"
    tokens = [token for sentence in sentences(text) for token in sentence]
    assert tokens[1] == Token("dog", 2, 6)
    assert text[tokens[2].start : tokens[2].end] == "runs"
    assert clean("plain") == ("plain", None)


@given(st.text(max_size=300))
def test_offsets_lie_in_the_text_and_never_go_back(text: str) -> None:
    before = 0
    for sentence in sentences(text):
        for token in sentence:
            assert before <= token.start < token.end <= len(text)
            before = token.end


@given(st.text(alphabet="ab .\n'-1,é\u200b!?I", max_size=200))
def test_tokens_stand_where_they_say(text: str) -> None:
    for sentence in sentences(text):
        for token in sentence:
            place = "".join(clean(text[token.start : token.end])[0].lower().split())
            assert place == "".join(token.text.lower().split())
