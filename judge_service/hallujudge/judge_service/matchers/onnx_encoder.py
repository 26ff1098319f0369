"""Sentence encoders on onnxruntime, which start faster than on torch and return equal vectors.

Their graphs are written once and cached in a private folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import astuple

from ..errors import InternalError, InvalidInputError, MissingExtraError
from . import Vectors, plain
from .model_folders import MINILM_SHA256, EncoderShape, ModelFolder, changes_texts, encoder_shape
from .torch_models import TorchEncoder, encode_by_length

GRAPH_VERSION = 1
"""Part of the cache key; increased when graphs change, so that older ones are written again."""
WRITABLE = ("bert", "mpnet")
"""The architectures of which graphs can be written; others run on torch."""
# A record is a hash and a size; a larger file was not written here.
_MAX_RECORD_BYTES = 1 << 16
# Two to three orders above single precision rounding, and far below any other defect.
_GOLDEN_TOLERANCE = 1e-4


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
        if model.sha256 == GOLDEN_SHA256:
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
        if model.sha256 != GOLDEN_SHA256 and importlib.util.find_spec("sentence_transformers"):
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


GOLDEN_SHA256 = MINILM_SHA256
"""The hash of the weights that computed the vectors."""
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
"""The first 24 numbers of their vectors, from sentence-transformers 6.2.0 and torch 2.13.0."""


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
            with contextlib.suppress(OSError):
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
