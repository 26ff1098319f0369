"""Rules for verb groups: finding the main verb, and joining groups."""

from __future__ import annotations

from .phrases import Chunk, VerbGroup
from .wordbook import Word
from .words import RAISING, listed

__all__ = ["DOUBTS", "joined", "main_verb", "verb_goes_on", "without_seeming"]

DOUBTS = listed("unlikely unable doubtful improbable impossible")
"""Adjectives that negate what follows them: "is unlikely to be", "it is doubtful that"."""

_LIKELY = listed("likely unlikely able unable ready about set supposed going bound")
_SEEMING = listed("appear seem look")
_REPORTING = listed(
    "see show depict capture portray picture observe photograph illustrate find catch leave"
)


def main_verb(tags: list[str], i: int) -> tuple[int, bool, bool, bool]:
    """Return the place of the main verb (-1: none), and if it is negated, passive, infinitive."""
    main, negated, passive = -1, False, False
    infinitive = tags[i] == "T"
    k = i + 1 if infinitive else i
    aux = ""
    while k < len(tags):
        tag = tags[k]
        if tag == "F":
            negated = True
        elif tag == "R":
            if not verb_goes_on(tags, k + 1):
                break
        elif tag in "MBHO":
            main, aux = k, tag
        elif tag == "V":
            if main < 0 or aux in "MO":
                main = k
            break
        elif tag in "GE":
            if main < 0 or aux in "BH" or (aux == "M" and tag == "E"):
                passive = tag == "E" and aux == "B"
                main = k
            break
        else:
            break
        k += 1
    if infinitive and main >= 0 and tags[main] in "GE" and tags[i + 1] in "GE":
        return -1, False, False, False
    return main, negated, passive, infinitive


def verb_goes_on(tags: list[str], k: int) -> bool:
    """Return whether a verb follows at k, perhaps after adverbs and negations."""
    while k < len(tags) and tags[k] in "RF":
        k += 1
    return k < len(tags) and tags[k] in "VGEBHMO"


def joined(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks with verb chains joined, such as "seems to be walking"."""
    out: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, VerbGroup) and out and chunk.form in ("infinitive", "ing"):
            before = out[-1]
            hinge = None
            if chunk.form == "infinitive" and before.text in _LIKELY and len(out) > 1:
                hinge, before = before, out[-2]
            if isinstance(before, VerbGroup) and _hands_on(before, chunk, hinge):
                chunk.form = before.form
                doubted = hinge is not None and hinge.text in DOUBTS
                chunk.negated = chunk.negated or before.negated or doubted
                chunk.first, chunk.start = before.first, before.start
                del out[-2 if hinge is not None else -1 :]
        out.append(chunk)
    return out


def _hands_on(before: VerbGroup, after: VerbGroup, hinge: Chunk | None) -> bool:
    if hinge is not None:
        return before.lemma == "be"
    if before.particle:
        return before.particle == "on" and before.lemma in ("go", "keep")
    if before.lemma in RAISING or (before.lemma == "go" and after.form == "infinitive"):
        return True
    return before.passive and before.lemma in _REPORTING


def without_seeming(chunks: list[Chunk], words: list[Word]) -> list[Chunk]:
    """Return the chunks without "what appears to be" before a noun phrase."""
    out: list[Chunk] = []
    for chunk in chunks:
        last = out[-1] if out else None
        seeming = isinstance(chunk, VerbGroup) and chunk.lemma == "be"
        what = last is not None and last.kind == "W" and last.text == "what"
        if seeming and what and words[chunk.first].verb_lemma in _SEEMING:
            out.pop()
        else:
            out.append(chunk)
    return out
