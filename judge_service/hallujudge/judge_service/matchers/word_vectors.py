"""Words compared by the vectors of a spaCy model, as in AMBER's released script."""

from __future__ import annotations

import warnings
from functools import lru_cache

from ..errors import InvalidInputError
from ..spacy_pipelines import load_pipeline, pipeline_label

__all__ = ["RELEASED_MODEL", "WordVectors"]

RELEASED_MODEL = "en_core_web_lg"
"""The model of the released script."""

_SIMILAR_ABOVE = 0.8
"""The released script's default of ``--similarity_score``."""
_PAIRS = 1 << 20


class WordVectors:
    """Says whether two words are similar: the cosine of their vectors is above 0.8.

    Args:
        model: Name of an installed spaCy model, or a folder.

    Raises:
        MissingExtraError: spaCy or the model is not installed.
        InvalidInputError: The model has no vectors.
    """

    def __init__(self, model: str = RELEASED_MODEL) -> None:
        needed = f"the word comparison of AMBER's released script needs the spaCy model {model!r}"
        # Vectors need the tokenizer only.
        self._model = load_pipeline(model, needed, suggested=RELEASED_MODEL, exclude=_COMPONENTS)
        if not len(self._model.vocab.vectors):
            raise InvalidInputError(
                f"the spaCy model {model!r} has no vectors; use {RELEASED_MODEL}"
            )
        self._doc = lru_cache(maxsize=_PAIRS)(self._model.make_doc)
        self.similar = lru_cache(maxsize=_PAIRS)(self._similar)

    @property
    def label(self) -> str:
        """The threshold and the model with its version."""
        return f"cosine>{_SIMILAR_ABOVE}@{pipeline_label(self._model)}"

    def _similar(self, one: str, other: str) -> bool:
        with warnings.catch_warnings():
            # spaCy warns of words without a vector; they are similar to none.
            warnings.simplefilter("ignore", UserWarning)
            return bool(self._doc(one).similarity(self._doc(other)) > _SIMILAR_ABOVE)


_COMPONENTS = ["tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer", "ner"]
