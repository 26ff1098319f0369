"""Tokens of a caption with their places, and the words that each chunk of it contains.

A chunk is a part of a caption between two blanks. Tokenising takes nearly all of the published
procedure's time, and nearly all chunks are tokenised alike in every context, so the words of a
chunk are computed once. That holds for chunks of the following shapes if their neighbours have
these shapes as well:

* A core of letters, digits and single inner hyphens, apostrophes or slashes. No rule of the word
  tokeniser extends across the blank next to it.
* Commas and similar signs, brackets and quotes after a core. The tokeniser splits each off, at the
  end of a sentence too.
* A full stop after a core of at least two characters, one of them a letter. The untrained sentence
  tokeniser knows no abbreviations, so it ends the sentence there. (A single letter and a number
  are the two exceptions in its rules.) The word tokeniser then splits the full stop off.
* An apostrophe after a core of letters alone ("players'"). The tokeniser splits it off.
* Chunks without letters, which contain no word of a lexicon however they are split.

A closing quote or bracket alone, or several signs in a row, can join the sentence before it and
change how that ends. Such chunks, other alphabets and any other shape send a caption through the
exact slow path. ``docs/decisions/fast-matcher.md`` justifies this rule by rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .object_lexicon import Lexicon
from .word_forms import load_tokenizers

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
    # Alone, a word would begin and end a sentence, where the tokeniser has other rules.
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


MAX_CHUNKS: Final = 100_000
"""The size of the chunk cache; a full cache is cleared."""
MAX_CHUNK_LENGTH: Final = 64
"""Longer chunks are not cached and take the slow path."""

_LETTER: Final = r"a-zà-öø-ÿ"
# The shapes of the module's docstring: an opening sign, the core, and closing signs.
_CHUNK: Final = re.compile(
    rf"""
    (?P<lead> [("“]? )
    (?P<core> [{_LETTER}0-9]+ (?: [-'’/] [{_LETTER}0-9]+ )* )
    (?P<tail> [,;:!?)"”]? | \.\.+ | [)"”][,;:!?] | [,!?]["”)]
            | (?P<stop> \. | [)"”]\. | \.[)"] ) | (?P<possessive> ['’] ) )
    """,
    re.VERBOSE,
)
_PLAIN: Final = re.compile(rf"[{_LETTER}]+")
_HAS_LETTER: Final = re.compile(rf"[{_LETTER}]")
# Signs and numbers that the tokeniser splits without effect on neighbours.
_NO_WORD: Final = re.compile(r"[-–—&+/*#|.,;:]|\.\.\.|[$#]?[0-9]+(?:[.,:/x-][0-9]+)*%?[,;:.)]?")
# Words of a lexicon that a core can contain.
_WORD: Final = re.compile(rf"(?:[{_LETTER}0-9]+(?:[-'/][{_LETTER}0-9]+)*|'s)")


class Word(NamedTuple):
    """A word of the lexicon in a caption."""

    written: str
    """The key for comparisons inside a unit."""
    singular: str
    """The key for comparisons of single words and of a unit's last word."""
    start: int
    end: int


class Projection(NamedTuple):
    """The words of the lexicon in a chunk, or one of the special values below."""

    lead: bool
    """Whether the chunk begins with another token."""
    words: tuple[Word | None, ...]
    """The words of the lexicon, with None for other tokens between them."""
    trail: bool
    """Whether the chunk ends with another token."""


NOTHING: Final = None
"""A chunk without a word of the lexicon. It is falsy, so that it is quick to skip."""
EMPTY: Final = Projection(False, (), False)
"""The empty chunk between two blanks."""
UNSAFE: Final = Projection(True, (), True)
"""A chunk whose tokens depend on its neighbours."""

Projected: TypeAlias = Projection | None


def is_chunkable(lexicon: Lexicon) -> bool:
    """Return whether every word of a lexicon has one of the shapes above.

    Words with a blank or a capital letter are irrelevant, because no token is equal to one.
    """
    reachable = (w for w in lexicon.words if w == w.lower() and len(w.split()) == 1)
    return all(
        _WORD.fullmatch(w) and _HAS_LETTER.search(w) for w in reachable if not w[0].isspace()
    )


class ChunkCache(dict[str, Projected]):
    """Chunk -> projection, filled on lookup and cleared when full."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self._lexicon = lexicon

    def __missing__(self, chunk: str) -> Projected:
        """Compute the projection of a new chunk, and cache it."""
        # Text without blanks would otherwise fill the cache with chunks that never come again.
        if len(chunk) > MAX_CHUNK_LENGTH:
            return UNSAFE
        projection = project(chunk, self._lexicon)
        if len(self) >= MAX_CHUNKS:
            self.clear()
        self[chunk] = projection
        return projection


def project(chunk: str, lexicon: Lexicon) -> Projected:
    """Return the projection of a chunk."""
    if not chunk:
        return EMPTY
    match = _CHUNK.fullmatch(chunk)
    if match is None:
        return NOTHING if _NO_WORD.fullmatch(chunk) else UNSAFE
    core = match["core"]
    # Only after letters alone is it known that the tokeniser splits the apostrophe off.
    if match["possessive"] and not _PLAIN.fullmatch(core):
        return UNSAFE
    if not _HAS_LETTER.search(core):
        return NOTHING
    if match["stop"] and len(core) == 1:
        # "a." may be an initial, which does not end a sentence and keeps its full stop.
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
    """Return, for each token, its word of the lexicon or None."""
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
    # A neighbour that is not in the lexicon ends a unit, so that only its presence is kept.
    trail = trail or last < len(words) - 1
    return Projection(lead or first > 0, tuple(words[first : last + 1]), trail)
