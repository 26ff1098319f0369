"""Analysis of text into chunks, which both rule-based extractors share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from .chunks import Chunker
from .lexicon import Lexicon, load_lexicon
from .morph import Morphology
from .phrases import Chunk
from .tagger import Tagger
from .tokens import Token, sentences
from .wordbook import Word, WordBook

__all__ = ["Analyser", "shared_analyser"]

_FEW = 4
"""Shorter sentences are always analysed: unknown words may be names, not another language."""


class Analyser:
    """A tokeniser, tagger and chunker with a lexicon.

    Args:
        lexicon: The lexicon.
        tagger: The tagger; None: the shipped one.
    """

    def __init__(self, lexicon: Lexicon, tagger: Tagger | None = None) -> None:
        self.lexicon = lexicon
        morphology = Morphology(lexicon)
        self.book = WordBook(lexicon, morphology)
        self.tagger = tagger if tagger is not None else Tagger(lexicon)
        self.chunker = Chunker(lexicon, morphology)

    def chunks(self, text: str) -> Iterator[list[Chunk]]:
        """Yield the chunks of each English sentence."""
        for tokens, words, tags in self._tagged(text):
            yield self.chunker.chunk(tokens, words, tags)

    def nouns(self, text: str) -> Iterator[str]:
        """Yield every noun of the English sentences in the singular, repeats included."""
        for _, words, tags in self._tagged(text):
            yield from (
                word.noun_lemma for word, tag in zip(words, tags, strict=True) if tag == "N"
            )

    def _tagged(self, text: str) -> Iterator[tuple[list[Token], list[Word], list[str]]]:
        word = self.book.word
        for tokens in sentences(text):
            words = [word(token.text) for token in tokens]
            if not _foreign(words):
                yield tokens, words, self.tagger.tag(words)


@lru_cache(maxsize=1)
def shared_analyser() -> Analyser:
    """Return the analyser of the shipped lexicon, which the first call builds."""
    return Analyser(load_lexicon())


def _foreign(words: list[Word]) -> bool:
    """Return whether most words of a sentence are unknown, so that it is not English."""
    spelt = [word.known for word in words if word.lower[0].isalpha()]
    return len(spelt) >= _FEW and 2 * sum(spelt) < len(spelt)
