"""Noun phrases that a caption names only to say that they are not there, or as what is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .modality import list_ends_with_or
from .phrases import Chunk, NounPhrase, VerbGroup, ends_absence
from .word_lists import PRESENTING_VERBS, listed

# The known thing of "isn't on the sofa" is there; of "isn't on a sofa" there need be none.
_INDEFINITE = frozenset({"", "a", "an", "any", "either", "another", "many", "much"})
_EMPTY_OF = listed("devoid free void empty bare")
"""Adjectives before "of" and what a place lacks."""
_SEEN = listed("visible present there here seen shown depicted included")
_ABSENT = listed("absent missing")
# A quotation is what a sign reads or how something is called; a longer one is a caption in quotes.
_QUOTED = re.compile(
    r"\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|«[^»\n]{1,80}»|(?<!\w)['‘][^'‘’\n]{1,80}['’](?!\w)"
)


def mark_absent(chunks: list[Chunk]) -> None:
    """Mark the phrases that a sentence says are absent as negated."""
    for i, chunk in enumerate(chunks):
        if isinstance(chunk, NounPhrase) and not chunk.pronoun:
            chunk.negated = chunk.negated or _is_absent(chunks, i, chunk)
    for i, chunk in enumerate(chunks):
        if isinstance(chunk, VerbGroup) and _ends_subject(chunk, chunks[i + 1 : i + 2]):
            for subject in _subjects(chunks, i):
                subject.negated = True


def without_quoted(text: str, chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks that are no part of what a text quotes, such as the words of a sign."""
    # A text that begins with a quote may be a caption in quotes.
    quoted = [found.span() for found in _QUOTED.finditer(text) if text[: found.start()].strip()]
    # "The word 'cat'" names the word.
    return [
        chunk
        for chunk in chunks
        if not any(a <= chunk.start < b or a < chunk.end < b for a, b in quoted)
    ]


def _is_absent(chunks: list[Chunk], i: int, phrase: NounPhrase) -> bool:
    """Return whether the words before a phrase say that it is not there."""
    before = chunks[i - 1] if i else None
    earlier = chunks[i - 2] if i > 1 else None
    if before is not None and before.kind == "C" and i > 2 and chunks[i - 2].kind == ",":
        earlier = chunks[i - 3]
    indefinite = phrase.determiner in _INDEFINITE and phrase.possessor is None
    if before is None:
        return False
    if before.text == "without":
        return True
    if isinstance(before, VerbGroup):
        if before.lemma == "lack" and not before.negated:
            return True
        missed = before.text == "missing"
        return indefinite and (missed or _denies(before, earlier))
    if before.kind == "I" and earlier is not None:
        if before.text == "of":
            return earlier.text in _EMPTY_OF
        # "Is not on a leash": whether there is a leash elsewhere is not said.
        subject = chunks[i - 3] if i > 2 else None
        return indefinite and isinstance(earlier, VerbGroup) and _denies(earlier, subject)
    if before.kind in "C," and isinstance(earlier, NounPhrase) and earlier.negated:
        return indefinite and _goes_on(chunks, i, bare=not phrase.determiner)
    return False


def _denies(verb: VerbGroup, subject: Chunk | None) -> bool:
    """Return whether a verb or its subject is denied: "is not holding", "nobody holds"."""
    return verb.negated or (isinstance(subject, NounPhrase) and subject.negated)


def _goes_on(chunks: list[Chunk], i: int, *, bare: bool) -> bool:
    """Return whether the phrase at i goes on a list of what is absent."""
    following = chunks[i + 1] if i + 1 < len(chunks) else None
    link = chunks[i - 1].text
    # "Without a hat, and a woman sits": another clause.
    if (
        isinstance(following, VerbGroup)
        and following.form == "finite"
        and link not in ("or", "nor")
    ):
        return False
    if link == ",":
        return list_ends_with_or(chunks, i)
    return link in ("or", "nor") or (link == "and" and bare)


def _ends_subject(verb: VerbGroup, following: list[Chunk]) -> bool:
    """Return whether a verb says that its subject is not there: "is not visible", "is absent"."""
    complement = following[0] if following else None
    if verb.lemma != "be":
        return verb.negated and verb.passive and verb.lemma in PRESENTING_VERBS
    if complement is not None and complement.text in _ABSENT:
        return not verb.negated
    seen = complement is not None and complement.text in _SEEN
    return verb.negated and (seen or ends_absence(complement))


def _subjects(chunks: list[Chunk], i: int) -> Iterator[NounPhrase]:
    """Yield the noun phrases before the verb at i that "and" and "or" join."""
    k = i - 1
    while k >= 0 and isinstance(phrase := chunks[k], NounPhrase):
        # "The face of the man": the man may be visible.
        if k and chunks[k - 1].kind == "I":
            return
        yield phrase
        k -= 2 if k and chunks[k - 1].kind in "C," else 1
