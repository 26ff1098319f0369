"""Building of matchers from settings; matchers share loaded models.

Sentence encoders run on onnxruntime where it supports them: they start faster there than on torch,
and return equal vectors. Their graphs are written once and cached in a private folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from ..errors import InternalError, InvalidInputError, MissingExtraError
from ..tenancy import MemoryBudget
from ..threads import SharedLoads
from . import (
    ClaimMatcher,
    Encoder,
    MatcherSettings,
    SmallPreset,
    TextComparer,
    Vectors,
    VectorStore,
    plain,
    preset_of,
)
from .cosine_matcher import CosineMatcher
from .model_folders import (
    MINILM_SHA256,
    EncoderShape,
    ModelFolder,
    changes_texts,
    encoder_shape,
    find_model,
    find_tokenizer,
)
from .small_matcher import SmallMatcher
from .torch_models import TorchEncoder, TorchPairs, TorchWeights, encode_by_length

GRAPH_VERSION = 1
"""Part of the cache key; increased when graphs change, so that older ones are written again."""
WRITABLE = ("bert", "mpnet")
"""The architectures of which graphs can be written; others run on torch."""
# A record is a hash and a size; a larger file was not written here.
_MAX_RECORD_BYTES = 1 << 16
# Two to three orders above single precision rounding, and far below any other defect.
_GOLDEN_TOLERANCE = 1e-4
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


class OnnxEncoder:
    """A sentence encoder as an ONNX graph, which is written once and cached.

    Args:
        model: The model.
        cache: The cache of written graphs.
        threads: The threads of onnxruntime; 0 for its default.

    Raises:
        MissingExtraError: onnxruntime, onnx, tokenizers or safetensors is not installed.
        InvalidInputError: No graph can be written for the model's architecture.
    """

    label = "onnx-fp32"

    def __init__(self, model: ModelFolder, cache: GraphCache, threads: int = 0) -> None:
        # onnxruntime 1.31 reports its use to Microsoft unless this is set before it is imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        with MissingExtraError.unless_installed("the onnx backend", "matcher-onnx"):
            import onnxruntime
            from tokenizers import Tokenizer
        shape = encoder_shape(model)
        path = model.path / "tokenizer.json"
        if not path.is_file() or changes_texts(model):
            raise InvalidInputError(
                f"the model {model.name} has no tokenizer.json, or changes texts before it reads "
                "them; use the torch backend",
                metadata={"model": model.name},
            )
        self._tokenizer = Tokenizer.from_file(str(path))
        # Some files set padding to a fixed length and a truncation that the encoder does not apply.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(shape.max_tokens)
        self._open_session = onnxruntime.InferenceSession
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.log_severity_level = 3  # errors only
        self.size = int(model.config["hidden_size"])
        self._start(cache.graph(_key(model, shape), lambda: self._write(model, shape)))
        if model.sha256 == MINILM_SHA256:
            self._check(GOLDEN_VECTORS)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text; texts above the model's limit are truncated."""
        tokens = [found.ids for found in self._tokenizer.encode_batch([plain(t) for t in texts])]

        def run(batch: list[int]) -> Vectors:
            ids = np.array([tokens[position] for position in batch], dtype=np.int32)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            rows: Vectors = self._session.run(["vectors"], feed)[0]
            return rows

        return encode_by_length([len(ids) for ids in tokens], self.size, run)

    def _start(self, graph: bytes) -> None:
        self._session = self._open_session(graph, self._options, providers=["CPUExecutionProvider"])

    def _write(self, model: ModelFolder, shape: EncoderShape) -> bytes:
        graph = graph_of(shape, model.weights)
        self._start(graph)
        if model.sha256 != MINILM_SHA256 and importlib.util.find_spec("sentence_transformers"):
            # Without golden vectors, the torch encoder computes the expected ones, once per graph.
            self._check(TorchEncoder(model).encode(GOLDEN_TEXTS))
        return graph

    def _check(self, expected: Sequence[Sequence[float]] | Vectors) -> None:
        reference = np.asarray(expected, dtype=np.float32)
        vectors = self.encode(GOLDEN_TEXTS)[:, : reference.shape[1]]
        difference = float(np.abs(vectors - reference).max())
        # Negated, so that a difference of NaN is an error too.
        if not difference < _GOLDEN_TOLERANCE:
            raise InternalError(
                f"vectors of onnxruntime differ by {difference:g} from the reference; "
                "use the torch backend and report the version of onnxruntime"
            )


def _key(model: ModelFolder, shape: EncoderShape) -> str:
    """Return the cache key: a hash of the weights, the shape and the version of the graph."""
    text = repr((model.sha256, astuple(shape), GRAPH_VERSION))
    return hashlib.sha256(text.encode()).hexdigest()


