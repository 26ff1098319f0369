"""Building of matchers from settings; matchers share loaded models."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from ..threads import SharedLoads
from .cosine_matcher import CosineMatcher
from .matcher_interface import ClaimMatcher, Encoder, MatcherSettings
from .model_folders import ModelFolder, find_model, find_tokenizer
from .onnx_encoder import OnnxEncoder, can_write
from .onnx_graphs import GraphCache
from .small_judge_presets import Architecture, SmallPreset, preset_of
from .small_matcher import SmallMatcher
from .torch_models import TorchEncoder, TorchPairs, TorchWeights
from .vectors import PairStore, VectorStore

_KEPT_MODELS = 4
_HolderT = TypeVar("_HolderT", VectorStore, TorchWeights)


@dataclass(frozen=True, slots=True, kw_only=True)
class _EncoderKey:
    """The settings that determine a loaded sentence encoder; thresholds are not among them."""

    model: str
    backend: str
    device: str
    threads: int
    cached_vectors: int
    cache_folder: Path | None
    allow_download: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _WeightsKey:
    """What determines loaded weights of a small judge; names and input formats do not."""

    sha256: str
    architecture: Architecture
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _PairsKey:
    """What determines the probabilities of a small judge; thresholds do not."""

    preset: str
    path: Path
    sha256: str
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoadedEncoder:
    """A loaded sentence encoder with its cache."""

    store: VectorStore
    """Vectors by text."""
    label: str
    """The model and its backend, for the signature."""
    weights: str
    """The SHA-256 of its weights."""


class ModelMemory(Protocol):
    """The memory that the process may hold, of which models take a part."""

    def take(self, size: int, what: str) -> None:
        """Take bytes, or refuse."""
        ...

    def give_back(self, size: int) -> None:
        """Give bytes back."""
        ...


class MatcherModels:
    """Loaded models, which matchers with different thresholds share.

    A sweep over thresholds needs one model in memory, and encodes each text once while its vector
    is in the cache (``cached_vectors``). Safe to use from several threads.

    Args:
        kept: How many models of each kind are kept; the least recently used is dropped first.
        memory: The memory budget of the process; without one, nothing is limited.
    """

    def __init__(self, kept: int = _KEPT_MODELS, memory: ModelMemory | None = None) -> None:
        self._memory = memory
        self._encoders: SharedLoads[_EncoderKey, _LoadedEncoder] = SharedLoads(kept)
        self._folders: SharedLoads[tuple[str, bool], ModelFolder] = SharedLoads(kept)
        self._small: SharedLoads[_WeightsKey, TorchWeights] = SharedLoads(kept)
        self._pairs: SharedLoads[_PairsKey, PairStore] = SharedLoads(kept)

    def open(self, settings: MatcherSettings) -> ClaimMatcher:
        """Return the matcher of some settings; loading its models may take a few seconds.

        Raises:
            MissingExtraError: A required package is not installed; the message names it.
            NotFoundError: A model is not on this machine.
            InvalidInputError: A model is unsuitable, or other users may write the cache folder.
        """
        encoder = self._encoder(settings)
        if settings.protocol == "published":
            return CosineMatcher(settings, encoder.store, encoder.label)
        pairs = self._pair_store(preset_of(settings.protocol), settings)
        return SmallMatcher(settings, encoder.store, encoder.label, pairs)

    def weights(self, settings: MatcherSettings) -> str:
        """Return the SHA-256 of the sentence encoder's weights, which this loads as ``open`` does.

        Raises:
            MissingExtraError: A required package is not installed; the message names it.
            NotFoundError: The model is not on this machine.
            InvalidInputError: The model is unsuitable.
        """
        return self._encoder(settings).weights

    def _pair_store(self, preset: SmallPreset, settings: MatcherSettings) -> PairStore:
        name = settings.small_model or preset.model
        model = self._folders.get(
            (name, settings.allow_download),
            lambda: find_model(name, allow_download=settings.allow_download),
        )
        weights = self._small.get(
            _WeightsKey(
                sha256=model.sha256, architecture=preset.architecture, device=settings.device
            ),
            lambda: _load_small(model, preset, settings, self._memory),
        )
        return self._pairs.get(
            _PairsKey(
                preset=preset.name, path=model.path, sha256=model.sha256, device=settings.device
            ),
            lambda: PairStore(TorchPairs(preset, model, weights), settings.cached_vectors),
        )

    def _encoder(self, settings: MatcherSettings) -> _LoadedEncoder:
        return self._encoders.get(
            _encoder_key(settings), lambda: _load_encoder(settings, self._memory)
        )


def open_encoder(model: ModelFolder, settings: MatcherSettings) -> Encoder:
    """Return the sentence encoder of a model, on onnxruntime if that supports it, else torch."""
    if settings.backend == "onnx" or (
        settings.backend == "auto" and settings.device == "cpu" and can_write(model)
    ):
        return OnnxEncoder(model, GraphCache(settings.cache_folder), settings.threads)
    return TorchEncoder(model, settings.device)


def _encoder_key(settings: MatcherSettings) -> _EncoderKey:
    return _EncoderKey(
        model=settings.model,
        backend=settings.backend,
        device=settings.device,
        threads=settings.threads,
        cached_vectors=settings.cached_vectors,
        cache_folder=settings.cache_folder,
        allow_download=settings.allow_download,
    )


def _load_encoder(settings: MatcherSettings, memory: ModelMemory | None) -> _LoadedEncoder:
    model = find_model(settings.model, allow_download=settings.allow_download)
    with _weights(model, memory) as charge:
        encoder = open_encoder(model, settings)
        return _LoadedEncoder(
            store=charge(VectorStore(encoder, settings.cached_vectors)),
            label=f"{model.label}/{encoder.label}",
            weights=model.sha256,
        )


def _load_small(
    model: ModelFolder, preset: SmallPreset, settings: MatcherSettings, memory: ModelMemory | None
) -> TorchWeights:
    tokenizer = None
    if preset.tokenizer and not (model.path / "tokenizer.json").is_file():
        tokenizer = find_tokenizer(preset.tokenizer, allow_download=settings.allow_download)
    with _weights(model, memory) as charge:
        return charge(TorchWeights(model, preset.architecture, settings.device, tokenizer))


@contextmanager
def _weights(
    model: ModelFolder, memory: ModelMemory | None
) -> Iterator[Callable[[_HolderT], _HolderT]]:
    """Take memory for a model's weights, until the object that has them is dropped."""
    if memory is None:
        yield lambda holder: holder
        return
    memory.take(model.size, f"the model {model.name}")
    give_back = partial(memory.give_back, model.size)

    def charge(holder: _HolderT) -> _HolderT:
        weakref.finalize(holder, give_back)
        return holder

    try:
        yield charge
    except BaseException:
        give_back()
        raise
