"""Building of matchers from settings; matchers share loaded models."""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

from ..tenancy import MemoryBudget
from ..threads import SharedLoads
from . import (
    ClaimMatcher,
    Encoder,
    MatcherSettings,
    SmallPreset,
    TextComparer,
    VectorStore,
    preset_of,
)
from .cosine_matcher import CosineMatcher
from .model_folders import ModelFolder, changes_texts, find_model, find_tokenizer
from .onnx_encoder import WRITABLE, GraphCache, OnnxEncoder
from .small_matcher import SmallMatcher
from .torch_models import TorchEncoder, TorchPairs, TorchWeights

# How many models of each kind are kept; the least recently used is dropped first.
_KEPT_MODELS = 4
_HolderT = TypeVar("_HolderT", VectorStore, TorchWeights)


# The settings that determine a loaded sentence encoder; thresholds are not among them.
_encoder_key = attrgetter(
    *("model", "backend", "device", "threads"),
    *("cached_vectors", "cache_folder", "allow_download"),
)


class _LoadedEncoder(Struct, frozen=True, kw_only=True):
    """A loaded sentence encoder with its cache."""

    store: VectorStore
    """Vectors by text."""
    label: str
    """The model and its backend, for the signature."""
    weights: str
    """The SHA-256 of its weights."""


class MatcherModels:
    """Loaded models, which matchers with different thresholds share.

    A sweep over thresholds needs one model in memory, and encodes each text once while its vector
    is in the cache (``cached_vectors``). Safe to use from several threads.

    Args:
        memory: The memory budget of the process; without one, nothing is limited.
    """

    def __init__(self, memory: MemoryBudget | None = None) -> None:
        self._memory = memory
        self._encoders: SharedLoads[tuple[object, ...], _LoadedEncoder] = SharedLoads(_KEPT_MODELS)
        self._folders: SharedLoads[tuple[str, bool], ModelFolder] = SharedLoads(_KEPT_MODELS)
        self._small: SharedLoads[tuple[str, ...], TorchWeights] = SharedLoads(_KEPT_MODELS)
        self._pairs: SharedLoads[tuple[str, ...], TorchPairs] = SharedLoads(_KEPT_MODELS)

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
        pairs = self._pair_model(preset_of(settings.protocol), settings)
        return SmallMatcher(settings, encoder.store, encoder.label, pairs)

    def comparer(self, settings: MatcherSettings) -> TextComparer:
        """Return what compares texts by the sentence encoder, which this loads as ``open`` does.

        Raises:
            MissingExtraError: A required package is not installed; the message names it.
            NotFoundError: The model is not on this machine.
            InvalidInputError: The model is unsuitable.
        """
        encoder = self._encoder(settings)
        return TextComparer(encoder.store, encoder.label)

    def weights(self, settings: MatcherSettings) -> str:
        """Return the SHA-256 of the sentence encoder's weights, which this loads as ``open`` does.

        Raises:
            MissingExtraError: A required package is not installed; the message names it.
            NotFoundError: The model is not on this machine.
            InvalidInputError: The model is unsuitable.
        """
        return self._encoder(settings).weights

    def _pair_model(self, preset: SmallPreset, settings: MatcherSettings) -> TorchPairs:
        name = settings.small_model or preset.model
        model = self._folders.get(
            (name, settings.allow_download),
            lambda: find_model(name, allow_download=settings.allow_download),
        )
        weights = self._small.get(
            # The weights are the same under another name, and for another format of the input.
            (model.sha256, preset.architecture, settings.device),
            lambda: _load_small(model, preset, settings, self._memory),
        )
        return self._pairs.get(
            # The probabilities are the same for other thresholds.
            (preset.name, str(model.path), model.sha256, settings.device),
            lambda: TorchPairs(preset, model, weights, settings.cached_vectors),
        )

    def _encoder(self, settings: MatcherSettings) -> _LoadedEncoder:
        return self._encoders.get(
            _encoder_key(settings), lambda: _load_encoder(settings, self._memory)
        )


def can_write(model: ModelFolder) -> bool:
    """Return whether an ONNX graph of the model can be written with the installed packages."""
    needed = ("onnxruntime", "onnx", "tokenizers", "safetensors")
    return (
        # The graph that is written has exact GELU and no relative positions but MPNet's.
        model.config.get("model_type") in WRITABLE
        and model.config.get("hidden_act", "gelu") == "gelu"
        and model.config.get("position_embedding_type", "absolute") == "absolute"
        and not changes_texts(model)
        and (model.path / "tokenizer.json").is_file()
        and all(importlib.util.find_spec(name) for name in needed)
    )


def open_encoder(model: ModelFolder, settings: MatcherSettings) -> Encoder:
    """Return the sentence encoder of a model, on onnxruntime if that supports it, else torch."""
    if settings.backend == "onnx" or (
        settings.backend == "auto" and settings.device == "cpu" and can_write(model)
    ):
        return OnnxEncoder(model, GraphCache(settings.cache_folder), settings.threads)
    return TorchEncoder(model, settings.device)


def _load_encoder(settings: MatcherSettings, memory: MemoryBudget | None) -> _LoadedEncoder:
    model = find_model(settings.model, allow_download=settings.allow_download)
    with _weights(model, memory) as charge:
        encoder = open_encoder(model, settings)
        return _LoadedEncoder(
            store=charge(VectorStore(encoder, settings.cached_vectors)),
            label=f"{model.label}/{encoder.label}",
            weights=model.sha256,
        )


def _load_small(
    model: ModelFolder, preset: SmallPreset, settings: MatcherSettings, memory: MemoryBudget | None
) -> TorchWeights:
    tokenizer = None
    if preset.tokenizer and not (model.path / "tokenizer.json").is_file():
        tokenizer = find_tokenizer(preset.tokenizer, allow_download=settings.allow_download)
    with _weights(model, memory) as charge:
        return charge(TorchWeights(model, preset.architecture, settings.device, tokenizer))


@contextmanager
def _weights(
    model: ModelFolder, memory: MemoryBudget | None
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
