"""The dictionaries of an object matcher, and the look-up of a caption's words in them.

A chunk is a part of a caption between two blanks. Tokenising takes nearly all of the published
procedure's time, and nearly all chunks are tokenised alike in every context, so the words of a
chunk are computed once. That holds for chunks of the following shapes if their neighbours have
these shapes as well:

* A core of letters, digits and single inner hyphens, apostrophes or slashes. No rule of the word
  tokeniser extends across the blank next to it.
* Commas and similar signs, brackets and quotes after a core. The tokeniser splits each off, at the
  end of a sentence too.
* A full stop after a core of at least two characters, one of them a letter. The untrained sentence
  tokeniser knows no abbreviations, so it ends the sentence there. (A single letter and a number
  are the two exceptions in its rules.) The word tokeniser then splits the full stop off.
* An apostrophe after a core of letters alone ("players'"). The tokeniser splits it off.
* Chunks without letters, which contain no word of a lexicon however they are split.

A closing quote or bracket alone, or several signs in a row, can join the sentence before it and
change how that ends. Such chunks, other alphabets and any other shape send a caption through the
exact slow path. ``docs/decisions/fast-matcher.md`` justifies this rule by rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from .graph import SynonymGraph
from .word_forms import Token, published_singular, singular, splits, word_tokens

Variant: TypeAlias = Literal["published", "corrected"]

# The released script (Rohrbach et al., 2018, "Object Hallucination in Image Captioning") has the
# following word pairs in its code, not in its table of synonyms. Here they are data, so that a
# table file alone is the whole procedure.
YOUNG_OR_GROWN: Final = ("baby", "adult")
"""Person words that do not mention a person when an animal follows ("baby elephant")."""

ANIMALS: Final = (
    *("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"),
    *("animal", "cub"),
)

CARRYING: Final = ("passenger",)
"""Person words that do not mention a person when a vehicle follows ("passenger train")."""

VEHICLES: Final = ("jet", "train")

BLOCKED: Final = ("home plate", "train track")
"""Word pairs that are one unit and name no object of the table."""

READS_AS: Final = {"bow tie": "tie", "toilet seat": "toilet"}
"""Word pairs that count as one word."""

PUBLISHED_READS_AS: Final = {**READS_AS, "wine glas": "wine glass"}
"""The same for the published variant, whose singular of "glass" is "glas"."""

PUBLISHED_APART: Final = frozenset({"dining table"})
"""Two-word entries that the published variant never joins: it finds "table" alone in them."""

Lemma: TypeAlias = "Callable[[str], str]"
"""Returns the lemma of a lower-case word."""

SUPPRESSED: Final = (("seat", "toilet"),)
"""(word, beside): the word does not count in a caption that also has ``beside``."""


class Hit(NamedTuple):
    """The meaning of a word or a unit."""

    word: str
    """The word that it counts as."""
    object: str | None
    """Its root. None if the word is known, but does not name an object."""


class Unit(NamedTuple):
    """A multi-word name without its first word."""

    middle: tuple[str, ...]
    """The words between the first and the last."""
    last: str
    """The last word; only it may be in the plural."""
    hit: Hit
    """The meaning of the whole name."""


class Lexicon(Struct, frozen=True, kw_only=True):
    """The words of a graph, by role."""

    singles: dict[str, Hit]
    """Single words and their meanings."""
    units: dict[str, tuple[Unit, ...]]
    """First word -> the units that begin with it, the longest first."""
    words: frozenset[str]
    """Every word that occurs in a single or a unit."""
    suppress: tuple[tuple[str, str, bool], ...]
    """(word, beside, whether ``beside`` is compared with objects instead of words)."""
    keys: Callable[[str], tuple[str, str]]
    """Token -> (its spelling in names, its singular)."""


def published_keys(token: str) -> tuple[str, str]:
    """Return a token's keys in the published variant: both are its textblob singular."""
    word = published_singular(token)
    return word, word


def corrected_keys(token: str) -> tuple[str, str]:
    """Return a token's keys in the corrected variant: the token and its singular."""
    return token, singular(token)


