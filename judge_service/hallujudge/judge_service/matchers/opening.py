"""Settings -> a matcher, with its models loaded."""

from __future__ import annotations

from .cosine import CosineMatcher
from .models import ModelFolder, find_model
from .onnx.cache import GraphCache
from .values import ClaimMatcher, Encoder, MatcherSettings
from .vectors import VectorStore

__all__ = ["open_encoder", "open_matcher"]


def open_matcher(settings: MatcherSettings | None = None) -> ClaimMatcher:
    """The matcher of some settings. It loads its models, which may take a few seconds.

    Args:
        settings: How claims are compared. None: protocol ``published`` with MiniLM.

    Raises:
        MissingExtraError: A package that it needs is not installed; the message says which.
        NotFoundError: A model is not on this machine.
        InvalidInputError: A model can't be used, or the cache folder is open to others.
    """
    settings = settings or MatcherSettings()
    model = find_model(settings.model, allow_download=settings.allow_download)
    encoder = open_encoder(model, settings)
    store = VectorStore(encoder, settings.cached_vectors)
    label = f"{model.label}/{encoder.label}"
    if settings.protocol == "published":
        return CosineMatcher(settings, store, label)
    from .entailment import TorchEntailment
    from .nli import NliMatcher

    judge = find_model(settings.nli_model, allow_download=settings.allow_download)
    return NliMatcher(settings, store, label, TorchEntailment(judge, settings.device))


def open_encoder(model: ModelFolder, settings: MatcherSettings) -> Encoder:
    """The sentence encoder of a model: onnxruntime where it can run it, unless told otherwise."""
    from .onnx.encoder import OnnxEncoder, can_write

    if settings.backend == "onnx" or (
        settings.backend == "auto" and settings.device == "cpu" and can_write(model)
    ):
        return OnnxEncoder(model, GraphCache(settings.cache_folder), settings.threads)
    from .torch_encoder import TorchEncoder

    return TorchEncoder(model, settings.device)
