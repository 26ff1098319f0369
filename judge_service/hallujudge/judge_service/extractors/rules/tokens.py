"""Splitting of text into sentences of tokens with offsets, in time linear in its length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .word_lists import ABBREVIATIONS, MULTIWORD

_LONGEST_SENTENCE = 240
"""The maximum number of tokens of a sentence, which limits the cost of the rules."""

# Invisible characters: zero-width marks, soft hyphens, direction marks, the byte order mark.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_ALIKE = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-", "\u00a0": " "}
)
_TOKEN = re.compile(
    r"\n[ \t]*(?:\n\s*|(?=[-*\u2022]|\d{1,3}[.)]|[A-Z]))"  # paragraph, list item or fresh line
    r"|(?:[A-Za-z]\.){2,}"  # U.S., a.m.
    r"|[^\W\d_]+(?:['-][^\W\d_]+)*"  # words with hyphens and apostrophes
    r"|\d+(?:[.,:/]\d+)*(?:-?[^\W\d_]+)?(?:-[^\W\d_]+)*%?"  # numbers, 20-year-old, 1st
    r"|\.{2,}|[^\w\s]|_+"
)
_CONTRACTIONS = ("n't", "'s", "'re", "'ve", "'ll", "'m", "'d")
_CANNOT = "cannot"
_ENDS = frozenset(".!?\u2026\u3002\uff01\uff1f")
_STOPS = _ENDS | {";"}
# Marks that belong to the sentence before them.
_CLOSERS = frozenset("\"'\u201d)]*")
_SILENT = frozenset('*_#`~|"\u201c\u201d\u00ab\u00bb')
"""Marks without meaning for the rules: emphasis, headings and quotation marks."""
_PHRASES: dict[str, dict[str, list[tuple[str, ...]]]] = {}
"""First word -> second word -> the words after the first, longer phrases before shorter ones."""
for _phrase in sorted(MULTIWORD, key=lambda phrase: -len(phrase.split())):
    _head, *_tail = _phrase.split()
    _PHRASES.setdefault(_head, {}).setdefault(_tail[0], []).append(tuple(_tail))


class Token(NamedTuple):
    """A word or punctuation mark and its place."""

    text: str
    """The token as written, with normalised quotes and hyphens."""
    start: int
    """The first character in the original text."""
    end: int
    """One past the last character."""


def clean(text: str) -> tuple[str, list[int] | None]:
    """Return the text without invisible characters, and each character's original place.

    The places are None if no character moved.
    """
    text = text.translate(_ALIKE) if not text.isascii() else text
    if text.isascii() or not _INVISIBLE.search(text):
        return text, None
    kept = [i for i, char in enumerate(text) if not _INVISIBLE.match(char)]
    places = [*kept, len(text)]
    return "".join([text[i] for i in kept]), places


def sentences(text: str) -> Iterator[list[Token]]:
    """Yield the sentences as tokens; a multi-word preposition or adverb is one token."""
    cleaned, places = clean(text)
    sentence: list[Token] = []
    closing = False
    for match in _TOKEN.finditer(cleaned):
        word = match.group()
        first = word[0]
        broken = first == "\n"
        if broken or (closing and word not in _CLOSERS):
            if sentence:
                yield _merged(sentence)
                sentence = []
            closing = False
        if broken or first in _SILENT:
            continue
        start, end = match.span()
        if places is not None:
            start, end = places[start], places[end - 1] + 1
        if "'" in word and end - start > 1:
            sentence += _split(word, start, end)
        elif len(word) == len(_CANNOT) and word.lower() == _CANNOT and end - start == len(word):
            sentence += [Token(word[:3], start, start + 3), Token(word[3:], start + 3, end)]
        else:
            sentence.append(Token(word, start, end))
        if first in _STOPS:
            closing = first == ";" or _ends(sentence, cleaned, match.end())
        elif len(sentence) >= _LONGEST_SENTENCE:
            closing = True
    if sentence:
        yield _merged(sentence)


def _ends(sentence: list[Token], text: str, after: int) -> bool:
    """Return whether the last token, a punctuation mark, ends the sentence."""
    if sentence[-1].text != ".":
        return True
    if after < len(text) and not text[after].isspace() and text[after] not in _CLOSERS:
        return False
    if len(sentence) == 1:
        return True
    before = sentence[-2].text
    if len(sentence) == 2 and (before.isdigit() or (len(before) == 1 and before.isalpha())):
        return False  # a list's number
    if len(before) == 1 and before.isupper() and before != "I":
        return False
    if before.lower() not in ABBREVIATIONS:
        return True
    following = text[after : after + 40].lstrip()[:1]
    return before.lower() in ("etc", "no") and following.isupper()


def _split(word: str, start: int, end: int) -> list[Token]:
    """Split a contraction: ``isn't`` is ``is`` and ``n't``, ``man's`` is ``man`` and ``'s``."""
    lower = word.lower()
    for ending in _CONTRACTIONS:
        if lower.endswith(ending) and len(word) > len(ending):
            cut = max(start, end - len(ending))
            return [Token(word[: -len(ending)], start, cut), Token(word[-len(ending) :], cut, end)]
    return [Token(word, start, end)]


def _merged(tokens: list[Token]) -> list[Token]:
    """Return the tokens with multi-word phrases merged."""
    lowered = [token.text.lower() for token in tokens]
    out: list[Token] = []
    i, last = 0, len(tokens) - 1
    for k, token in enumerate(tokens):
        if k < i:
            continue
        i = k + 1
        tails = _PHRASES.get(lowered[k])
        if tails is not None and k < last and (found := tails.get(lowered[k + 1])):
            length = _phrase_length(found, lowered, k)
            if length:
                i = k + length + 1
                phrase = " ".join(lowered[k:i])
                token = Token(phrase, token.start, tokens[i - 1].end)
        out.append(token)
    return out


def _phrase_length(tails: list[tuple[str, ...]], lowered: list[str], i: int) -> int:
    """Return how many words of a known phrase follow word ``i``; the longest phrase wins."""
    for tail in tails:
        if tuple(lowered[i + 1 : i + 1 + len(tail)]) == tail:
            return len(tail)
    return 0
