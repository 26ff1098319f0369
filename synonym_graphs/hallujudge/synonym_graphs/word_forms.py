"""Words of a text: its tokens, normalised spelling, and singulars by both variants' rules.

Only the few modules of nltk and textblob that matching needs are imported, since ``import nltk``
imports scikit-learn, scipy and pandas where they are installed, which takes seconds
of processor time at the start of every command. The tokenisers and the singular rule need none of
them.
"""

from __future__ import annotations

import sys
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktLanguageVars

_PACKAGES = ("nltk", "nltk.tokenize")
_MODULES = ("nltk.tokenize.punkt", "nltk.tokenize.destructive")
# Reentrant: starting nltk imports modules that ask this package for names again.
_lock = threading.RLock()


class _LazyPackage(ModuleType):
    """A package whose own code has not run yet, although some of its modules are imported.

    ``import nltk`` elsewhere in this process keeps its meaning: the first use of a name that only
    nltk's own start defines, or of another of its modules, runs that start.
    """

    def __getattr__(self, name: str) -> Any:
        with _lock:
            if type(self) is not _LazyPackage:
                return getattr(self, name)
            if "__path__" in vars(self) and find_spec(f"{self.__name__}.{name}") is not None:
                # One of our modules asks for another one: ``from nltk import pathsec``.
                return import_module(f"{self.__name__}.{name}")
            # nltk's own start first: it runs those of its packages in an order of its own.
            for package in map(sys.modules.get, _PACKAGES):
                if type(package) is _LazyPackage and type(self) is _LazyPackage:
                    package._start()
        return getattr(self, name)

    def _start(self) -> None:
        spec = self.__spec__
        assert spec is not None, "module_from_spec sets it"
        assert spec.loader is not None, "packages have one"
        # From here on it is an ordinary package.
        self.__class__ = ModuleType  # type: ignore[assignment]  # its base, on purpose
        self.__path__ = list(spec.submodule_search_locations or ())
        spec.loader.exec_module(self)


def _import_tokenizers() -> None:
    """Import nltk's tokenisers without running ``nltk/__init__.py`` and ``nltk/tokenize``'s.

    Where nltk is imported already, they are imported from there.
    """
    with _lock:
        packages = [_lazy(name) for name in _PACKAGES]
        for name in _MODULES:
            import_module(name)
        for package in packages:
            if type(package) is _LazyPackage:
                # Another module of nltk needs its start first. Without a path, the import system
                # looks for one, which runs the start.
                del package.__path__


def _lazy(name: str) -> ModuleType | None:
    """Return a package of nltk whose code has not run; None if it is imported or not installed."""
    parent, _, own = name.rpartition(".")
    started = parent and type(sys.modules.get(parent)) is not _LazyPackage
    spec = None if name in sys.modules or started else find_spec(name)
    if spec is None:
        return None
    package = module_from_spec(spec)
    package.__class__ = _LazyPackage
    sys.modules[name] = package
    if parent:
        setattr(sys.modules[parent], own, package)
    return package


@cache
def textblob_inflect() -> ModuleType:
    """Return textblob's ``en/inflect.py``, which imports nothing but the standard library.

    Raises:
        ModuleNotFoundError: textblob is not installed.
    """
    package = find_spec("textblob")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'textblob'", name="textblob")
    file = Path(package.origin).parent / "en" / "inflect.py"
    spec = spec_from_file_location(f"{__name__}.inflect", file)
    assert spec is not None, "a .py file has one"
    assert spec.loader is not None, "a .py file has one"
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_QUOTE_TOKENS: Final = ("``", "''")
"""What the word tokeniser writes in place of an opening or closing double quote."""


class Token(NamedTuple):
    """A token and its span in the text."""

    text: str
    start: int
    end: int


def load_tokenizers() -> None:
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
    _import_tokenizers()
    from nltk.tokenize.punkt import PunktLanguageVars

    return PunktLanguageVars()


