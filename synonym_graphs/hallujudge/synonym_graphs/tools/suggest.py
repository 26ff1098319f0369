"""Roots that a keyword which a graph does not know may belong to."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..graph import SynonymGraph
from ..singular import singular
from ..words import SMALL_WORDS, clean_word
from .edit import Candidate
from .wordnet import Synset, WordNet

__all__ = ["RootChooser", "Similarity", "suggest_roots", "wordnet_candidates"]

Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""Texts, texts -> how alike they are in meaning, a row for each of the first."""

RootChooser = Callable[[Mapping[str, Sequence[str]]], Mapping[str, str]]
"""Words with the roots that they may belong to -> the root of each that belongs to one of them."""

_SOURCES: Final = ("spelling", "words", "wordnet", "llm", "embedding")
_SPELT_ALIKE: Final = 0.88
"""Slips of the pen, such as one letter of ten; "body" is 0.86 like "boy"."""
_MEANT_ALIKE: Final = 0.45
_SYNONYM: Final = 0.95
_KIND: Final = 0.8
"""Score of the kind that a word belongs to, one step up."""
_STEP: Final = 0.92
"""What each further step up leaves of a score."""
_RARER: Final = 0.9
"""What each commoner sense of a word leaves of a score for the next: an arm is a sleeve, rarely."""
_WEAKEST: Final = 0.4
"""Below it, WordNet's candidates are senses that hardly anybody means."""
_PART: Final = 0.85
"""What is left where only the main word of a phrase is known."""
_CHOSEN: Final = 0.88
"""Below 0.9, so that accepting whatever is all but sure takes no model's word for it."""
_STEPS_UP: Final = {"objects": 6, "behaviors": 2}
"""Verbs soon belong to "move" and "act", of which nearly everything is a kind."""
_SENSES: Final = 3
_CHOICES: Final = 20


def suggest_roots(
    graph: SynonymGraph,
    words: Sequence[str],
    *,
    similarity: Similarity | None = None,
    wordnet: WordNet | None = None,
    choose: RootChooser | None = None,
    kind: str = "objects",
    limit: int = 5,
) -> dict[str, tuple[Candidate, ...]]:
    """Rank roots for every word.

    A root that several sources propose has the best one's score and names them all.

    Args:
        graph: The graph that lacks the words.
        words: The words.
        similarity: Compares meanings, by embeddings for example; None: it isn't asked.
        wordnet: WordNet's database; None: it isn't asked.
        choose: Chooses among the nearest roots, as a language model does; None: nobody is asked.
        kind: ``objects`` or ``behaviors``: nouns or verbs are meant.
        limit: Roots for each word at most.

    Raises:
        GraphFormatError: WordNet's files are damaged.
    """
    forms = dict(graph.edges)
    index = _word_index(forms)
    found: dict[str, list[Candidate]] = {
        word: [*_spelt(word, graph, forms), *_shared(word, forms, index, kind)] for word in words
    }
    if wordnet is not None:
        for word, candidates in wordnet_candidates(graph, words, wordnet, kind=kind).items():
            found[word] += candidates
    near: dict[str, list[Candidate]] = {}
    if similarity is not None and words and forms:
        near = _meant(words, forms, similarity)
        for word, candidates in near.items():
            found[word] += (c for c in candidates if c.score >= _MEANT_ALIKE)
    if choose is not None and words and forms:
        for word, candidate in _chosen(graph, found, near, choose).items():
            found[word].append(candidate)
    return {word: _ranked(candidates)[:limit] for word, candidates in found.items()}


def _ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    by_root: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_root.setdefault(candidate.root, []).append(candidate)
    ranked = [_joined(same) for same in by_root.values()]
    ranked.sort(key=lambda c: (-c.score, -c.source.count("+"), c.root))
    return tuple(ranked)


def _joined(same: Sequence[Candidate]) -> Candidate:
    """One candidate for several with one root: the best of them, with every source."""
    best = max(same, key=lambda c: (c.score, -_SOURCES.index(c.source)))
    sources = {candidate.source for candidate in same}
    named = "+".join(name for name in _SOURCES if name in sources)
    return replace(best, source=named)


def _spelt(
    word: str, graph: SynonymGraph, forms: Mapping[str, tuple[str, ...]]
) -> Iterator[Candidate]:
    """Forms that are written almost so."""
    plain = clean_word(word)
    for root in graph.roots_of(plain):
        yield Candidate(root=root, score=1.0, source="spelling", form=plain)
    for form in difflib.get_close_matches(plain, forms, n=3, cutoff=_SPELT_ALIKE):
        # Spelling says less than meaning: "seat" is all but "eat".
        score = 0.8 * difflib.SequenceMatcher(None, plain, form).ratio()
        for root in forms[form]:
            yield Candidate(root=root, score=score, source="spelling", form=form)


