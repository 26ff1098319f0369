"""The object matcher: finds the objects that a caption mentions, as CHAIR defines them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import compress, count, starmap
from typing import Final, NamedTuple, TypeAlias, cast

from .graph import SynonymGraph
from .object_lexicon import (
    EMPTY,
    UNSAFE,
    ChunkCache,
    Found,
    Lemma,
    Lexicon,
    Variant,
    WordFields,
    build_lexicon,
    is_chunkable,
    known_words,
    walk,
)
from .word_forms import load_tokenizers, textblob_inflect, tokens_of


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


FoundMention: TypeAlias = tuple[str, str, int, int]
"""The fields of a mention as a plain tuple."""


@lru_cache(maxsize=32)
def compile_matcher(
    graph: SynonymGraph, *, variant: Variant, lemma: Lemma | None = None
) -> ObjectMatcher:
    """Return the object matcher of a graph and variant, built at the first call.

    Args:
        graph: The graph whose objects are to be found.
        variant: ``published`` or ``corrected``; see ``ObjectMatcher``.
        lemma: For ``published``: returns the lemma of a word, in place of textblob's singular.

    Raises:
        ValueError: The variant is unknown.
    """
    if variant not in ("published", "corrected"):
        raise ValueError(f"unknown variant {variant!r}; use 'published' or 'corrected'")
    return ObjectMatcher(graph, variant, lemma)


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
    * Words are separate on both sides of a slash and similar signs, as in "bowl/cup", and every
      Unicode hyphen is one.
    * Mentions of absent objects ("there is no dog") do not count; see :func:`absent`.

    With a ``lemma``, ``published`` is the procedure of Object HalBench (RLAIF-V's released script):
    step 3 takes lemmas, entries of the table are stripped, and every name of two words is joined.

    A matcher is safe to use from several threads.
    """

    __slots__ = ("_lexicon", "_runs", "_signs", "graph", "variant")

    def __init__(self, graph: SynonymGraph, variant: Variant, lemma: Lemma | None = None) -> None:
        # Imported here because the first call of :meth:`find` may run in an event loop.
        load_tokenizers()
        textblob_inflect()
        self.graph = graph
        """The synonym graph."""
        self.variant = variant
        """``published`` or ``corrected``."""
        self._lexicon: Final[Lexicon] = build_lexicon(graph, variant, lemma)
        self._signs: Final = {} if variant == "published" else _signs_beside(self._lexicon)
        self._runs: Final = RunCache(self._lexicon) if is_chunkable(self._lexicon) else None

    def __repr__(self) -> str:
        """Return the graph's label and the variant."""
        return f"<ObjectMatcher {self.graph.label} {self.variant}>"

    def find(self, text: str) -> list[Mention]:
        """Return every mention in a caption, from left to right, including repeats.

        With ``corrected`` this excludes absent objects ("no dog"); with ``published`` every mention
        claims its object.
        """
        return list(starmap(Mention, self.found(text)))

    def found(self, text: str) -> list[FoundMention]:
        """Return the mentions of :meth:`find` as plain tuples, which takes half the time.

        The loop runs for every run of every caption, so it calls no function in Python.
        """
        # A translation without any sign would still look at every character.
        low = text.lower().translate(self._signs) if self._signs else text.lower()
        cache = self._runs
        # Lower-casing some letters adds characters, after which places would be those of another
        # text.
        if cache is None or len(low) != len(text):
            return self._claimed(text, self._by_tokens(text))
        # Replacing one character by one keeps all places. Other blanks stay inside their chunk.
        spaced = low.replace("\n", " ").replace("\t", " ").replace("\r", " ")
        chunks = spaced.split(" ")
        known = list(compress(count(), map(cache.chunks.__getitem__, chunks)))
        read = list(map(cache.__getitem__, runs_of(chunks, known)))
        # One unsafe chunk may change how the whole caption is split.
        if None in read:
            return self._claimed(text, self._by_tokens(text))
        meanings = cast("list[Meaning]", read)
        position = f" {spaced} ".index
        found: list[FoundMention] = []
        place = 0
        for surrounded, step, _, mentions, suppressed in meanings:
            if suppressed:
                return self._claimed(text, self._settle(_placed(meanings, position)))
            # The next text between blanks that equals the run is the run: whatever else could equal
            # it has known chunks too, and would be an earlier run.
            place = position(surrounded, place)
            for word, name, start, end in mentions:
                found.append((word, name, start + place, end + place))
            place += step
        return found if self.variant == "published" else self._claimed(text, found)

    def _claimed(self, text: str, found: list[FoundMention]) -> list[FoundMention]:
        """Return the mentions that claim their object: with ``corrected``, no absent ones."""
        if self.variant == "published" or not found:
            return found
        low = text.lower()
        if len(low) != len(text) or not has_negation(low):
            return found
        flags = absent(low, [(start, end) for _, _, start, end in found])
        return [mention for mention, flag in zip(found, flags, strict=True) if not flag]

    def of_words(self, words: Iterable[str]) -> list[FoundMention]:
        """Return the words that name an object, without places, as a caption's words would count.

        Args:
            words: Words and names as the lexicon writes them, repeats included.
        """
        singles = self._lexicon.singles
        return self._settle([(*singles[word], 0, 0) for word in words if word in singles])

    def names_of_two(self, words: Sequence[str]) -> list[str]:
        """Return what the names of two words among some lemmas count as, from left to right."""
        found: list[str] = []
        place = 0
        while place < len(words) - 1:
            units = self._lexicon.units.get(words[place], ())
            after = words[place + 1]
            hit = next((u.hit for u in units if not u.middle and u.last == after), None)
            found += [] if hit is None else [hit.word]
            place += 1 if hit is None else 2
        return found

    def _by_tokens(self, text: str) -> list[FoundMention]:
        """Return all mentions, absent objects included, by tokenising the whole caption.

        This is the plain procedure, several times slower, for captions with a chunk that depends on
        its neighbours.
        """
        low = text.lower().translate(self._signs)
        found = self._settle(walk(known_words(tokens_of(low), self._lexicon), self._lexicon))
        if len(low) == len(text) or not found:
            return found
        places = _places(text)
        return [(word, name, places[start], places[end]) for word, name, start, end in found]

    def _settle(self, hits: list[Found]) -> list[FoundMention]:
        """Apply the suppress rules, and drop words that name no object."""
        for form, beside, by_object in self._lexicon.suppress:
            words = [hit[0] for hit in hits]
            if form in words and beside in [hit[by_object] for hit in hits]:
                hits = [hit for hit in hits if hit[0] != form]
        return [(word, name, start, end) for word, name, start, end in hits if name is not None]


