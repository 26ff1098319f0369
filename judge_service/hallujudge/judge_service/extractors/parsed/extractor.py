"""The extractor ``spacy``: claims from the dependency trees of an installed spaCy pipeline."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ...access.turns import check_wanted, in_thread
from ...errors import InvalidInputError
from ...spacy_pipelines import load_pipeline, pipeline_label
from ..rules.lexicon import load_lexicon
from ..values import ExtractedTriplet
from .triplets import ParsedTriplets

if TYPE_CHECKING:
    from spacy.language import Language

__all__ = ["SpacyTripletExtractor", "pieces", "shared_extractor"]

_VERSION = "spacy-1"
_SUGGESTED = "en_core_web_sm"
_LABELS = {"nsubj", "dobj", "prep", "pobj"}
"""Labels of the parser that the claims rely on; those of spaCy's own English pipelines."""
_LONGEST = 2_000
"""The most characters that are parsed together: a parser's memory grows with them."""
_MOST = 200_000
"""The most characters of a text that are read."""
_LONGEST_WORD = 100
_UNUSED = ("ner", "textcat", "entity_linker")


class SpacyTripletExtractor:
    """Extracts (subject, relation, object) claims from the trees of a spaCy pipeline.

    Args:
        pipeline: The pipeline.

    Raises:
        InvalidInputError: It is not English, or its parser has other labels.
    """

    def __init__(self, pipeline: Language) -> None:
        _check(pipeline)
        self._pipeline = pipeline
        self._lexicon = load_lexicon()
        self._lock = threading.Lock()
        self._label = f"{_VERSION}/{pipeline_label(pipeline)}"

    @property
    def label(self) -> str:
        """Version and pipeline, such as ``spacy-1/en_core_web_sm-3.8.0``."""
        return self._label

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return the claims of one text, in its order; its first 200,000 characters are read."""
        claims = ParsedTriplets(self._lexicon)
        for offset, piece in pieces(text):
            check_wanted()
            # A pipeline keeps every new word, and is not safe in several threads.
            with self._lock, self._pipeline.memory_zone():
                claims.read(self._pipeline(piece), offset)
        return claims.found

    async def extract_many(self, texts: Sequence[str]) -> list[list[ExtractedTriplet]]:
        """Return the claims of each text, parsed in a thread."""
        return [await in_thread(partial(self.extract, text)) for text in texts]


@lru_cache(maxsize=2)
def shared_extractor(name: str) -> SpacyTripletExtractor:
    """Return the extractor of a pipeline, which is loaded once.

    Raises:
        MissingExtraError: spaCy or the pipeline is not installed.
        InvalidInputError: The pipeline has no suitable parser.
    """
    needed = f"the extractor 'spacy' needs the pipeline {name!r}"
    return SpacyTripletExtractor(load_pipeline(name, needed, suggested=_SUGGESTED, exclude=_UNUSED))


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield parts of a text that are parsed on their own, with their places.

    A part ends after a line or a sentence if it can, else after a word. Words of more than a
    hundred characters are skipped.
    """
    start, end = 0, min(len(text), _MOST)
    while start < end:
        stop = min(start + _LONGEST, end)
        if stop < end:
            stop = _break(text, start, stop)
        piece = text[start:stop]
        if all(len(word) <= _LONGEST_WORD for word in piece.split()):
            yield start, piece
        start = stop


def _break(text: str, start: int, stop: int) -> int:
    for mark in ("\n", ". ", " "):
        at = text.rfind(mark, start + _LONGEST // 2, stop)
        if at > 0:
            return at + len(mark)
    return stop


def _check(pipeline: Language) -> None:
    name = pipeline_label(pipeline)
    if pipeline.lang != "en":
        raise InvalidInputError(
            f"the spaCy pipeline {name!r} reads {pipeline.lang!r}; use an English one"
        )
    labels = set(pipeline.get_pipe("parser").labels) if "parser" in pipeline.pipe_names else set()
    if missing := sorted(_LABELS - labels):
        raise InvalidInputError(
            f"the spaCy pipeline {name!r} has no parser with the labels {', '.join(missing)}; use "
            f"one of spaCy's English pipelines, such as {_SUGGESTED}"
        )
