"""Sentence encoders on onnxruntime, which starts faster than torch and returns equal vectors."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from ..errors import InternalError, InvalidInputError, MissingExtraError
from .matcher_interface import plain
from .model_folders import MINILM_SHA256, EncoderShape, ModelFolder, changes_texts, encoder_shape
from .onnx_graphs import GRAPH_VERSION, WRITABLE, GraphCache, write_graph
from .torch_models import TorchEncoder
from .vectors import encode_by_length

if TYPE_CHECKING:
    from .matcher_interface import Vectors


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
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as err:
            raise MissingExtraError.of("the onnx backend", "matcher-onnx") from err
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
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.log_severity_level = 3  # errors only
        self.size = int(model.config["hidden_size"])
        self._start(cache.graph(_key(model, shape), lambda: self._write(model, shape)))
        if model.sha256 == GOLDEN_SHA256:
            self._check(GOLDEN_VECTORS)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text; texts above the model's limit are truncated."""
        import numpy as np

        tokens = [found.ids for found in self._tokenizer.encode_batch([plain(t) for t in texts])]

        def run(batch: list[int]) -> Vectors:
            ids = np.array([tokens[position] for position in batch], dtype=np.int32)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            rows: Vectors = self._session.run(["vectors"], feed)[0]
            return rows

        return encode_by_length([len(ids) for ids in tokens], self.size, run)

    def _start(self, graph: bytes) -> None:
        from onnxruntime import InferenceSession

        self._session = InferenceSession(graph, self._options, providers=["CPUExecutionProvider"])

    def _write(self, model: ModelFolder, shape: EncoderShape) -> bytes:
        graph = _written(model, shape)
        self._start(graph)
        if model.sha256 != GOLDEN_SHA256 and importlib.util.find_spec("sentence_transformers"):
            # Without golden vectors, the torch encoder computes the expected ones, once per graph.
            self._check(TorchEncoder(model).encode(GOLDEN_TEXTS))
        return graph

    def _check(self, expected: Sequence[Sequence[float]] | Vectors) -> None:
        import numpy as np

        reference = np.asarray(expected, dtype=np.float32)
        vectors = self.encode(GOLDEN_TEXTS)[:, : reference.shape[1]]
        difference = float(np.abs(vectors - reference).max())
        # Negated, so that a difference of NaN is an error too.
        if not difference < _GOLDEN_TOLERANCE:
            raise InternalError(
                f"vectors of onnxruntime differ by {difference:g} from the reference; "
                "use the torch backend and report the version of onnxruntime"
            )


def can_write(model: ModelFolder) -> bool:
    """Return whether an ONNX graph of the model can be written with the installed packages."""
    needed = ("onnxruntime", "onnx", "tokenizers", "safetensors")
    return (
        model.config.get("model_type") in WRITABLE
        and model.config.get("hidden_act", "gelu") == "gelu"
        and model.config.get("position_embedding_type", "absolute") == "absolute"
        and not changes_texts(model)
        and (model.path / "tokenizer.json").is_file()
        and all(importlib.util.find_spec(name) for name in needed)
    )


def _key(model: ModelFolder, shape: EncoderShape) -> str:
    """Return the cache key: a hash of the weights, the shape and the version of the graph."""
    text = repr((model.sha256, astuple(shape), GRAPH_VERSION))
    return hashlib.sha256(text.encode()).hexdigest()


def _written(model: ModelFolder, shape: EncoderShape) -> bytes:
    try:
        import onnx  # noqa: F401
        from safetensors.numpy import load_file
    except ImportError as err:
        raise MissingExtraError.of("the onnx backend", "matcher-onnx") from err
    return write_graph(shape, load_file(model.weights))


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
