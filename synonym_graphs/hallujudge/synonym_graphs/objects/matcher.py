"""The object matcher."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from ..graph import SynonymGraph
from ..singular import load_singulars
from .lexicon import Hit, Lexicon, Variant, build_lexicon
from .negation import absent, has_negation
from .project import EMPTY, UNSAFE, ChunkCache, is_chunkable, known_words
from .tokens import load_tokenizer, tokens_of

_NOTHING_BEFORE: Final = -2
_Word: TypeAlias = tuple[str, str, int, int]
"""The fields of a ``Word`` as a plain tuple."""


class Mention(NamedTuple):
    """A mention of an object in a caption."""

    word: str
    """The matched word, in the singular as the variant forms it."""
    object: str
    """The root of the word."""
    start: int
    """Where the mention begins in the caption, in characters."""
    end: int
    """Where the mention ends: ``caption[start:end]`` is the surface text."""


class ObjectMatcher:
    """Finds the mentions of a graph's objects in captions.

    ``published`` is the procedure of the released CHAIR script (Rohrbach et al., 2018, "Object
    Hallucination in Image Captioning"), step by step:

    1. Convert the caption to lower case.
    2. Split it into sentences with nltk's untrained Punkt, and into words with
       ``NLTKWordTokenizer``.
    3. Replace each word by its singular from textblob (the same rules as the script's ``pattern``).
    4. Join pairs of words that make a unit, from left to right.
    5. Remove "seat" if the caption mentions "toilet".
    6. Every remaining word that is an entry of the table is a mention.

    The script's known bugs are kept, because the published numbers contain them:

    * Some entries never match: entries with a leading blank (" motor bike", " cheesecake"), a
      capital letter ("iPhone") or three words ("stove top oven"), and names that the singular
      changes ("sports ball" is found by "ball" alone).
    * "motor bike" is first joined into a unit, which then matches nothing.
    * "dining table" is never joined: it is found by "table".
    * Some singulars are wrong. "bus" becomes "bu", so that only the plural "buses" is found.
      "glass" becomes "glas", which the script corrects for "wine glas" only.
    * Repeated mentions of an object all count. A caption without objects has no ratio, and the
      script divides by zero if no caption has one. The metric handles both cases.
    * An entry of two rows belongs to the last one.

    One difference from the script changes no count: places are character spans of the caption. The
    script reports word indices, which its toilet/seat filter shifts.

    On a JSON graph ``published`` runs the same steps with the graph's forms, qualifiers and rules:
    singular words are compared with the forms as written, units have two words, and suppress rules
    compare words.

    ``corrected`` fixes these bugs:

    * Entries are stripped and lower-cased.
    * Units have any length (the longest wins) and may have hyphens. Only their last word may be in
      the plural.
    * Words such as "glass" are their own singular.
    * Suppress rules compare objects, so that "commode" suppresses "seat" too.
    * Mentions of absent objects ("there is no dog") do not count; see ``negation.py``.

    A matcher is safe to use from several threads.
    """

    __slots__ = ("_chunks", "_lexicon", "graph", "variant")

    def __init__(self, graph: SynonymGraph, variant: Variant) -> None:
        # Imported here because the first call of :meth:`find` may run in an event loop.
        load_tokenizer()
        load_singulars()
        self.graph = graph
        """The synonym graph."""
        self.variant = variant
        """``published`` or ``corrected``."""
        self._lexicon: Final[Lexicon] = build_lexicon(graph, variant)
        self._chunks: Final = ChunkCache(self._lexicon) if is_chunkable(self._lexicon) else None

    def __repr__(self) -> str:
        """Return the graph's label and the variant."""
        return f"<ObjectMatcher {self.graph.label} {self.variant}>"

    def find(self, text: str) -> list[Mention]:
        """Return every mention in a caption, from left to right, including repeats.

        With ``corrected`` this excludes absent objects; see :meth:`find_absent`.
        """
        return self._split(text)[0]

    def find_absent(self, text: str) -> list[Mention]:
        """Return the mentions that say an object is absent ("no dog").

        With ``published`` the list is empty, because every mention claims its object.
        """
        return self._split(text)[1]

    def _split(self, text: str) -> tuple[list[Mention], list[Mention]]:
        """Return the mentions that claim an object, and the mentions that deny one."""
        mentions = self._find(text)
        if self.variant == "published" or not mentions:
            return mentions, []
        low = text.lower()
        if len(low) != len(text) or not has_negation(low):
            return mentions, []
        flags = absent(low, [(mention.start, mention.end) for mention in mentions])
        return (
            [mention for mention, flag in zip(mentions, flags, strict=True) if not flag],
            [mention for mention, flag in zip(mentions, flags, strict=True) if flag],
        )

    def _find(self, text: str) -> list[Mention]:
        low = text.lower()
        if self._chunks is None or len(low) != len(text):
            return self.find_by_tokens(text)
        # Replacing one character by one keeps all places. Other blanks stay inside their chunk.
        chunks = low.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" ")
        found = [hit for hit in enumerate(map(self._chunks.__getitem__, chunks)) if hit[1]]
        if not found:
            return []
        starts = [0, *accumulate(map(len, chunks))]
        words: list[_Word | None] = []
        previous = _NOTHING_BEFORE
        for index, projection in found:
            if projection is None or projection is EMPTY:
                if previous == index - 1:
                    previous = index
                continue
            if projection is UNSAFE:
                return self.find_by_tokens(text)
            lead, inner, trail = projection
            if lead or previous != index - 1:
                words.append(None)
            place = starts[index] + index
            for word in inner:
                # A plain tuple, because a named one is slow and this line runs for every word.
                words.append(word and (word[0], word[1], word[2] + place, word[3] + place))
            previous = _NOTHING_BEFORE if trail else index
        return self._walk(words)

    def find_by_tokens(self, text: str) -> list[Mention]:
        """Return all mentions, absent objects included, by tokenising the whole caption.

        This is the plain procedure, several times slower. :meth:`find` uses it for captions with a
        chunk that depends on its neighbours. Tests compare the two.
        """
        low = text.lower()
        mentions = self._walk(known_words(tokens_of(low), self._lexicon))
        if len(low) == len(text) or not mentions:
            return mentions
        places = _places(text)
        return [m._replace(start=places[m.start], end=places[m.end]) for m in mentions]

    def _walk(self, words: Sequence[_Word | None]) -> list[Mention]:
        """Join units from left to right, and return what names an object."""
        singles, units = self._lexicon.singles, self._lexicon.units
        hits: list[tuple[str, str | None, int, int]] = []
        index, count = 0, len(words)
        while index < count:
            word = words[index]
            index += 1
            if word is None:
                continue
            written, singular, start, end = word
            if written in units and index < count and words[index] is not None:
                found = self._unit(words, index, written)
                if found is not None:
                    hit, index, end = found
                    hits.append((*hit, start, end))
                    continue
            single = singles.get(written) or singles.get(singular)
            if single is not None:
                hits.append((*single, start, end))
        return self._settle(hits)

    def _unit(
        self, words: Sequence[_Word | None], index: int, first: str
    ) -> tuple[Hit, int, int] | None:
        """Return the longest unit that begins with ``first``, or None.

        Args:
            words: The words of the caption.
            index: The index of the word after ``first``.
            first: The first word.

        Returns:
            The meaning of the unit, the index of the word after it, and where it ends.
        """
        for middle, last, hit in self._lexicon.units[first]:
            behind = index + len(middle)
            final = words[behind] if behind < len(words) else None
            if final is None or (last != final[1] and last != final[0]):
                continue
            between = words[index:behind]
            if all(w is not None and w[0] == m for w, m in zip(between, middle, strict=True)):
                return hit, behind + 1, final[3]
        return None

    def _settle(self, hits: list[tuple[str, str | None, int, int]]) -> list[Mention]:
        """Apply the suppress rules, and drop words that name no object."""
        for form, beside, by_object in self._lexicon.suppress:
            if form in [hit[0] for hit in hits] and beside in [hit[by_object] for hit in hits]:
                hits = [hit for hit in hits if hit[0] != form]
        return [Mention(w, o, start, end) for w, o, start, end in hits if o is not None]


def _places(text: str) -> list[int]:
    """Return, for each place in ``text.lower()``, its place in ``text``.

    They differ where lower-casing adds characters.
    """
    places = []
    for place, character in enumerate(text):
        places.extend([place] * len(character.lower()))
    places.append(len(text))
    return places


@lru_cache(maxsize=32)
def compile_matcher(graph: SynonymGraph, *, variant: Variant) -> ObjectMatcher:
    """Return the object matcher of a graph and variant, built at the first call.

    Args:
        graph: The graph whose objects are to be found.
        variant: ``published`` or ``corrected``; see ``ObjectMatcher``.

    Raises:
        ValueError: The variant is unknown.
    """
    if variant not in ("published", "corrected"):
        raise ValueError(f"unknown variant {variant!r}; use 'published' or 'corrected'")
    return ObjectMatcher(graph, variant)