# Each sign becomes one character, so that all places stay. The tokeniser splits a comma off.
_SIGNS: Final = {
    **dict.fromkeys("/\\|+•·…⁄∕／", ","),
    **dict.fromkeys("\u2010\u2011\u2012\u2212\ufe63\uff0d", "-"),
}


def _signs_beside(lexicon: Lexicon) -> dict[int, str]:
    """Return the signs between words, but for those inside the words of a lexicon."""
    inside = set("".join(lexicon.words))
    return {ord(sign): plain for sign, plain in _SIGNS.items() if sign not in inside}


def _placed(meanings: Iterable[Meaning], position: Callable[[str, int], int]) -> list[Found]:
    """Return every word and unit of a caption's runs, with its place in the caption."""
    found: list[Found] = []
    place = 0
    for meaning in meanings:
        place = position(meaning.surrounded, place)
        found += [(word, name, a + place, b + place) for word, name, a, b in meaning.found]
        place += meaning.step
    return found


def _places(text: str) -> list[int]:
    """Return, for each place in ``text.lower()``, its place in ``text``.

    They differ where lower-casing adds characters.
    """
    places = []
    for place, character in enumerate(text):
        places.extend([place] * len(character.lower()))
    places.append(len(text))
    return places


# Captions repeat themselves: 8,000 have 46,038 runs, of which 1,738 differ.
MAX_RUNS: Final = 100_000
"""The size of the cache of runs; a full cache is cleared."""
MAX_RUN_LENGTH: Final = 128
"""Longer runs are not cached."""