@cache
def _word_tokenizer() -> NLTKWordTokenizer:
    _import_tokenizers()
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
    if token in _QUOTE_TOKENS:
        return 1 if sentence[position] == '"' else 2
    raise AssertionError(f"token {token[:40]!r} is not at {position} in {sentence[:80]!r}")


SMALL_WORDS: Final = frozenset(
    ("a", "an", "the", "of", "to", "in", "on", "at", "up", "down", "out", "off", "with", "for")
) | {"over", "and"}
"""Function words, which do not identify an object or a behaviour."""

_LONGEST_CLEANED: Final = 256
"""Longer texts are not words. They bypass the cache, which keeps it small."""
# The soft hyphen, zero-width characters, the word joiner and the byte order mark.
_INVISIBLE: Final = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_QUOTES: Final = {ord("’"): "'", ord("‘"): "'", ord("‐"): "-", ord("‑"): "-"}


def clean_word(word: str) -> str:
    """Return the word in lower case, composed, with single blanks and plain quotation marks.

    Spellings that differ only in composed or wide letters, invisible characters or the kind of
    apostrophe become equal.

    >>> clean_word(" Cafe\u0301  Table ") == clean_word("café table")
    True
    """
    return _clean(word) if len(word) <= _LONGEST_CLEANED else _clean.__wrapped__(word)


@lru_cache(maxsize=1 << 16)
def _clean(word: str) -> str:
    if word.isascii():
        return " ".join(word.lower().split())
    # Case folding can decompose letters, so the result is normalised again.
    plain = unicodedata.normalize("NFKC", word).translate(_INVISIBLE).translate(_QUOTES)
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())


# Bounds the memory of a server that reads ever new words.
_CACHE_SIZE: Final = 1 << 16
_LONGEST_SINGULAR: Final = 64
"""Longer words bypass the caches, which keeps them small."""

# Nouns for which textblob's rules return a wrong singular, for example "leaves" -> "leave".
_IRREGULAR: Final = {
    "calves": "calf",
    "canoes": "canoe",
    "halves": "half",
    "hooves": "hoof",
    "knives": "knife",
    "leaves": "leaf",
    "loaves": "loaf",
    "moose": "moose",
    "movies": "movie",
    "shelves": "shelf",
    "shoes": "shoe",
    "skis": "ski",
    "taxis": "taxi",
    "wives": "wife",
    "wolves": "wolf",
}
_SAME: Final = ("ss", "us", "is")
"""Endings of words that are singular already: glass, bus, tennis."""


CHANGED_ENDINGS: Final = (
    *("s", "a", "i", "ae", "eaux", "ice", "our"),
    *("men", "people", "children", "teeth", "geese", "feet", "brethren", "kine", "oxen"),
)
"""Endings of every plain word that textblob's rules change; a test compares them with its tables.

Three words in four have another ending. Skipping them avoids trying about two hundred rules on
each, which dominated the first pass over an archive.
"""


@lru_cache(maxsize=_CACHE_SIZE)
def _published(word: str) -> str:
    # One of textblob's rules shortens words that begin with "oxen", whatever their ending.
    plain = word.isascii() and word.isalpha() and word.islower()
    if plain and not word.endswith(CHANGED_ENDINGS) and not word.startswith("oxen"):
        return word
    return str(textblob_inflect().singularize(word))


def published_singular(word: str) -> str:
    """Return textblob's ``singularize`` of a word, including its errors ("glass": "glas")."""
    return _published(word) if len(word) <= _LONGEST_SINGULAR else _published.__wrapped__(word)


def singular(word: str) -> str:
    """Return the singular of a lower-case noun by textblob's rule, with known errors corrected.

    Unlike the published rule, it keeps words that end in "ss", "us" or "is", and it has a short
    list of irregular nouns.
    """
    known = _IRREGULAR.get(word)
    if known is not None:
        return known
    if word.endswith(_SAME):
        return word
    return published_singular(word)