def graph_of(shape: EncoderShape, weights: Path) -> bytes:
    """Return an encoder's ONNX graph, written from its file of weights.

    Raises:
        MissingExtraError: onnx or safetensors is not installed.
        InvalidInputError: A tensor is missing, or the architecture is not supported.
    """
    if shape.architecture not in WRITABLE:
        raise InvalidInputError(
            f"no ONNX graph can be written for a model of type {shape.architecture!r}, only for "
            f"{' and '.join(WRITABLE)}; use the torch backend"
        )
    with MissingExtraError.unless_installed("the onnx backend", "matcher-onnx"):
        from .onnx_graphs import write_graph
    return write_graph(shape, weights)


GOLDEN_TEXTS = (
    "man riding horse.",
    "A quick check of the sentence encoder: seven lamps, two dogs and 1,000 birds near a café.",
)
"""Two texts of different lengths."""
GOLDEN_VECTORS = tuple(
    tuple(map(float, numbers.split()))
    for numbers in (
        "0.010917 0.016325 0.024598 0.023854 -0.104885 -0.002353 0.126211 0.045308 "
        "0.006087 -0.028705 -0.007814 0.040424 0.017643 0.025372 -0.058065 0.036049 "
        "-0.042138 0.095343 0.034876 -0.028703 -0.000332 0.043763 -0.127579 0.034543",
        "0.047853 -0.005915 0.002665 0.022807 -0.027116 0.053748 -0.000392 -0.081770 "
        "0.009042 0.010813 0.064246 -0.057602 0.035082 0.005380 -0.016113 0.057125 "
        "-0.067900 -0.025920 0.011865 -0.078912 0.055704 0.032387 0.029370 0.041004",
    )
)
"""The first 24 numbers of minilm's vectors, from sentence-transformers 6.2.0 and torch 2.13.0."""


class GraphCache:
    """Cached graphs by key, in files that only this user may write.

    A graph is a program that determines every verdict. The folder must therefore belong to the user
    alone, and a file whose hash differs from the recorded one is written again.

    Args:
        folder: By default ``.cache/hallujudge/onnx`` in the user's home, or no folder if the
            user has no home.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _folder_of_user()

    def graph(self, key: str, write: Callable[[], bytes]) -> bytes:
        """Return the graph of a key, and write it first if it is absent or damaged.

        Without a folder, or if it is not writable, the graph stays in memory and the next run
        builds it again.

        Args:
            key: A hash of everything that determines the graph.
            write: Builds the graph.

        Raises:
            InvalidInputError: Another user owns the folder or a file in it, or may write to it.
        """
        folder = self._folder
        if folder is None or not _open_folder(folder):
            return write()
        graph = _read_intact(folder, key)
        if graph is None:
            graph = write()
            # On a full or read-only disk the next start takes a second longer.
            with suppress(OSError):
                _write_atomically(folder, f"{key}.onnx", graph)
                record = {"sha256": hashlib.sha256(graph).hexdigest(), "bytes": len(graph)}
                _write_atomically(folder, f"{key}.json", json.dumps(record).encode())
        return graph


def _folder_of_user() -> Path | None:
    try:
        return Path.home() / ".cache" / "hallujudge" / "onnx"
    except RuntimeError:
        # The user of a service or of a container may have neither HOME nor an entry in passwd.
        return None


def _open_folder(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as err:
        raise InvalidInputError(
            f"the cache folder {folder} is a file; give another folder"
        ) from err
    except OSError:
        return False
    _check_private(folder)
    return True


def _read_intact(folder: Path, key: str) -> bytes | None:
    graph, record = folder / f"{key}.onnx", folder / f"{key}.json"
    try:
        for path in (graph, record):
            _check_private(path)
        if record.stat().st_size > _MAX_RECORD_BYTES:
            return None
        recorded = json.loads(record.read_text(encoding="utf-8"))
        content = graph.read_bytes()
    except (OSError, ValueError, RecursionError):
        return None
    digest = hashlib.sha256(content).hexdigest()
    intact = isinstance(recorded, dict) and recorded.get("sha256") == digest
    return content if intact else None


def _write_atomically(folder: Path, name: str, content: bytes) -> None:
    """Write a file atomically, so that no other process reads a part of it."""
    handle, path = tempfile.mkstemp(dir=folder, prefix=f".{name[:16]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(path).replace(folder / name)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise


def _check_private(path: Path) -> None:
    if not hasattr(os, "getuid"):
        return
    # Not of what a link leads to, which may be replaced after the look.
    status = path.lstat()
    foreign = status.st_uid != os.getuid()
    # 0o022: the write permissions of the group and of other users.
    if foreign or stat.S_ISLNK(status.st_mode) or status.st_mode & 0o022:
        raise InvalidInputError(
            f"{path} is a link, belongs to another user or is writable by others; "
            "give a cache folder that you own, with mode 0700"
        )
