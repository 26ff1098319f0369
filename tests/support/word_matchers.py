"""Matchers with simple models of words, whose scores can be computed by hand."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hallujudge.judge_service.matchers import ClaimMatcher, ClaimQuery, MatcherSettings, VectorStore
from hallujudge.judge_service.matchers.cosine_matcher import CosineMatcher
from hallujudge.judge_service.matchers.small_matcher import SmallMatcher
from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Triplet, reference_of

GRAPH = tuple(
    reference_of(text)
    for text in ("(man, riding, horse)", "(dog, under, tree)", "(sky, is, blue)", "(bus, is,red)")
)


class WordEncoder:
    """An encoder by words: texts that share words are similar. It records the encoded texts."""

    label = "words"
    size = 64

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return np.stack([self._vector(text) for text in texts]).astype(np.float32)

    def _vector(self, text: str) -> Any:
        words = sorted(text.lower().replace(".", " ").split())
        row = np.full(self.size, 1e-3)
        for word in words:
            # A direction of its own for each word, so that no two cosines are equal by chance.
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
            row += np.random.default_rng(seed).normal(size=self.size)
        return row / np.linalg.norm(row)


class WordPairs:
    """A model by which a premise supports texts whose words it all has; each word is a token."""

    label = "word-pairs@0"

    def __init__(self, limit: int = 12) -> None:
        self.limit = limit
        self.pairs: list[tuple[str, str]] = []

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        return [sum(self.lengths(pair)) for pair in pairs]

    def supported(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.pairs += pairs
        for size in self.sizes(pairs):
            assert size <= self.limit, "a premise was not split"
        return [self._share(premise, text) for premise, text in pairs]

    def _share(self, premise: str, text: str) -> float:
        words = set(text.lower().strip(".").split())
        return len(words & set(premise.lower().replace(".", " ").split())) / len(words)


def published(encoder: WordEncoder | None = None, **changes: Any) -> CosineMatcher:
    chosen = MatcherSettings(**changes)
    store = VectorStore(encoder or WordEncoder(), chosen.cached_vectors)
    return CosineMatcher(chosen, store, "words@0/words")


def small(model: WordPairs, judge: str = "nli", **changes: Any) -> SmallMatcher:
    chosen = MatcherSettings(protocol=judge, small_model="m", **changes)
    return SmallMatcher(chosen, VectorStore(WordEncoder(), 100), "words@0/words", model)


def query(
    *claim: str, references: tuple[Triplet, ...] | None = GRAPH, objects: tuple[str, ...] = ()
) -> ClaimQuery:
    parts = Triplet(*claim) if len(claim) == 3 else Sentence(*claim)
    return ClaimQuery(claim=parts, references=references, objects=objects)


def judged(matcher: ClaimMatcher, *queries: ClaimQuery) -> list[ClaimVerdict]:
    return asyncio.run(matcher.judge(queries))
