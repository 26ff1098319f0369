"""What each blank-free chunk of a caption contributes, worked out once per chunk.

Tokenising is nearly all of the published procedure's time, and nearly all chunks of a caption are
tokenised the same wherever they stand. A chunk of one of the shapes below is such a chunk, for any
neighbours of these shapes:

* A core of letters, digits and single inner hyphens, apostrophes or slashes. No rule of the word
  tokeniser reaches across the blank beside it.
* Behind it commas and the like, brackets and quotes: each is split off, also where a
  sentence ends.
* A full stop behind a core of two characters or more with a letter in it: the untrained sentence
  tokeniser knows no abbreviation, so it ends the sentence there whatever follows (a lone letter and
  a number are the two exceptions in its rules), and then the word tokeniser splits it off.
* Chunks without letters are no word of a lexicon, however they are split.

A closing quote or bracket alone, or several signs in a row, can be drawn into the sentence before
it and change how that ends. Those, other alphabets, and anything odd make a caption take the exact
slow path. docs/decisions/fast-matcher.md has the argument rule by rule.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from .lexicon import Lexicon
from .tokens import Token, splits, word_tokens

MAX_CHUNKS: Final = 100_000
"""The most chunks that are remembered; when full, the memory is cleared."""
MAX_CHUNK_LENGTH: Final = 64
"""Longer chunks are not remembered, and take the slow path."""

_LETTER: Final = r"a-zà-öø-ÿ"
_CHUNK: Final = re.compile(
    rf"""
    (?P<lead> [("“]? )
    (?P<core> [{_LETTER}0-9]+ (?: [-'’/] [{_LETTER}0-9]+ )* )
    (?P<tail> [,;:!?)"”]? | \.\.+ | [)"”][,;:!?] | [,!?]["”)]
            | (?P<stop> \. | [)"”]\. | \.[)"] ) )
    """,
    re.VERBOSE,
)
_PLAIN: Final = re.compile(rf"[{_LETTER}]+")
_HAS_LETTER: Final = re.compile(rf"[{_LETTER}]")
_NO_WORD: Final = re.compile(r"[-–—&+/*#|.,;:]|\.\.\.|[$#]?[0-9]+(?:[.,:/x-][0-9]+)*%?[,;:.)]?")
_WORD: Final = re.compile(rf"(?:[{_LETTER}0-9]+(?:[-'/][{_LETTER}0-9]+)*|'s)")


class Word(NamedTuple):
    """A word of the lexicon in a text."""

    written: str
    """As it is compared inside a unit."""
    singular: str
    """As it is compared alone and at the end of a unit."""
    start: int
    end: int


class Projection(NamedTuple):
    """What a chunk contributes, or one of the special values below."""

    lead: bool
    """Whether something that is no word of the lexicon comes first."""
    words: tuple[Word | None, ...]
    """The words of the lexicon; None where there is something else in between."""
    trail: bool
    """Whether something else comes last."""


NOTHING: Final = None
"""A chunk that has no word of the lexicon; false, so that it is quick to skip."""
EMPTY: Final = Projection(False, (), False)
"""No chunk at all, between two blanks."""
UNSAFE: Final = Projection(True, (), True)
"""A chunk that depends on its neighbours."""

Projected: TypeAlias = Projection | None


def is_chunkable(lexicon: Lexicon) -> bool:
    """Tell whether no word of a lexicon has signs in it that the argument above does not cover.

    Words with a blank or a capital letter do not matter: no token is ever equal to one.
    """
    reachable = (w for w in lexicon.words if w == w.lower() and len(w.split()) == 1)
    return all(
        _WORD.fullmatch(w) and _HAS_LETTER.search(w) for w in reachable if not w[0].isspace()
    )


class ChunkCache(dict[str, Projected]):
    """Chunk -> projection, filled as chunks are met, cleared when full."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self._lexicon = lexicon

    def __missing__(self, chunk: str) -> Projected:
        """Work out a chunk, and remember it."""
        if len(chunk) > MAX_CHUNK_LENGTH:
            return UNSAFE
        projection = project(chunk, self._lexicon)
        if len(self) >= MAX_CHUNKS:
            self.clear()
        self[chunk] = projection
        return projection


def project(chunk: str, lexicon: Lexicon) -> Projected:
    """Work out what a chunk contributes wherever it stands."""
    if not chunk:
        return EMPTY
    match = _CHUNK.fullmatch(chunk)
    if match is None:
        return NOTHING if _NO_WORD.fullmatch(chunk) else UNSAFE
    core = match["core"]
    if not _HAS_LETTER.search(core):
        return NOTHING
    if match["stop"] and len(core) == 1:
        # "a." may be an initial, which ends no sentence and then keeps its stop.
        return UNSAFE if known_words([Token(core, 0, 1)], lexicon)[0] else NOTHING
    offset = match.start("core")
    if _PLAIN.fullmatch(core) and not splits(core):
        tokens = [Token(core, 0, len(core))]
    else:
        tokens = word_tokens(core)
    words = known_words(tokens, lexicon)
    if not any(words):
        return NOTHING
    lead, trail = bool(match["lead"]), bool(match["tail"])
    return _trim(lead, [w and _moved(w, offset) for w in words], trail)


def known_words(tokens: list[Token], lexicon: Lexicon) -> list[Word | None]:
    """Replace each token by the word of the lexicon that it is, or None."""
    found: list[Word | None] = []
    for text, start, end in tokens:
        written, singular = lexicon.keys(text)
        known = singular in lexicon.words or written in lexicon.words
        found.append(Word(written, singular, start, end) if known else None)
    return found


def _moved(word: Word, by: int) -> Word:
    return Word(word.written, word.singular, word.start + by, word.end + by)


def _trim(lead: bool, words: list[Word | None], trail: bool) -> Projection:
    first = next(i for i, word in enumerate(words) if word)
    last = next(i for i in range(len(words) - 1, -1, -1) if words[i])
    trail = trail or last < len(words) - 1
    return Projection(lead or first > 0, tuple(words[first : last + 1]), trail)
