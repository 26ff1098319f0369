"""Suggestions of roots for keywords that a graph does not know."""

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
"""(texts, other texts) -> their similarity in meaning, one row for each of ``texts``."""

RootChooser = Callable[[Mapping[str, Sequence[str]]], Mapping[str, str]]
"""Words with candidate roots -> the chosen root of each word that belongs to a candidate."""

_SOURCES: Final = ("spelling", "words", "wordnet", "llm", "embedding")
# The scores and thresholds below are set by hand. They only order candidates for a person to decide
# on, and docs/how-to/grow-a-graph.md states how often they were wrong.
_SIMILAR_SPELLING: Final = 0.88
"""Least spelling similarity: one wrong letter of ten passes, "body" and "boy" (0.86) do not."""
_SIMILAR_MEANING: Final = 0.45
"""Least cosine similarity of embeddings; forms below it are rarely related."""
_SYNONYM: Final = 0.95
"""Score of a WordNet synonym."""
_KIND: Final = 0.8
"""Score of a word's hypernym, one step up."""
_STEP: Final = 0.92
"""Factor for each further step up."""
_RARER: Final = 0.9
"""Factor for each commoner sense of the word: "arm" rarely means a sleeve."""
_WEAKEST: Final = 0.4
"""Least score of a WordNet candidate; those below it come from rare senses."""
_PART: Final = 0.85
"""Factor for a phrase of which only the main word is known."""
_CHOSEN: Final = 0.88
"""Score of a language model's choice: below 0.9, so that ``--accept-above 0.9`` excludes it."""
_STEPS_UP: Final = {"objects": 6, "behaviors": 2}
"""Steps up from a sense. Verbs have fewer, since most soon lead to "move" or "act"."""
_SENSES: Final = 3
"""How many senses of a word are considered, the commonest first."""
_CHOICES: Final = 20
"""How many roots a language model chooses from."""


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
    """Return ranked candidate roots for every word.

    A root that several sources propose has the best score and names all sources.

    Args:
        graph: The graph that lacks the words.
        words: The words.
        similarity: Compares meanings, for example by embeddings; None: not used.
        wordnet: WordNet's database; None: not used.
        choose: Chooses among the nearest roots, for example with a language model; None: not used.
        kind: ``objects`` (nouns) or ``behaviors`` (verbs).
        limit: The maximum number of roots for each word.

    Raises:
        GraphFormatError: WordNet's files are damaged.
    """
    forms = dict(graph.edges)
    index = _word_index(forms)
    found: dict[str, list[Candidate]] = {
        word: [*_by_spelling(word, graph, forms), *_by_shared_word(word, forms, index, kind)]
        for word in words
    }
    if wordnet is not None:
        for word, candidates in wordnet_candidates(graph, words, wordnet, kind=kind).items():
            found[word] += candidates
    near: dict[str, list[Candidate]] = {}
    if similarity is not None and words and forms:
        near = _by_meaning(words, forms, similarity)
        for word, candidates in near.items():
            found[word] += (c for c in candidates if c.score >= _SIMILAR_MEANING)
    if choose is not None and words and forms:
        for word, candidate in _by_choice(graph, found, near, choose).items():
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
    """Return one candidate for several of the same root: the best one, with every source."""
    best = max(same, key=lambda c: (c.score, -_SOURCES.index(c.source)))
    sources = {candidate.source for candidate in same}
    named = "+".join(name for name in _SOURCES if name in sources)
    return replace(best, source=named)


def _by_spelling(
    word: str, graph: SynonymGraph, forms: Mapping[str, tuple[str, ...]]
) -> Iterator[Candidate]:
    """Return the roots of forms with a similar spelling."""
    plain = clean_word(word)
    for root in graph.roots_of(plain):
        yield Candidate(root=root, score=1.0, source="spelling", form=plain)
    for form in difflib.get_close_matches(plain, forms, n=3, cutoff=_SIMILAR_SPELLING):
        # The factor ranks spelling below meaning: "seat" and "eat" are spelt alike.
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
    """Return the content words of a phrase, its main word last.

    The main word is the last one of a noun phrase and the first one of a verb phrase.

    >>> _content("the wooden chairs", "objects"), _content("walk slowly", "behaviors")
    (['wooden', 'chair'], ['slowly', 'walk'])
    """
    parts = [part for part in clean_word(word).split() if part not in SMALL_WORDS]
    if kind == "behaviors":
        return parts[::-1]
    return [*parts[:-1], *(singular(part) for part in parts[-1:])]


def _by_shared_word(
    word: str,
    forms: Mapping[str, tuple[str, ...]],
    index: Mapping[str, list[str]],
    kind: str,
) -> Iterator[Candidate]:
    """Return the roots of forms that share a word.

    A form with the same main word scores higher: a wooden chair is a chair, not a chair leg.
    """
    content = _content(word, kind)
    for part in dict.fromkeys(reversed(content)):
        for form in index.get(part, ())[:50]:
            words = _content(form, kind)
            share = len(set(words) & set(content)) / max(len(words), len(content))
            same_head = words[-1] == content[-1]
            weight = _PART if words == content[-1:] else 0.6 + 0.3 * share if same_head else share
            for root in forms[form]:
                yield Candidate(root=root, score=weight, source="words", form=form)


def _by_meaning(
    words: Sequence[str], forms: Mapping[str, tuple[str, ...]], similarity: Similarity
) -> dict[str, list[Candidate]]:
    """Return the roots of the forms nearest in meaning, whatever their similarity."""
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
    """Return roots that are synonyms or hypernyms of a word in WordNet.

    If WordNet lacks a phrase, its main word is looked up: a ``golden spaniel`` is a dog.

    Args:
        graph: The graph that lacks the words.
        words: The words.
        wordnet: The database.
        kind: ``objects`` (nouns) or ``behaviors`` (verbs).

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
    """Return the roots of a sense and its hypernyms, up to the first word that the graph knows."""
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


def _by_choice(
    graph: SynonymGraph,
    found: Mapping[str, Sequence[Candidate]],
    near: Mapping[str, Sequence[Candidate]],
    choose: RootChooser,
) -> dict[str, Candidate]:
    """Return the roots that ``choose`` selects from the nearest roots and then the largest."""
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
