"""Matchers: judges that compare claims with references by a local model.

Protocol ``published`` gives the verdicts of Tri-HE's released NLI judge, the others those of small
judges: sentence-pair classifiers. Importing a matcher loads no model and no model library.

This module has the inputs, interfaces and settings of matchers, the texts that their models read,
and caches of sentence vectors and probabilities of support.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Triplet

from ..errors import InvalidInputError, Violation
from .small_judge_presets import SMALL_JUDGES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]


PROTOCOLS = ("published", *SMALL_JUDGES)
"""The ways of comparing claims with references: Tri-HE's matcher, and the small judges."""

BACKENDS = ("auto", "onnx", "torch")
"""The backends of the sentence encoder; ``auto`` chooses onnxruntime if it supports the model."""

PART_RULES = ("objects", "none")
"""The rules for the wrong part of unsupported claims; see ``PartRule``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimQuery:
    """A claim and the references that it is checked against."""

    claim: ClaimParts
    """The triplet or sentence."""
    references: tuple[Triplet, ...] | None
    """The triplets of the image's scene graph, in its order; None if it has none."""
    objects: tuple[str, ...] = ()
    """Objects of the image that the triplets do not name."""
    span: tuple[int, int] | None = None
    """The place of the claim in the response, which the verdict copies."""


class Encoder(Protocol):
    """A sentence encoder. A text's vector does not depend on the other texts of a call."""

    @property
    def label(self) -> str:
        """The backend and the precision, such as ``onnx-fp32``."""

    @property
    def size(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""


class PairModel(Protocol):
    """A classifier that returns the probability that a premise supports a claim."""

    @property
    def label(self) -> str:
        """The model's name in signatures."""

    @property
    def limit(self) -> int:
        """The maximum number of tokens of an input."""

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by itself."""

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return the number of tokens of the input that a premise and a claim make."""

    def supported(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each premise supports its claim."""


class ClaimMatcher(Protocol):
    """A judge that compares claims with references by a local model."""

    @property
    def name(self) -> str:
        """The judge's name in verdicts."""

    @property
    def label(self) -> str:
        """The protocol, model, precision and thresholds, for the signature."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The content of the label in full, for the report."""

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """Return one verdict for each claim, in order; an invalid claim is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatcherSettings:
    """The settings of a matcher. The signature has all that can change a verdict."""

    protocol: str = "published"
    """``published``, or the name of a small judge."""
    model: str = "minilm"
    """The sentence encoder: ``minilm``, ``mpnet``, a model id or a folder."""
    small_model: str = ""
    """The model of a small judge: a model id or a folder; empty for that of its authors."""
    backend: str = "auto"
    """``onnx``, ``torch`` or ``auto``."""
    device: str = "cpu"
    """The device of torch, such as ``cuda``; onnxruntime runs on the CPU."""
    keep_above: float = 0.5
    """References whose cosine with the claim is above it are kept (Tri-HE paper, section 3.3)."""
    top: int = 3
    """How many of the nearest references are compared as well, or instead if none is kept."""
    support_above: float = 0.6
    """``published``: the cosine above which a claim is supported (Tri-HE paper, section 3.3)."""
    small_above: float = 0.5
    """Small judges: the probability above which a claim is supported; 0.5 is their authors'."""
    parts: str = "objects"
    """``objects``: verdicts name the wrong part of unsupported claims; ``none``: they do not."""
    threads: int = 0
    """The threads of onnxruntime; 0 for its default. Results do not depend on it."""
    cached_vectors: int = 20_000
    """How many vectors are kept between calls."""
    cache_folder: Path | None = None
    """The folder of written ONNX graphs; by default ``.cache/hallujudge/onnx`` in the home."""
    allow_download: bool = False
    """Whether a model that is not on this machine may be downloaded from its hub."""

    def __post_init__(self) -> None:
        if violations := tuple(self._violations()):
            raise InvalidInputError(
                "; ".join(violation.description for violation in violations), violations=violations
            )

    def _violations(self) -> list[Violation]:
        choices = {"protocol": PROTOCOLS, "backend": BACKENDS, "parts": PART_RULES}
        found = [
            (name, f"{name} is {getattr(self, name)!r}; choose one of {', '.join(known)}")
            for name, known in choices.items()
            if getattr(self, name) not in known
        ]
        found += [
            (name, f"{name} is {getattr(self, name)}; give a number from {low} to 1")
            for name, low in (("keep_above", -1), ("support_above", -1), ("small_above", 0))
            if not low <= getattr(self, name) <= 1
        ]
        found += [
            (name, f"{name} is {getattr(self, name)}; give a whole number from {low} to {high}")
            for name, low, high in (("top", 1, 1000), ("threads", 0, 1024))
            if not low <= getattr(self, name) <= high
        ]
        if self.cached_vectors < 0:
            found.append(
                ("cached_vectors", f"cached_vectors is {self.cached_vectors}; give 0 or more")
            )
        small = SMALL_JUDGES.get(self.protocol)
        if small is not None and not (self.small_model or small.model):
            found.append(
                (
                    "small_model",
                    f"judge {small.name} needs the option small_model: the id or folder of a "
                    "cross-encoder",
                )
            )
        return [Violation(field=name, description=text) for name, text in found]


# The released script strips the notation of a tuple from the text of a triplet.
_DROPPED = str.maketrans("", "", "(),")


def claim_text(claim: ClaimParts) -> str:
    """Return a claim as the released script compares it: its parts, joined by blanks."""
    return plain(" ".join(claim))


def reference_text(reference: Triplet) -> str:
    """Return a reference as the released script compares it.

    The script takes the triplet as written in the file, drops every bracket and comma (inside parts
    too) and appends a full stop: ``(man, riding, horse)`` becomes ``man riding horse.``
    """
    return plain(reference.written.translate(_DROPPED) + ".")


def reference_sentence(reference: Triplet) -> str:
    """Return a reference as a sentence of a small judge's premise; its punctuation is kept."""
    return plain(f"{' '.join(reference)}.")


def plain(text: str) -> str:
    """Return a text with U+FFFD in place of lone surrogates, which tokenizers reject."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


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
