"""Extractors that use an installed library: triplets by spaCy's trees, nouns by nltk."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from ..errors import InvalidInputError, MissingExtraError
from ..installation import install_advice
from ..threads import check_wanted, in_thread, renew_after_fork
from . import ExtractedTriplet
from .parsed_triplets import ParsedTriplets
from .rules.lexicon import load_lexicon
from .rules.words import without_markup

if TYPE_CHECKING:
    from spacy.language import Language

# Part of signatures; increased when the claims of the same trees change.
_VERSION = "spacy-2"
_SUGGESTED = "en_core_web_sm"
_LABELS = {"nsubj", "dobj", "prep", "pobj"}
"""Labels of the parser that the claims rely on; those of spaCy's own English pipelines."""

_LONGEST = 2_000
"""The most characters that are parsed together: a parser's memory grows with them."""

_MOST = 200_000
"""The most characters of a text that are read."""

_LONGEST_WORD = 100
# Components that the claims do not need; leaving them out saves time and memory.
_UNUSED = ("ner", "textcat", "entity_linker")
_DATA = {
    "punkt_tab": "tokenizers/punkt_tab/english",
    "averaged_perceptron_tagger_eng": "taggers/averaged_perceptron_tagger_eng",
    "wordnet": "corpora/wordnet",
}

_ADVICE = f"python -m nltk.downloader {' '.join(_DATA)}"


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
        self._renew()
        renew_after_fork(self._renew)
        self.label = f"{_VERSION}/{pipeline_label(pipeline)}"

    def _renew(self) -> None:
        """Take a new lock: another thread may have held the old one when the process forked."""
        self._lock = threading.Lock()

    def extract(self, text: str) -> list[ExtractedTriplet]:
        """Return the claims of one text, in its order; its first 200,000 characters are read."""
        claims = ParsedTriplets(self._lexicon)
        for offset, piece in pieces(without_markup(text)):
            check_wanted()
            # A pipeline keeps every new word, and is not safe in several threads.
            with self._lock, self._pipeline.memory_zone():
                claims.read(self._pipeline(piece), offset)
        return claims.found

    async def extract_many(
        self,
        texts: Sequence[str],
        questions: Sequence[str] = (),  # noqa: ARG002  # of the interface
    ) -> list[list[ExtractedTriplet]]:
        """Return the claims of each text, parsed in a thread; questions are not read."""
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


class NltkNounExtractor:
    """Extracts words whose tag begins with NN, as lemmas; repeats and upper case are kept.

    nltk's data are not part of Hallujudge: the user installs them.

    Raises:
        MissingExtraError: A part of the data is not installed.
    """

    def __init__(self) -> None:
        import nltk

        self._nltk = nltk
        if missing := [name for name, path in _DATA.items() if not self._has(path)]:
            raise MissingExtraError(
                f"the nouns of AMBER's released script need nltk's data {', '.join(missing)}: "
                f"{_ADVICE}",
                metadata={"feature": "amber nouns", "extra": "nltk data"},
            )
        self._lemma = lru_cache(maxsize=1 << 16)(nltk.WordNetLemmatizer().lemmatize)

    def _has(self, path: str) -> bool:
        for name in (path, f"{path}.zip"):
            try:
                self._nltk.data.find(name)
            except LookupError:
                continue
            return True
        return False

    @property
    def label(self) -> str:
        """``nltk-`` and the version."""
        return f"nltk-{self._nltk.__version__}"

    def extract(self, text: str) -> tuple[str, ...]:
        """Return the nouns of one text in its order."""
        tagged = self._nltk.pos_tag(self._nltk.word_tokenize(text))
        return tuple(self._lemma(word) for word, tag in tagged if tag.startswith("NN"))


def installed_pipelines() -> tuple[str, ...]:
    """Return the names of the pipelines that are installed as packages."""
    return tuple(sorted(each.name for each in entry_points(group="spacy_models")))


def load_pipeline(name: str, needed: str, *, suggested: str, exclude: Sequence[str]) -> Language:
    """Return an installed pipeline.

    Args:
        name: Name of an installed pipeline, or a folder.
        needed: What needs it, as the beginning of a message.
        suggested: The pipeline whose download the message names.
        exclude: Components that are not loaded.

    Raises:
        MissingExtraError: spaCy or the pipeline is not installed.
    """
    advice = f"{install_advice('spacy')} && python -m spacy download {suggested}"
    metadata = {"feature": "spacy", "extra": "spacy"}
    try:
        spacy = import_module("spacy")
    except ImportError as err:
        raise MissingExtraError(
            f"{needed}, but spaCy is not installed: {advice}", metadata=metadata
        ) from err
    try:
        loaded: Language = spacy.load(name, exclude=list(exclude))
    except OSError as err:
        other = "" if name == suggested else f"; install it, or use {suggested}"
        raise MissingExtraError(
            f"{needed}, but it is not installed{other}: {advice}", metadata=metadata
        ) from err
    return loaded


def pipeline_label(pipeline: Language) -> str:
    """Return the name and version of a pipeline, such as ``en_core_web_sm-3.8.0``."""
    meta = pipeline.meta
    return f"{meta['lang']}_{meta['name']}-{meta['version']}"


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