def build_lexicon(graph: SynonymGraph, variant: Variant, lemma: Lemma | None = None) -> Lexicon:
    """Return the lexicon of a graph and variant.

    Args:
        graph: The graph.
        variant: The variant.
        lemma: For ``published``: replaces the singular, as in Object HalBench's released script,
            which also strips the entries of the table and joins every name of two words.
    """
    if variant == "corrected":
        singles, pairs = _corrected(graph)
    elif graph.rows:
        singles, pairs = _published_table(graph, stripped=lemma is not None)
    else:
        singles, pairs = _published_graph(graph)
    by_root = variant == "corrected"
    suppress = tuple((rule.form, rule.beside, by_root) for rule in graph.suppress)
    for form, beside, _ in suppress:
        # A suppress rule needs its words found even if they name no object.
        singles.setdefault(form, Hit(form, None))
        singles.setdefault(beside, Hit(beside, None))
    units = _units(pairs)
    words = set(singles) | set(units)
    for rest in units.values():
        for unit in rest:
            words.update(unit.middle, (unit.last,))
    return Lexicon(
        singles=singles,
        units=units,
        words=frozenset(words),
        suppress=suppress,
        keys=_keys_by(variant, lemma),
    )


def _keys_by(variant: Variant, lemma: Lemma | None) -> Callable[[str], tuple[str, str]]:
    if variant == "corrected":
        return corrected_keys
    if lemma is None:
        return published_keys

    def keys(token: str) -> tuple[str, str]:
        word = lemma(token)
        return word, word

    return keys


def _published_table(
    graph: SynonymGraph, *, stripped: bool
) -> tuple[dict[str, Hit], dict[str, Hit]]:
    """Return the singles and units of a table's raw rows, as a published script reads them.

    Args:
        graph: The graph.
        stripped: Whether the script strips entries, and joins every name of two words.
    """
    roots = graph.table_entries
    if stripped:
        roots = {entry.strip(): root.strip() for entry, root in roots.items()}
    apart = frozenset[str]() if stripped else PUBLISHED_APART
    pairs: dict[str, str] = {}
    for row in graph.rows:
        for entry in row:
            name = entry.strip()
            two_words = name.count(" ") == 1 and len(name.split()) == 2
            if two_words and name not in apart:
                pairs[name] = name
    pairs |= {name: name for name in BLOCKED}
    pairs |= _qualified(graph)
    pairs |= PUBLISHED_READS_AS
    hits = {name: Hit(word, roots.get(word)) for name, word in pairs.items()}
    # Entries with a blank or a capital letter stay, as in the script, although no token matches.
    return {entry: Hit(entry, root) for entry, root in roots.items()}, hits


def _published_graph(graph: SynonymGraph) -> tuple[dict[str, Hit], dict[str, Hit]]:
    """Return the singles and units of a JSON graph's forms and rules; units have two words."""
    singles, pairs = _corrected(graph)
    return singles, {name: hit for name, hit in pairs.items() if len(name.split()) == 2}


def _corrected(graph: SynonymGraph) -> tuple[dict[str, Hit], dict[str, Hit]]:
    """Return the singles and units of forms of any length, with a blank or a hyphen."""
    known = {form: Hit(form, roots[0]) for form, roots in graph.edges}
    named = {name: known.get(word, Hit(word, None)) for name, word in _qualified(graph).items()}
    for form, target in graph.compounds:
        named[form] = Hit(form, None) if target is None else known.get(target, Hit(target, None))
    named |= known  # A form of the graph takes precedence over the rules.
    singles = {form: hit for form, hit in named.items() if " " not in form}
    # The tokeniser splits off a possessive ("bird's eye"), so such a name is a unit of its parts.
    parts = {form: form.replace("'s ", " 's ") for form in named}
    pairs = {parts[form]: hit for form, hit in named.items() if " " in form}
    for form, hit in pairs.items():
        if "'" not in form:
            singles.setdefault(form.replace(" ", "-"), hit)
    return singles, pairs


