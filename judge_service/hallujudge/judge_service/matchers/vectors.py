"""Vectors by text: each distinct text is embedded once, and the latest are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .values import Encoder, EntailmentModel

if TYPE_CHECKING:
    from .values import Vectors

__all__ = ["TOKENS_PER_BATCH", "PairStore", "VectorStore", "length_batches"]

TOKENS_PER_BATCH = 2048
"""Tokens of a batch; more make no processor faster, and memory stays small."""


def length_batches(lengths: Sequence[int], tokens: int = TOKENS_PER_BATCH) -> list[list[int]]:
    """Positions in batches of equal length, shortest first.

    Equal lengths need no padding. That is the least work, and it is why a text's vector does not
    depend on the texts that happen to be scored with it.

    Args:
        lengths: Tokens of each text.
        tokens: Most tokens of a batch.
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
    """Rows for all positions, from an encoder of batches of equal length."""
    import numpy as np

    rows = np.empty((len(lengths), size), dtype=np.float32)
    for batch in length_batches(lengths):
        rows[batch] = encode(batch)
    return rows


class VectorStore:
    """An encoder behind a bounded cache, safe to use from several threads.

    Args:
        encoder: What makes vectors.
        limit: How many are kept from call to call.
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
        """The vector of every distinct text."""
        wanted = dict.fromkeys(texts)
        with self._lock:
            found = {text: self._kept[text] for text in wanted if text in self._kept}
            missing = [text for text in wanted if text not in found]
            for text in found:
                self._kept.move_to_end(text)
            if missing:
                found |= zip(missing, self._encoder.encode(missing), strict=True)
                self._keep({text: found[text] for text in missing[-self._limit :]})
        return found

    def _keep(self, fresh: dict[str, Vectors]) -> None:
        if not self._limit:
            return
        # A row of a batch would keep the whole batch alive.
        self._kept.update((text, vector.copy()) for text, vector in fresh.items())
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)


class PairStore:
    """An entailment model behind a bounded cache, safe to use from several threads.

    Args:
        model: What gives probabilities.
        limit: How many pairs are kept from call to call.
    """

    def __init__(self, model: EntailmentModel, limit: int) -> None:
        self.label = model.label
        self.room = model.room
        self._model = model
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return self._model.lengths(texts)

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each premise entails its hypothesis; ask each pair once."""
        with self._lock:
            found = {pair: self._kept[pair] for pair in pairs if pair in self._kept}
            missing = [pair for pair in dict.fromkeys(pairs) if pair not in found]
            if missing:
                found |= zip(missing, self._model.entailment(missing), strict=True)
            self._keep(found)
        return [found[pair] for pair in pairs]

    def _keep(self, found: dict[tuple[str, str], float]) -> None:
        for pair, probability in found.items():
            self._kept[pair] = probability
            self._kept.move_to_end(pair)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
