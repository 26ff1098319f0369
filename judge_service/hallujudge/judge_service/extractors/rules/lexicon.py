"""The packed lexicon: what WordNet knows of a word, read once and on first use."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

__all__ = ["Lexicon", "Reading", "load_lexicon"]

_FILE = "data/lexicon.txt.gz"
_ZERO, _LETTER = ord("0"), ord("a") - 10
_PERSON_FILE = "s"  # noun.person is lexicographer file 18, "s" counted from "a"


class Reading(NamedTuple):
    """How a lemma is used; weights are logarithms of counts, -1 where it has no such reading."""

    noun: int
    """Weight as noun."""
    verb: int
    """Weight as verb."""
    adjective: int
    """Weight as adjective."""
    adverb: int
    """Weight as adverb."""
    file: str
    """Lexicographer file of the commonest noun sense, a letter; empty when it is no noun."""
    tangible: int
    """Ninths of its noun senses that can be touched."""
    visible: bool
    """Whether the adjective names something that a picture shows."""

    @property
    def person(self) -> bool:
        """Whether the noun's commonest sense is a person."""
        return self.file == _PERSON_FILE


_NOTHING = Reading(-1, -1, -1, -1, "", 0, False)


class Lexicon:
    """Lemmas with their readings, and irregular forms.

    Args:
        codes: Lemma to code, as the data file has it.
        irregular: (form and part of speech) to lemmas.
    """

    def __init__(self, codes: dict[str, str], irregular: dict[str, str]) -> None:
        self._codes = codes
        self._irregular = irregular

    def reading(self, lemma: str) -> Reading:
        """How the lemma is used; phrases have underscores."""
        code = self._codes.get(lemma)
        return _NOTHING if code is None else _decode(code)

    def is_verb(self, lemma: str) -> bool:
        """Whether the lemma has a verb reading."""
        code = self._codes.get(lemma)
        return code is not None and len(code) > 1 and code[1] not in "-:!"

    def is_noun(self, lemma: str) -> bool:
        """Whether the lemma has a noun reading."""
        code = self._codes.get(lemma)
        return code is not None and code[0] != "-"

    def irregular(self, form: str, pos: str) -> tuple[str, ...]:
        """Lemmas of an irregular form; ``pos`` is one of n, v, a, r."""
        found = self._irregular.get(f"{form} {pos}")
        return tuple(found.split()) if found else ()


@lru_cache(maxsize=8192)
def _decode(code: str) -> Reading:
    visible = code.endswith("!")
    digits, _, noun = code.rstrip("!").partition(":")
    weights = [_weight(char) for char in digits.ljust(4, "-")]
    return Reading(
        weights[0],
        weights[1],
        weights[2],
        weights[3],
        noun[:1],
        int(noun[1]) if noun else 0,
        visible,
    )


def _weight(char: str) -> int:
    if char == "-":
        return -1
    code = ord(char)
    return code - _ZERO if code < _LETTER else code - _LETTER


@lru_cache(maxsize=1)
def load_lexicon() -> Lexicon:
    """The shipped lexicon, read on the first call and kept."""
    packed = resources.files(__package__).joinpath(_FILE).read_bytes()
    _, _, body = gzip.decompress(packed).decode("utf-8").partition("\n")
    entries, _, forms = body.partition("\n\n")
    codes = dict([line.split(" ", 1) for line in entries.split("\n")])
    irregular = {}
    for line in forms.splitlines():
        form, pos, lemmas = line.split(" ", 2)
        irregular[f"{form} {pos}"] = lemmas
    return Lexicon(codes, irregular)