def _qualified(graph: SynonymGraph) -> dict[str, str]:
    return {
        f"{qualifier} {head}": head
        for rule in graph.qualifiers
        for qualifier in rule.qualifiers
        for head in rule.heads
    }


def _units(pairs: dict[str, Hit]) -> dict[str, tuple[Unit, ...]]:
    found: dict[str, list[Unit]] = {}
    for first, unit in _split(pairs):
        found.setdefault(first, []).append(unit)
    return {
        # Longest first: a name of three words must win over one of its first two.
        first: tuple(sorted(units, key=lambda unit: -len(unit.middle)))
        for first, units in found.items()
    }


def _split(pairs: dict[str, Hit]) -> Iterator[tuple[str, Unit]]:
    for name, hit in pairs.items():
        first, *middle, last = name.split()
        yield first, Unit(tuple(middle), last, hit)


MAX_CHUNKS: Final = 100_000
"""The size of the chunk cache; a full cache is cleared."""
MAX_CHUNK_LENGTH: Final = 64
"""Longer chunks are not cached and take the slow path."""

_LETTER: Final = r"a-zà-öø-ÿ"
# The shapes of the module's docstring: an opening sign, the core, and closing signs.
_CHUNK: Final = re.compile(
    rf"""
    (?P<lead> [("“]? )
    (?P<core> [{_LETTER}0-9]+ (?: [-'’/] [{_LETTER}0-9]+ )* )
    (?P<tail> [,;:!?)"”]? | \.\.+ | [)"”][,;:!?] | [,!?]["”)]
            | (?P<stop> \. | [)"”]\. | \.[)"] ) | (?P<possessive> ['’] ) )
    """,
    re.VERBOSE,
)
_PLAIN: Final = re.compile(rf"[{_LETTER}]+")
_HAS_LETTER: Final = re.compile(rf"[{_LETTER}]")
# Signs and numbers that the tokeniser splits without effect on neighbours.
_NO_WORD: Final = re.compile(r"[-–—&+/*#|.,;:]|\.\.\.|[$#]?[0-9]+(?:[.,:/x-][0-9]+)*%?[,;:.)]?")
# Words of a lexicon that a core can contain.
_WORD: Final = re.compile(rf"(?:[{_LETTER}0-9]+(?:[-'/][{_LETTER}0-9]+)*|'s)")


class Word(NamedTuple):
    """A word of the lexicon in a caption."""

    written: str
    """The key for comparisons inside a unit."""
    singular: str
    """The key for comparisons of single words and of a unit's last word."""
    start: int
    end: int


class Projection(NamedTuple):
    """The words of the lexicon in a chunk, or one of the special values below."""

    lead: bool
    """Whether the chunk begins with another token."""
    words: tuple[Word | None, ...]
    """The words of the lexicon, with None for other tokens between them."""
    trail: bool
    """Whether the chunk ends with another token."""


NOTHING: Final = None
"""A chunk without a word of the lexicon. It is falsy, so that it is quick to skip."""
EMPTY: Final = Projection(False, (), False)
"""The empty chunk between two blanks."""
UNSAFE: Final = Projection(True, (), True)
"""A chunk whose tokens depend on its neighbours."""

Projected: TypeAlias = Projection | None


def is_chunkable(lexicon: Lexicon) -> bool:
    """Return whether every word of a lexicon has one of the shapes above.

    Words with a blank or a capital letter are irrelevant, because no token is equal to one.
    """
    reachable = (w for w in lexicon.words if w == w.lower() and len(w.split()) == 1)
    return all(
        _WORD.fullmatch(w) and _HAS_LETTER.search(w) for w in reachable if not w[0].isspace()
    )


