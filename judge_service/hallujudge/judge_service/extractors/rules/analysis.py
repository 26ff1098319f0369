"""Text to chunks, the part that both extractors share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from .chunks import Chunker
from .lexicon import Lexicon, load_lexicon
from .morph import Morphology
from .phrases import Chunk
from .tagger import Tagger
from .tokens import sentences
from .wordbook import Word, WordBook

__all__ = ["Analyser", "shared_analyser"]

_FEW = 4
"""Words below which a sentence is read whatever it is made of: names alone are no language."""


class Analyser:
    """Tokeniser, tagger and chunker over one lexicon.

    Args:
        lexicon: What is known of words.
        tagger: Another tagger with the same interface, for comparisons.
    """

    def __init__(self, lexicon: Lexicon, tagger: Tagger | None = None) -> None:
        self.lexicon = lexicon
        morphology = Morphology(lexicon)
        self.book = WordBook(lexicon, morphology)
        self.tagger = tagger if tagger is not None else Tagger(lexicon)
        self.chunker = Chunker(lexicon, morphology)

    def chunks(self, text: str) -> Iterator[list[Chunk]]:
        """The chunks of each sentence that reads like English."""
        word = self.book.word
        for tokens in sentences(text):
            words = [word(token.text) for token in tokens]
            if _foreign(words):
                continue
            yield self.chunker.chunk(tokens, words, self.tagger.tag(words))


@lru_cache(maxsize=1)
def shared_analyser() -> Analyser:
    """The analyser over the shipped lexicon, made on first use."""
    return Analyser(load_lexicon())


def _foreign(words: list[Word]) -> bool:
    """Whether most of a sentence's words are unknown: it is in another language, or in none."""
    spelt = [word.known for word in words if word.lower[0].isalpha()]
    return len(spelt) >= _FEW and 2 * sum(spelt) < len(spelt)
