"""Tokens of a caption with their places, from nltk's untrained tokenisers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from ..light_imports import load_tokenizers

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktLanguageVars

_QUOTES: Final = ("``", "''")
"""What the word tokeniser writes in place of an opening or closing double quote."""


class Token(NamedTuple):
    """A token and its span in the text."""

    text: str
    start: int
    end: int


def load_tokenizer() -> None:
    """Import nltk's tokenisers, which the first caption would import otherwise."""
    _language()
    _word_tokenizer()


def tokens_of(text: str) -> list[Token]:
    """Split lower-case text into sentences and then tokens, as the published script does.

    The time was linear in the text's length for all inputs that were tried, even without blanks.
    """
    language = _language()
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    # A new sentence tokeniser each time, because it never forgets a word it has seen.
    sentences = PunktSentenceTokenizer(lang_vars=language)
    found: list[Token] = []
    for start, end in sentences.span_tokenize(text):
        found.extend(_sentence_tokens(text[start:end], start))
    return found


def word_tokens(word: str) -> list[Token]:
    """Split one string without blanks as if it were in the middle of a sentence."""
    before, after = "x ", " x"
    tokens = list(_sentence_tokens(before + word + after, -len(before)))
    return tokens[1:-1]


def splits(word: str) -> bool:
    """Return whether the tokeniser splits a plain word in two ("cannot")."""
    return any(pattern.search(word) for pattern in _word_tokenizer().CONTRACTIONS2)


@cache
def _language() -> PunktLanguageVars:
    load_tokenizers()
    from nltk.tokenize.punkt import PunktLanguageVars

    return PunktLanguageVars()


@cache
def _word_tokenizer() -> NLTKWordTokenizer:
    load_tokenizers()
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


def _sentence_tokens(sentence: str, offset: int) -> Iterator[Token]:
    # The tokeniser only adds blanks and rewrites quotes, so the tokens are in order.
    position = 0
    for text in _word_tokenizer().tokenize(sentence):
        while sentence[position].isspace():
            position += 1
        length = _length_at(sentence, position, text)
        yield Token(text, offset + position, offset + position + length)
        position += length


def _length_at(sentence: str, position: int, token: str) -> int:
    if sentence.startswith(token, position):
        return len(token)
    if token in _QUOTES:
        return 1 if sentence[position] == '"' else 2
    raise AssertionError(f"token {token[:40]!r} is not at {position} in {sentence[:80]!r}")