class ChunkCache(dict[str, Projected]):
    """Chunk -> projection, filled on lookup and cleared when full."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self._lexicon = lexicon

    def __missing__(self, chunk: str) -> Projected:
        """Compute the projection of a new chunk, and cache it."""
        # Text without blanks would otherwise fill the cache with chunks that never come again.
        if len(chunk) > MAX_CHUNK_LENGTH:
            return UNSAFE
        projection = project(chunk, self._lexicon)
        if len(self) >= MAX_CHUNKS:
            self.clear()
        self[chunk] = projection
        return projection


def project(chunk: str, lexicon: Lexicon) -> Projected:
    """Return the projection of a chunk."""
    if not chunk:
        return EMPTY
    match = _CHUNK.fullmatch(chunk)
    if match is None:
        return NOTHING if _NO_WORD.fullmatch(chunk) else UNSAFE
    core = match["core"]
    # Only after letters alone is it known that the tokeniser splits the apostrophe off.
    if match["possessive"] and not _PLAIN.fullmatch(core):
        return UNSAFE
    if not _HAS_LETTER.search(core):
        return NOTHING
    if match["stop"] and len(core) == 1:
        # "a." may be an initial, which does not end a sentence and keeps its full stop.
        return UNSAFE if known_words([Token(core, 0, 1)], lexicon)[0] else NOTHING
    offset = match.start("core")
    if _PLAIN.fullmatch(core) and not splits(core):
        tokens = [Token(core, 0, len(core))]
    else:
        tokens = word_tokens(core)
    words = known_words(tokens, lexicon)
    if not any(words):
        return NOTHING
    lead, trail = bool(match["lead"]), bool(match["tail"])
    return _trim(lead, [w and _moved(w, offset) for w in words], trail)


def known_words(tokens: list[Token], lexicon: Lexicon) -> list[Word | None]:
    """Return, for each token, its word of the lexicon or None."""
    found: list[Word | None] = []
    for text, start, end in tokens:
        written, singular = lexicon.keys(text)
        known = singular in lexicon.words or written in lexicon.words
        found.append(Word(written, singular, start, end) if known else None)
    return found


def _moved(word: Word, by: int) -> Word:
    return Word(word.written, word.singular, word.start + by, word.end + by)


def _trim(lead: bool, words: list[Word | None], trail: bool) -> Projection:
    first = next(i for i, word in enumerate(words) if word)
    last = next(i for i in range(len(words) - 1, -1, -1) if words[i])
    # A neighbour that is not in the lexicon ends a unit, so that only its presence is kept.
    trail = trail or last < len(words) - 1
    return Projection(lead or first > 0, tuple(words[first : last + 1]), trail)


WordFields: TypeAlias = tuple[str, str, int, int]
"""The fields of a ``Word`` as a plain tuple."""
Found: TypeAlias = tuple[str, str | None, int, int]
"""A word or unit of the lexicon: the word that it counts as, its root, start and end."""


def walk(words: Sequence[WordFields | None], lexicon: Lexicon) -> list[Found]:
    """Join units from left to right, and return every word and unit that has a meaning.

    Args:
        words: The words of the lexicon, with None where another token lies between two.
        lexicon: The meanings.
    """
    singles, units = lexicon.singles, lexicon.units
    hits: list[Found] = []
    index, count = 0, len(words)
    while index < count:
        word = words[index]
        index += 1
        if word is None:
            continue
        written, singular, start, end = word
        # A word that is not in the lexicon can be part of no unit.
        if written in units and index < count and words[index] is not None:
            found = _unit(words, index, lexicon, written)
            if found is not None:
                hit, index, end = found
                hits.append((*hit, start, end))
                continue
        single = singles.get(written) or singles.get(singular)
        if single is not None:
            hits.append((*single, start, end))
    return hits


def _unit(
    words: Sequence[WordFields | None], index: int, lexicon: Lexicon, first: str
) -> tuple[Hit, int, int] | None:
    """Return the longest unit that begins with ``first``, or None.

    Args:
        words: The words of the caption.
        index: The index of the word after ``first``.
        lexicon: The units.
        first: The first word.

    Returns:
        The meaning of the unit, the index of the word after it, and where it ends.
    """
    for middle, last, hit in lexicon.units[first]:
        behind = index + len(middle)
        final = words[behind] if behind < len(words) else None
        if final is None or (last != final[1] and last != final[0]):
            continue
        between = words[index:behind]
        if all(w is not None and w[0] == m for w, m in zip(between, middle, strict=True)):
            return hit, behind + 1, final[3]
    return None
