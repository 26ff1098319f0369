"""Caches of sentence vectors and probabilities of support."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .matcher_interface import Encoder, PairModel

if TYPE_CHECKING:
    from .matcher_interface import Vectors


DIGITS = 6
"""The decimals of scores; further ones may differ between machines."""
TOKENS_PER_BATCH = 2048
"""The maximum number of tokens of a batch. Larger batches were not faster on CPUs."""


def length_batches(lengths: Sequence[int], tokens: int = TOKENS_PER_BATCH) -> list[list[int]]:
    """Return positions in batches of texts of equal length, the shortest first.

    Texts of equal length need no padding. That saves work, and makes a text's vector independent of
    the other texts in its batch.

    Args:
        lengths: The number of tokens of each text.
        tokens: The maximum number of tokens of a batch.
    """
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    batches = []
    for length in sorted(by_length):
        positions, step = by_length[length], max(1, tokens // max(1, length))
        batches += [positions[at : at + step] for at in range(0, len(positions), step)]
    return batches


def encode_by_length(
    lengths: Sequence[int], size: int, encode: Callable[[list[int]], Vectors]
) -> Vectors:
    """Return one row for each position, from an encoder of batches of equal length."""
    import numpy as np

    rows = np.empty((len(lengths), size), dtype=np.float32)
    for batch in length_batches(lengths):
        rows[batch] = encode(batch)
    return rows


class VectorStore:
    """A sentence encoder with a bounded cache, safe to use from several threads.

    Args:
        encoder: The encoder.
        limit: How many vectors are kept between calls.
    """

    def __init__(self, encoder: Encoder, limit: int) -> None:
        self._encoder = encoder
        self._limit = limit
        self._kept: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many vectors are kept."""
        return len(self._kept)

    def vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        """Return the vector of every distinct text."""
        distinct = dict.fromkeys(texts)
        with self._lock:
            found = {text: self._kept[text] for text in distinct if text in self._kept}
            missing = [text for text in distinct if text not in found]
            for text in found:
                self._kept.move_to_end(text)
            if missing:
                found |= zip(missing, self._encoder.encode(missing), strict=True)
                self._keep({text: found[text] for text in missing[-self._limit :]})
        return found

    def _keep(self, fresh: dict[str, Vectors]) -> None:
        if not self._limit:
            return
        # Copied, because a view of a row would keep its whole batch in memory.
        self._kept.update((text, vector.copy()) for text, vector in fresh.items())
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)


class TextComparer:
    """Compares texts by the cosine of their vectors.

    Args:
        store: Vectors by text.
        label: The encoder and its backend, for signatures.
    """

    def __init__(self, store: VectorStore, label: str) -> None:
        self.label = label
        self._store = store

    def vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        """Return the unit vector of every distinct text."""
        return self._store.vectors(texts)

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair, rounded as verdicts are."""
        vectors = self._store.vectors(text for pair in pairs for text in pair)
        return [round(float(vectors[one] @ vectors[other]), DIGITS) for one, other in pairs]


class PairStore:
    """A small judge's model with a bounded cache, safe to use from several threads.

    Args:
        model: The model.
        limit: How many pairs are kept between calls.
    """

    def __init__(self, model: PairModel, limit: int) -> None:
        self.label = model.label
        self.limit = model.limit
        self._model = model
        self._kept_pairs = limit
        self._kept: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by itself."""
        return self._model.lengths(texts)

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return the number of tokens of the input that a premise and a claim make."""
        return self._model.sizes(pairs)

    def supported(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each premise supports its claim."""
        with self._lock:
            found = {pair: self._kept[pair] for pair in pairs if pair in self._kept}
            missing = [pair for pair in dict.fromkeys(pairs) if pair not in found]
            if missing:
                found |= zip(missing, self._model.supported(missing), strict=True)
            self._keep(found)
        return [found[pair] for pair in pairs]

    def _keep(self, found: dict[tuple[str, str], float]) -> None:
        for pair, probability in found.items():
            self._kept[pair] = probability
            self._kept.move_to_end(pair)
        while len(self._kept) > self._kept_pairs:
            self._kept.popitem(last=False)
