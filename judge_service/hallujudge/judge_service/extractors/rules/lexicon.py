"""The lexicon: readings of words from WordNet, in a packed file that is loaded on first use."""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

__all__ = ["Lexicon", "Reading", "load_lexicon"]

_FILE = "data/lexicon.txt.gz"
# Weights are digits of base 36: "0" to "9" and then "a" to "z"; see tools/build_lexicon.py.
_ZERO, _LETTER = ord("0"), ord("a") - 10
_PERSON_FILE = "s"  # noun.person is lexicographer file 18, "s" counted from "a"


class Reading(NamedTuple):
    """The parts of speech of a lemma; weights are logarithms of counts, and -1 if it has none."""

    noun: int
    """The weight as a noun."""
    verb: int
    """The weight as a verb."""
    adjective: int
    """The weight as an adjective."""
    adverb: int
    """The weight as an adverb."""
    file: str
    """The letter of the lexicographer file of the commonest noun sense; empty: not a noun."""
    tangible: int
    """The share of tangible noun senses, in ninths."""
    visible: bool
    """Whether the adjective describes something that an image shows."""

    @property
    def person(self) -> bool:
        """Whether the noun's commonest sense is a person."""
        return self.file == _PERSON_FILE


_NOTHING = Reading(-1, -1, -1, -1, "", 0, False)


class Lexicon:
    """Lemmas with their readings, and irregular forms.

    Args:
        codes: Lemma -> its code in the data file.
        irregular: "form part-of-speech" -> lemmas, separated by blanks.
    """

    def __init__(self, codes: dict[str, str], irregular: dict[str, str]) -> None:
        self._codes = codes
        self._irregular = irregular

    def reading(self, lemma: str) -> Reading:
        """Return the reading of a lemma; phrases have underscores."""
        code = self._codes.get(lemma)
        return _NOTHING if code is None else _decode(code)

    def is_verb(self, lemma: str) -> bool:
        """Return whether the lemma can be a verb."""
        code = self._codes.get(lemma)
        return code is not None and len(code) > 1 and code[1] not in "-:!"

    def is_noun(self, lemma: str) -> bool:
        """Return whether the lemma can be a noun."""
        code = self._codes.get(lemma)
        return code is not None and code[0] != "-"

    def irregular(self, form: str, pos: str) -> tuple[str, ...]:
        """Return the lemmas of an irregular form; ``pos`` is n, v, a or r."""
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
    """Return the shipped lexicon, which the first call loads."""
    packed = resources.files(__package__).joinpath(_FILE).read_bytes()
    _, _, body = gzip.decompress(packed).decode("utf-8").partition("\n")
    entries, _, forms = body.partition("\n\n")
    codes = dict([line.split(" ", 1) for line in entries.split("\n")])
    irregular = {}
    for line in forms.splitlines():
        form, pos, lemmas = line.split(" ", 2)
        irregular[f"{form} {pos}"] = lemmas
    return Lexicon(codes, irregular)
