"""Parts of a sentence that it does not state as facts: denied, absent, hedged, conditional, quoted.

A word that hedges ("might", "possibly", "suggests that") does so from there to the end of its
clause, and "if" to the end of the sentence. All lists were compiled by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hallujudge.metrics.framework.claims import Modality

from .phrases import Chunk, NounPhrase, VerbGroup, ends_absence
from .word_lists import EVIDENCE_PREPOSITIONS, PRESENTING_VERBS, listed
from .words import Word

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

MODALS = listed("might may could would should must 'd")
"""Auxiliaries that hedge."""

HEDGING = listed(
    "perhaps|maybe|possibly|probably|likely|unlikely|presumably|apparently|seemingly|potentially|"
    "conceivably|supposedly|allegedly|arguably|most likely|and possibly|or possibly|and likely|"
    "or perhaps|and perhaps",
    "|",
)
"""Adverbs and coordinators that hedge."""

# After "it is": what follows is no more than possible.
_ADJECTIVES = listed("possible probable doubtful improbable uncertain unclear")
# "A chance of rain" does not state the rain.
_NOUNS = listed("possibility chance likelihood probability")
GUESSING = listed(
    "suggest indicate imply think believe assume guess suspect speculate suppose expect hint infer"
)
"""Verbs of guessing, whatever follows them."""

SEEMING = listed("seem appear look sound")
"""Verbs that hedge before another verb or an adjective: "appears to be", "looks tired"."""

ATTEMPTING = listed("try attempt want hope intend plan aim seek wait prepare")
"""Verbs whose infinitive names what has not happened yet: "tries to catch"."""

# What follows holds only if something does, to the end of the sentence.
_CONDITIONS = listed("if|unless|even if|provided that|as long as", "|")
# "As if" compares with what is not so, which hedges and sets no condition.
_UNREAL = listed("whether|as if|as though", "|")
# A verb that tells what would follow: without one, "watches if" states that somebody watches.
_FUTURE = listed("will would could can should might may shall 'll 'd")

EXAMPLES = listed("such as|like|including|unlike", "|")
"""Prepositions that introduce examples, which share the hedge before them."""

REPLACING = listed("instead of|rather than|as opposed to|in place of", "|")
"""Prepositions that introduce what is not shown: "a cat instead of a dog"."""

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
_WRITING = re.compile(
    r"\b(?:say|read|writ|wrote|label|titl|word|text|sign|print|spell|letter|display|logo|inscri)",
    re.IGNORECASE,
)


def asks(chunks: list[Chunk]) -> bool:
    """Return whether a sentence is a question, which states nothing."""
    return bool(chunks) and chunks[-1].text == "?"


def mark_tentative(chunks: list[Chunk], words: list[Word]) -> None:
    """Set the modality of the chunks of a sentence."""
    modality = Modality.STATED
    clause = 0
    read = 0
    for i, chunk in enumerate(chunks):
        following = chunks[i + 1] if i + 1 < len(chunks) else None
        # A condition goes on to the end of the sentence, a hedge only to that of its clause.
        if modality is Modality.HEDGED and _ends(chunks, i):
            modality = Modality.STATED
        # Conditions override hedges: "might, if it rains" depends on the rain.
        if chunk.kind == "Q" and chunk.text in _CONDITIONS:
            _mark_consequence(chunks[clause:i], words)
            modality = Modality.CONDITIONAL
        elif modality is Modality.STATED and (
            _hedges(chunk, following, words[read : chunk.last]) or _is_attempted(chunks, i)
        ):
            modality = Modality.HEDGED
        # Where the clause before "if" begins, if one comes.
        if chunk.kind in ",CQ:" and _clause_follows(chunks, i):
            clause = i
        chunk.modality = modality
        read = max(read, chunk.last)
    # Last, since only what nothing else has marked is hedged by "or".
    for chunk in _alternatives(chunks):
        if chunk.modality is Modality.STATED:
            chunk.modality = Modality.HEDGED


def mark_denied(chunks: list[Chunk], words: list[Word], tags: list[str]) -> None:
    """Mark the chunks that a negation denies directly.

    "Not" after a verb belongs to the verb, except before an adjective; after a comma or "but" it
    belongs to the phrase that follows.
    """
    for i, chunk in enumerate(chunks):
        if not chunk.first:
            continue
        before = tags[chunk.first - 1]
        if isinstance(chunk, NounPhrase) and i and chunks[i - 1].text in REPLACING:
            chunk.negated = True
        linked = i > 0 and chunks[i - 1].kind in "C,"
        if linked and i > 1 and _joins_denied(chunks, i):
            # "No cars or people" denies both.
            earlier = chunks[i - 3 if i > 2 and chunks[i - 2].kind == "," else i - 2]
            named = isinstance(chunk, NounPhrase) and isinstance(earlier, NounPhrase)
            chunk.negated = chunk.negated or (named and earlier.negated)
        if before == "F":
            chunk.negated = chunk.negated or chunk.kind == "A" or (linked and chunk.kind in "NI")
        elif words[chunk.first - 1].lower in ("neither", "nor"):
            chunk.negated = chunk.negated or chunk.kind in "NVIA"
    first = chunks[0] if chunks else None
    # "Not a dog but a cat": "not all" and "not every" deny no thing.
    if isinstance(first, NounPhrase) and first.determiner in ("a", "an"):
        first.negated = first.negated or (first.first > 0 and words[first.first - 1].lower == "not")


def _joins_denied(chunks: list[Chunk], i: int) -> bool:
    """Return whether what denies the noun before the one at i denies this one, too."""
    chunk, link = chunks[i], chunks[i - 1].text
    bare = isinstance(chunk, NounPhrase) and not chunk.determiner
    return link in ("or", "nor") or (link == "," and bare and _list_ends_with_or(chunks, i))


def _list_ends_with_or(chunks: list[Chunk], i: int) -> bool:
    """Return whether a list of nouns goes on after the one at i, and has "or" before its last."""
    k = i + 1
    while k + 1 < len(chunks) and chunks[k].kind == "," and chunks[k + 1].kind == "N":
        k += 2
    if k < len(chunks) and chunks[k].kind == ",":
        k += 1
    return k + 1 < len(chunks) and chunks[k].text in ("or", "nor") and chunks[k + 1].kind == "N"


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
    quoted = [found.span() for found in _QUOTED.finditer(text) if _is_shown(text, *found.span())]
    # "The word 'cat'" names the word.
    return [
        chunk
        for chunk in chunks
        if not any(a <= chunk.start < b or a < chunk.end < b for a, b in quoted)
    ]


def _is_shown(text: str, start: int, end: int) -> bool:
    """Return whether a quotation is something to read in the image, and no caption in quotes."""
    # Bounded, since a line may have many quotations.
    line = text[max(text.rfind("\n", 0, start) + 1, start - 200) : start].rstrip()
    # "Caption: 'A dog'" and "'A dog'" quote captions, "the sign says: 'Dog Park'" a sign.
    return bool(_WRITING.search(line)) if line[-1:] in ("", ":") else text[end - 2] not in ".!?"


def _is_attempted(chunks: list[Chunk], i: int) -> bool:
    """Return whether the chunk at i is what someone tries or waits to do."""
    before, chunk = chunks[i - 1] if i else None, chunks[i]
    if not isinstance(before, VerbGroup) or before.lemma not in ATTEMPTING:
        return False
    return isinstance(chunk, VerbGroup) and chunk.form == "infinitive"


def _hedges(chunk: Chunk, following: Chunk | None, words: list[Word]) -> bool:
    """Return whether a chunk, or an adverb directly before it, hedges what follows."""
    if any(word.lower in HEDGING for word in words):
        return True
    if isinstance(chunk, VerbGroup):
        if any(word.lower in MODALS for word in words):
            return True
        # "Suggested by the shadows" is evidence; what was suggested is in another clause.
        by = following is not None and following.text == "by"
        # Auxiliaries are left out: "have to" and "do" guess nothing.
        heads = {word.verb_lemma for word in words if word.tag not in ("B", "H", "O", "M")}
        if heads & ATTEMPTING and chunk.lemma not in ATTEMPTING:
            return True
        if heads & GUESSING:
            return not (chunk.passive and by)
        # "Looks at the dog" and "sounds." do not hedge; "looks tired" does.
        placed = following is None or following.kind in "I.,"
        return bool(heads & SEEMING) and (chunk.lemma not in SEEMING or not placed)
    if isinstance(chunk, NounPhrase):
        return chunk.lemma in _NOUNS
    return chunk.text in _UNREAL or (chunk.kind == "A" and chunk.text in _ADJECTIVES)


def _ends(chunks: list[Chunk], i: int) -> bool:
    """Return whether a hedged clause ends before chunk i."""
    chunk = chunks[i]
    if chunk.kind == "I":
        # "Such as a crow" stays within the hedge, "due to the snow" is why one guesses.
        return chunk.text in EVIDENCE_PREPOSITIONS and chunk.text not in EXAMPLES
    if chunk.kind == "Q":
        # "That" and "than" continue the clause that hedges.
        return chunk.text not in ("that", "than")
    if chunk.kind == ":":
        return True
    if chunk.kind == "W":
        return i > 0 and chunks[i - 1].kind == ","
    if chunk.kind not in ",C":
        return False
    following = chunks[i + 1] if i + 1 < len(chunks) else None
    # ", with" begins a description of its own.
    if following is not None and chunk.kind == "," and following.text == "with":
        return True
    if isinstance(following, VerbGroup):
        # A participle after a comma describes what is seen: "might be waiting, holding a bag".
        apart = chunk.kind == "," and following.form in ("ing", "participle")
        return apart or following.singular
    return _clause_follows(chunks, i)


def _clause_follows(chunks: list[Chunk], i: int) -> bool:
    """Return whether a noun phrase and its finite verb follow the link at i."""
    k = i + 1
    while k < len(chunks) and chunks[k].kind in ",C":
        k += 1
    # "And there is" begins a clause.
    if k < len(chunks) and chunks[k].kind == "X":
        return True
    # "And the man in a coat walks": places between the noun and its verb.
    while k + 2 < len(chunks) and chunks[k].kind == "N" and chunks[k + 1].kind == "I":
        k += 2
    verb = chunks[k + 1] if k + 1 < len(chunks) and chunks[k].kind == "N" else None
    return isinstance(verb, VerbGroup) and verb.form == "finite"


def _mark_consequence(chunks: list[Chunk], words: list[Word]) -> None:
    """Mark the clause before "if", unless it is a statement: "sits and watches if ..."."""
    future = any(
        isinstance(chunk, VerbGroup)
        and any(word.lower in _FUTURE for word in words[chunk.first : chunk.last])
        for chunk in chunks
    )
    if future:
        for chunk in chunks:
            chunk.modality = Modality.CONDITIONAL


def _alternatives(chunks: list[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks on both sides of "or", neither of which is stated."""
    for i in range(1, len(chunks) - 1):
        link = chunks[i]
        if link.kind == "C" and link.text.startswith("or"):
            before, after = chunks[i - 1], chunks[i + 1]
            # "No cats or dogs" denies both, which is stated.
            if before.kind == after.kind and not (before.negated or after.negated):
                yield from (before, after)


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
        # "It is not a large room" is one of a room all the same.
        sized = before.lemma == "be" and phrase.attributes and getattr(earlier, "kind", "") != "X"
        return indefinite and not sized and (missed or _denies(before, earlier))
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
        return _list_ends_with_or(chunks, i)
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
