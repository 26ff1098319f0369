"""Vectors by text: each distinct text is embedded once, and the latest are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .values import Encoder

if TYPE_CHECKING:
    from .values import Vectors

__all__ = ["TOKENS_PER_BATCH", "VectorStore", "length_batches"]

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
