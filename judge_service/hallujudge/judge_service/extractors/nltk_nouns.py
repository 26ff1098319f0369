"""Nouns by nltk's tagger and WordNet's lemmas, as AMBER's released script finds them."""

from __future__ import annotations

from functools import lru_cache

from ..errors import MissingExtraError

__all__ = ["NltkNounExtractor"]

_DATA = {
    "punkt_tab": "tokenizers/punkt_tab/english",
    "averaged_perceptron_tagger_eng": "taggers/averaged_perceptron_tagger_eng",
    "wordnet": "corpora/wordnet",
}
_ADVICE = f"python -m nltk.downloader {' '.join(_DATA)}"


class NltkNounExtractor:
    """Extracts words whose tag begins with NN, as lemmas; repeats and upper case are kept.

    nltk's data are not part of Hallujudge: the user installs them.

    Raises:
        MissingExtraError: A part of the data is not installed.
    """

    def __init__(self) -> None:
        import nltk
        from nltk.stem import WordNetLemmatizer

        if missing := [name for name, path in _DATA.items() if not _found(path)]:
            raise MissingExtraError(
                f"the nouns of AMBER's released script need nltk's data {', '.join(missing)}: "
                f"{_ADVICE}",
                metadata={"feature": "amber nouns", "extra": "nltk data"},
            )
        self._nltk = nltk
        self._lemma = lru_cache(maxsize=1 << 16)(WordNetLemmatizer().lemmatize)

    @property
    def label(self) -> str:
        """``nltk-`` and the version."""
        return f"nltk-{self._nltk.__version__}"

    def extract(self, text: str) -> tuple[str, ...]:
        """Return the nouns of one text in its order."""
        tagged = self._nltk.pos_tag(self._nltk.word_tokenize(text))
        return tuple(self._lemma(word) for word, tag in tagged if tag.startswith("NN"))


def _found(path: str) -> bool:
    import nltk

    for name in (path, f"{path}.zip"):
        try:
            nltk.data.find(name)
        except LookupError:
            continue
        return True
    return False