def _word_index(forms: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for form in forms:
        for part in set(form.split()) - SMALL_WORDS:
            index.setdefault(part, []).append(form)
    return index


def _content(word: str, kind: str) -> list[str]:
    """The words of a phrase that say something, its main word last: a noun's end, a verb's start.

    >>> _content("the wooden chairs", "objects"), _content("walk slowly", "behaviors")
    (['wooden', 'chair'], ['slowly', 'walk'])
    """
    parts = [part for part in clean_word(word).split() if part not in SMALL_WORDS]
    if kind == "behaviors":
        return parts[::-1]
    return [*parts[:-1], *(singular(part) for part in parts[-1:])]


def _shared(
    word: str,
    forms: Mapping[str, tuple[str, ...]],
    index: Mapping[str, list[str]],
    kind: str,
) -> Iterator[Candidate]:
    """Forms that share a word: ``wooden chair`` is a chair, and has less to do with chair legs."""
    content = _content(word, kind)
    for part in dict.fromkeys(reversed(content)):
        for form in index.get(part, ())[:50]:
            words = _content(form, kind)
            share = len(set(words) & set(content)) / max(len(words), len(content))
            same_head = words[-1] == content[-1]
            weight = _PART if words == content[-1:] else 0.6 + 0.3 * share if same_head else share
            for root in forms[form]:
                yield Candidate(root=root, score=weight, source="words", form=form)


def _meant(
    words: Sequence[str], forms: Mapping[str, tuple[str, ...]], similarity: Similarity
) -> dict[str, list[Candidate]]:
    """The roots of the forms nearest in meaning, however far that is."""
    names = list(forms)
    found: dict[str, list[Candidate]] = {}
    for word, row in zip(words, similarity(list(words), names), strict=True):
        near = sorted(range(len(names)), key=lambda i: -row[i])[:_CHOICES]
        found[word] = [
            Candidate(root=root, score=float(row[i]), source="embedding", form=names[i])
            for i in near
            for root in forms[names[i]]
        ]
    return found


def wordnet_candidates(
    graph: SynonymGraph, words: Iterable[str], wordnet: WordNet, *, kind: str
) -> dict[str, list[Candidate]]:
    """Roots that WordNet calls a synonym of a word, or a kind it belongs to.

    Where it does not know a phrase, its main word stands for it: a ``golden spaniel`` is a dog.

    Args:
        graph: The graph that lacks the words.
        words: The words.
        wordnet: The database.
        kind: ``objects`` or ``behaviors``: nouns or verbs are meant.

    Raises:
        GraphFormatError: WordNet's files are damaged.
    """
    return {word: list(_in_wordnet(graph, word, wordnet, kind)) for word in words}


def _in_wordnet(graph: SynonymGraph, word: str, wordnet: WordNet, kind: str) -> Iterator[Candidate]:
    weight, senses = 1.0, wordnet.senses(clean_word(word), kind)
    content = _content(word, kind)
    if not senses and len(content) > 1 and not graph.roots_of(content[-1]):
        weight, senses = _PART, wordnet.senses(content[-1], kind)
    for number, sense in enumerate(senses[:_SENSES]):
        for found in _upwards(graph, sense, wordnet, kind):
            score = found.score * weight * _RARER**number
            if score >= _WEAKEST:
                yield replace(found, score=score)


def _upwards(
    graph: SynonymGraph, sense: Synset, wordnet: WordNet, kind: str
) -> Iterator[Candidate]:
    """Roots of a sense and of the kinds above it; the first that the graph knows ends each way."""
    level, score = [sense], _SYNONYM
    for step in range(_STEPS_UP[kind] + 1):
        above: dict[Synset, None] = {}
        for synset in level:
            known = [(form, root) for form in synset.words for root in graph.roots_of(form)]
            for form, root in known:
                rarity = wordnet.rank(form, synset, kind)
                yield Candidate(
                    root=root, score=score * _RARER**rarity, source="wordnet", form=form
                )
            if not known:
                above |= dict.fromkeys(wordnet.kinds_of(synset, kind))
        level, score = list(above), _KIND * _STEP**step


def _chosen(
    graph: SynonymGraph,
    found: Mapping[str, Sequence[Candidate]],
    near: Mapping[str, Sequence[Candidate]],
    choose: RootChooser,
) -> dict[str, Candidate]:
    """What is chosen among the nearest roots; where few are near, the largest ones stand beside."""
    sizes = Counter(root for _, roots in graph.edges for root in roots)
    largest = sorted(graph.roots, key=lambda root: (-sizes[root], root))
    choices = {}
    for word, candidates in found.items():
        ranked = _ranked((*candidates, *near.get(word, ())))
        roots = dict.fromkeys((*(c.root for c in ranked), *largest))
        choices[word] = list(roots)[:_CHOICES]
    return {
        word: Candidate(root=root, score=_CHOSEN, source="llm")
        for word, root in choose(choices).items()
        if root in choices.get(word, ())
    }
