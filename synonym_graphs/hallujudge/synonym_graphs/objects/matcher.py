"""Finding the objects that a caption mentions."""

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
"""The fields of a ``Word``."""


class Mention(NamedTuple):
    """One mention of an object."""

    word: str
    """The word it was found by, in the singular; the published variant's own word for it."""
    object: str
    """The root that the word stands for."""
    start: int
    """Where the mention begins in the caption, in characters."""
    end: int
    """Where it ends: ``caption[start:end]`` is the surface text."""


class Matcher:
    """Finds the mentions of a graph's objects in captions.

    ``published`` is the procedure of the released CHAIR script (Rohrbach et al., 2018, "Object
    Hallucination in Image Captioning"), word for word: lower-case; sentences by nltk's untrained
    Punkt, words by ``NLTKWordTokenizer``; the singular of each word by textblob (the same rules as
    the script's ``pattern``); from left to right, pairs of words that make a unit are joined;
    "seat" goes where "toilet" is; what is then an entry of the table is a mention. Its slips are
    kept, since they are in the published numbers:

    * Entries that can never match: those with a blank before them (" motor bike", " cheesecake"),
      with a capital ("iPhone"), with three words ("stove top oven"), and names whose own words are
      changed by the singular ("sports ball" is found by "ball" alone).
    * "motor bike" is even joined into a unit first, which then matches nothing.
    * "dining table" is never joined: it is found by "table".
    * The singular spoils some words: "bus" becomes "bu", so that a bus is only found in the plural
      ("buses"); "glass" becomes "glas", which a rule of its own mends for "wine glas" alone.
    * Every mention counts, not every object once; a caption without any object has no ratio, and
      there the script divides by zero if no caption has one. Both are the metric's to settle.
    * An entry of two rows belongs to the last one.

    It departs from the script in one thing that changes no count: places are character spans of the
    caption. The script reports word indices, which its toilet/seat filter shifts.

    On a JSON graph ``published`` means the same walk with the graph's own forms, qualifiers and
    rules: singular words are compared with the forms as they are written, units have two words, and
    suppress rules look at words.

    ``corrected`` mends the slips: entries are stripped and lower-cased; units have any length
    (the longest wins), may be written with a hyphen, and only their last word may be in the plural;
    a singular keeps "glass"; suppress rules look at objects ("commode … seat" too); a mention that
    says the object is absent ("there is no dog") is left out (see ``negation.py``).

    A matcher is safe to use from several threads.
    """

    __slots__ = ("_chunks", "_lexicon", "graph", "variant")

    def __init__(self, graph: SynonymGraph, variant: Variant) -> None:
        # What :meth:`find` needs is imported here: on its first call it may run in an event loop.
        load_tokenizer()
        load_singulars()
        self.graph = graph
        """The graph it looks for."""
        self.variant = variant
        """The variant it follows."""
        self._lexicon: Final[Lexicon] = build_lexicon(graph, variant)
        self._chunks: Final = ChunkCache(self._lexicon) if is_chunkable(self._lexicon) else None

    def __repr__(self) -> str:
        """Show graph and variant."""
        return f"<Matcher {self.graph.label} {self.variant}>"

    def find(self, text: str) -> list[Mention]:
        """Return every mention in a caption, from left to right, repeats included.

        Mentions that ``corrected`` takes for absent objects are left out; see :meth:`find_absent`.
        """
        return self._split(text)[0]

    def find_absent(self, text: str) -> list[Mention]:
        """Return the mentions by which a caption says that an object is absent ("no dog").

        ``published`` has none: there every mention claims its object.
        """
        return self._split(text)[1]

    def _split(self, text: str) -> tuple[list[Mention], list[Mention]]:
        """Split the mentions into those that claim an object and those that deny one."""
        mentions = self._find(text)
        low = text.lower()
        if self.variant == "published" or not mentions or len(low) != len(text):
            return mentions, []
        if not has_negation(low):
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
        # Each of these is one character, so places stay; all other blanks are left for later.
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
                # A plain tuple: this line runs for every word of interest, and a named one is slow.
                words.append(word and (word[0], word[1], word[2] + place, word[3] + place))
            previous = _NOTHING_BEFORE if trail else index
        return self._walk(words)

    def find_by_tokens(self, text: str) -> list[Mention]:
        """Return what :meth:`find` returns, by tokenising the whole caption.

        The plain procedure, several times slower. :meth:`find` uses it for captions whose chunks
        between blanks do not say enough; tests compare the two.
        """
        low = text.lower()
        mentions = self._walk(known_words(tokens_of(low), self._lexicon))
        if len(low) == len(text) or not mentions:
            return mentions
        places = _places(text)
        return [m._replace(start=places[m.start], end=places[m.end]) for m in mentions]

    def _walk(self, words: Sequence[_Word | None]) -> list[Mention]:
        """Join units from left to right, and keep what names an object."""
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
        """Find the longest unit that begins with ``first``; ``index`` is that of the next word.

        Returns what it is read as, the index behind it, and the place where it ends.
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
        """Apply the suppress rules, and drop what names no object."""
        for form, beside, by_object in self._lexicon.suppress:
            if form in [hit[0] for hit in hits] and beside in [hit[by_object] for hit in hits]:
                hits = [hit for hit in hits if hit[0] != form]
        return [Mention(w, o, start, end) for w, o, start, end in hits if o is not None]


def _places(text: str) -> list[int]:
    """Map places in ``text.lower()`` to places in ``text``, where lower-casing adds characters."""
    places = []
    for place, character in enumerate(text):
        places.extend([place] * len(character.lower()))
    places.append(len(text))
    return places


@lru_cache(maxsize=32)
def compile_matcher(graph: SynonymGraph, *, variant: Variant) -> Matcher:
    """Make a matcher, or return the one made before for the same graph and variant.

    Args:
        graph: The graph to look for.
        variant: ``published`` or ``corrected``; see ``Matcher``.

    Raises:
        ValueError: There is no such variant.
    """
    if variant not in ("published", "corrected"):
        raise ValueError(f"unknown variant {variant!r}; use 'published' or 'corrected'")
    return Matcher(graph, variant)
