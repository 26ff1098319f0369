"""Roots that a keyword which a graph does not know may belong to."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ._edit import Candidate
from ._graph import SynonymGraph
from ._singular import singular
from ._words import SMALL_WORDS, clean_word

__all__ = ["Similarity", "suggest_roots", "wordnet_candidates"]

Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
"""Texts, texts -> how alike they are in meaning, a row for each of the first."""

_SPELT_ALIKE: Final = 0.82
_MEANT_ALIKE: Final = 0.45
_SOURCES: Final = ("spelling", "wordnet", "embedding", "words")


def suggest_roots(
    graph: SynonymGraph,
    words: Sequence[str],
    *,
    similarity: Similarity | None = None,
    wordnet: bool = True,
    kind: str = "objects",
    limit: int = 5,
) -> dict[str, tuple[Candidate, ...]]:
    """Rank roots for every word.

    Args:
        graph: The graph that lacks the words.
        words: The words.
        similarity: Compares meanings, by embeddings for example; None: spelling and words only.
        wordnet: Whether WordNet is asked, where nltk has its data; it is never downloaded.
        kind: ``objects`` or ``behaviors``: which WordNet words are meant.
        limit: Roots for each word at most.
    """
    forms = dict(graph.edges)
    index = _word_index(forms)
    found: dict[str, list[Candidate]] = {
        word: [*_spelt(word, graph, forms), *_shared(word, forms, index)] for word in words
    }
    if wordnet:
        for word, candidates in wordnet_candidates(graph, words, kind=kind).items():
            found[word] += candidates
    if similarity is not None and words and forms:
        for word, candidates in _meant(words, forms, similarity, limit).items():
            found[word] += candidates
    return {word: _ranked(candidates, limit) for word, candidates in found.items()}


def _ranked(candidates: Iterable[Candidate], limit: int) -> tuple[Candidate, ...]:
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        known = best.get(candidate.root)
        if known is None or candidate.score > known.score:
            best[candidate.root] = candidate
    ranked = sorted(best.values(), key=lambda c: (-c.score, _SOURCES.index(c.source), c.root))
    return tuple(ranked[:limit])


def _spelt(
    word: str, graph: SynonymGraph, forms: Mapping[str, tuple[str, ...]]
) -> Iterable[Candidate]:
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


def _shared(
    word: str, forms: Mapping[str, tuple[str, ...]], index: Mapping[str, list[str]]
) -> Iterable[Candidate]:
    """Forms that share a word: ``wooden chair`` is a chair, and has less to do with chair legs."""
    parts = [singular(part) for part in clean_word(word).split()]
    content = [part for part in parts if part not in SMALL_WORDS]
    if not content:
        return
    head = content[-1]
    for part in dict.fromkeys(reversed(content)):
        for form in index.get(part, ())[:50]:
            words = form.split()
            share = len(set(words) & set(content)) / max(len(words), len(content))
            weight = 0.85 if words == [head] else 0.6 + 0.3 * share if words[-1] == head else share
            for root in forms[form]:
                yield Candidate(root=root, score=weight, source="words", form=form)


def _meant(
    words: Sequence[str],
    forms: Mapping[str, tuple[str, ...]],
    similarity: Similarity,
    limit: int,
) -> dict[str, list[Candidate]]:
    names = list(forms)
    found: dict[str, list[Candidate]] = {}
    for word, row in zip(words, similarity(list(words), names), strict=True):
        near = sorted(range(len(names)), key=lambda i: -row[i])[: 3 * limit]
        found[word] = [
            Candidate(root=root, score=float(row[i]), source="embedding", form=names[i])
            for i in near
            if row[i] >= _MEANT_ALIKE
            for root in forms[names[i]]
        ]
    return found


def wordnet_candidates(
    graph: SynonymGraph, words: Iterable[str], *, kind: str
) -> dict[str, list[Candidate]]:
    """Roots that WordNet calls a synonym of a word, or a kind it belongs to; none without data."""
    try:
        from nltk.corpus import wordnet

        wordnet.synsets("dog")
    except (ImportError, LookupError):
        return {}
    pos = wordnet.NOUN if kind == "objects" else wordnet.VERB
    return {word: list(_of_synsets(graph, wordnet.synsets(word.replace(" ", "_"), pos=pos)))
            for word in words}  # fmt: skip


def _of_synsets(graph: SynonymGraph, synsets: Iterable[object]) -> Iterable[Candidate]:
    for synset in synsets:
        ring = [(synset, 0.95), *((up, 0.7) for up in synset.hypernyms())]  # type: ignore[attr-defined]  # nltk has no types
        for sense, score in ring:
            for lemma in sense.lemma_names():
                form = lemma.replace("_", " ").lower()
                for root in graph.roots_of(form):
                    yield Candidate(root=root, score=score, source="wordnet", form=form)