_AFTER: Final = -1
"""An index that follows no other."""


class Meaning(NamedTuple):
    """What a run of chunks mentions, independent of its place."""

    surrounded: str
    """The run between two blanks, as it is searched for."""
    step: int
    """Number of characters from the run's blank to the next run's."""
    found: tuple[Found, ...]
    """Its words and units with places relative to its start."""
    mentions: tuple[tuple[str, str, int, int], ...]
    """Those that name an object."""
    suppressed: bool
    """Whether a suppress rule may remove one of its words."""


class RunCache(dict[str, Meaning | None]):
    """Run -> its meaning, or None for an unsafe run. Filled on lookup and cleared when full."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self._lexicon = lexicon
        self._suppressed = frozenset(form for form, _, _ in lexicon.suppress)
        self.chunks = ChunkCache(lexicon)
        """What each chunk contains."""

    def __missing__(self, run: str) -> Meaning | None:
        """Compute and cache what a new run mentions."""
        found = self._read(run)
        meaning = None if found is None else self._meaning(run, found)
        if len(run) <= MAX_RUN_LENGTH:
            if len(self) >= MAX_RUNS:
                self.clear()
            self[run] = meaning
        return meaning

    def _meaning(self, run: str, found: tuple[Found, ...]) -> Meaning:
        return Meaning(
            surrounded=f" {run} ",
            step=len(run) + 1,
            found=found,
            mentions=tuple((word, name, a, b) for word, name, a, b in found if name is not None),
            suppressed=any(hit[0] in self._suppressed for hit in found),
        )

    def _read(self, run: str) -> tuple[Found, ...] | None:
        words: list[WordFields | None] = []
        place = 0
        for chunk in run.split(" "):
            projection = self.chunks[chunk]
            if projection is UNSAFE:
                return None
            if projection is not None and projection is not EMPTY:
                lead, inner, trail = projection
                words += (None,) * lead
                words += (w and (w[0], w[1], w[2] + place, w[3] + place) for w in inner)
                words += (None,) * trail
            place += len(chunk) + 1
        return tuple(walk(words, self._lexicon))


def runs_of(chunks: Sequence[str], known: Sequence[int]) -> list[str]:
    """Return the runs of a caption: one or more chunks in a row with words of the lexicon.

    Units never extend beyond a run such as ``dining table.``, so that a run has the same mentions
    wherever it occurs. Captions repeat runs: 8,000 golden captions have 46,038 runs for
    ``published``, of which 1,738 differ.

    Args:
        chunks: All chunks of the caption.
        known: The indexes of those with words of the lexicon.
    """
    if not known:
        return []
    runs: list[str] = []
    first = last = known[0]
    for index in (*known[1:], _AFTER):
        if index != last + 1:
            runs.append(chunks[first] if first == last else " ".join(chunks[first : last + 1]))
            first = index
        last = index
    return runs


# A quick test that rules out most captions; every opening below contains one of these words
# ("cannot" contains "not").
_CUES: Final = (
    *("no ", "not ", "without ", "neither ", "n't ", "n’t "),
    *("absence of ", " lack", "devoid of ", "free of "),
)
# Up to three words may separate the opening from the object ("no other visible cars"). Words that
# begin a new phrase end the negation: "no one is on the bench", "no room for more motorcycles".
_STOPS: Final = (
    "a|an|and|any|are|as|at|be|but|by|can|could|do|does|doubt|for|from|had|has|have|her|his|if|in|"
    "is|it|its|just|longer|matter|merely|of|on|one|only|onto|or|nor|over|than|that|the|their|there|"
    "these|they|this|those|to|under|was|were|which|while|who|will|with|would"
)
_MODIFIERS: Final = rf"(?:(?!(?:{_STOPS})\b)[\w'’-]+[ ]+){{0,3}}"
# The first of two absent things need not be an object of the graph ("no animals or people").
_WORD: Final = rf"(?!(?:{_STOPS})\b)[\w'’-]+[ ]+"
_ARTICLE: Final = r"(?:(?:a|an|any|the|his|her|its|their|a[ ]single|one)[ ]+)?"
_BE: Final = r"(?:is|are|was|were|be|appears?|seems?|['’]s)"
_DO: Final = r"(?:do|does|did|can|could)"
_NOT: Final = r"(?:[ ]+not|n['’]t|not)[ ]+"
_SEE: Final = r"(?:see|contain|show|have|include|feature|depict)[ ]+"
_OPENING: Final = re.compile(
    rf"""
    (?: \b(?:no|neither)[ ]+ {_ARTICLE}
      | \bwithout[ ]+ {_ARTICLE}
      | \b(?:absence|lack|devoid|free)[ ]+of[ ]+ {_ARTICLE}
      | \b(?:lacks?|lacking)[ ]+ {_ARTICLE}
      | \b{_BE}{_NOT} (?:a|an|any)[ ]+
      | \b(?:there|{_DO}){_NOT} (?:appears?|seems?)[ ]+to[ ]+be[ ]+ {_ARTICLE}
      | \b{_DO}{_NOT} {_SEE} {_ARTICLE}
    ) (?: {_MODIFIERS} {_WORD} (?:or|nor)[ ]+ {_ARTICLE} )? {_MODIFIERS} $
    """,
    re.VERBOSE,
)
_OR: Final = re.compile(rf"(?:\s*,?\s+(?:or|nor)\s+{_ARTICLE}|\s*[/／]\s*){_MODIFIERS}")
_COMMA: Final = re.compile(rf"\s*,\s+{_ARTICLE}{_MODIFIERS}")
_WINDOW: Final = 120
"""How many characters before a mention are searched: more than an opening and three words need."""


def has_negation(text: str) -> bool:
    """Return whether a lower-case text has a word that could negate a mention."""
    # A loop takes half the time of any(…) over a generator, and this runs for every caption.
    for cue in _CUES:  # noqa: SIM110
        if cue in text:
            return True
    return False


def absent(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return, for each mention, whether the text denies the object.

    "There is no dog" mentions a dog without claiming one. The rule looks for an opening such as
    "no" in the clause directly before a mention. It prefers a missed negation to a wrong one: "the
    dog is not wearing a hat" and "hardly any cars" still claim their objects.

    Both objects of "no cars or trucks" are absent, and so is every object of "no cars, buses, or
    trucks". In "no dog, a cat" only the dog is absent: commas alone do not extend the negation,
    since a list of absent objects ends with "or" or "nor".

    Args:
        text: The caption in lower case, as long as the original.
        spans: Start and end of each mention, from left to right.
    """
    found = [_opened(text, start) for start, _ in spans]
    linked = _list_links(text, spans)
    for index in range(1, len(spans)):
        found[index] = found[index] or (found[index - 1] and linked[index])
    return found


def _opened(text: str, start: int) -> bool:
    before = text[max(0, start - _WINDOW) : start]
    if not has_negation(before):
        return False
    # Punctuation that ends a clause ends the negation.
    clause = re.split(r"[.!?;:,()\n]", before)[-1]
    return _OPENING.search(clause) is not None


def _list_links(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return, for each mention, whether it continues a list that ends with "or" or "nor"."""
    linked = [False] * len(spans)
    goes_on = False
    for index in range(len(spans) - 1, 0, -1):
        between = text[spans[index - 1][1] : spans[index][0]][:_WINDOW]
        goes_on = bool(_OR.fullmatch(between)) or (goes_on and bool(_COMMA.fullmatch(between)))
        linked[index] = goes_on
    return linked
