"""Sentence encoders as ONNX graphs, written from their weights without torch.

A BERT encoder has few operators, and onnxruntime has fused versions of the expensive ones
(``com.microsoft`` Attention, SkipLayerNormalization, BiasGelu). Writing the graph needs only the
``onnx`` package and the weights; tracing the model would need torch, transformers and a gigabyte
of disk. The graph includes pooling and normalisation, so it returns unit vectors.

Importing this module needs ``onnx`` and ``safetensors``; :mod:`.matcher_models` imports it when a
graph is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

from ..errors import InvalidInputError
from .model_folders import EncoderShape

Weights: TypeAlias = Mapping[str, NDArray[np.float32]]

_CONTRIB = "com.microsoft"
# The last version whose ReduceL2 takes its axes as an attribute.
_OPSET = 17


def write_graph(shape: EncoderShape, weights: Path) -> bytes:
    """Return a serialised ONNX model: ``input_ids``, ``attention_mask`` -> ``vectors``.

    Args:
        shape: The encoder's shape.
        weights: The safetensors file of its weights.

    Raises:
        InvalidInputError: A tensor is missing.
    """
    return _Writer(shape, load_file(weights)).model()


class _Writer:
    """Collects the nodes and tensors of a graph."""

    def __init__(self, shape: EncoderShape, weights: Weights) -> None:
        self._shape = shape
        # Files name tensors with or without the architecture before them.
        prefixes = ("", f"{shape.architecture}.")
        self._weights = {
            name[len(prefix) :]: tensor
            for prefix in prefixes
            for name, tensor in weights.items()
            if name.startswith(prefix)
        }
        self._nodes: list[Any] = []
        self._tensors: dict[str, Any] = {}

    def model(self) -> bytes:
        hidden = self._embeddings()
        bias = self._distance_bias() if self._shape.architecture == "mpnet" else ""
        for layer in range(self._shape.layers):
            hidden = self._layer(layer, hidden, bias)
        self._pooled(hidden)
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [
                helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", "size"])],
            list(self._tensors.values()),
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return bytes(model.SerializeToString())

    def _weight(self, name: str) -> NDArray[np.float32]:
        if name not in self._weights:
            raise InvalidInputError(
                f"the weights have no tensor {name!r}, which a {self._shape.architecture} encoder "
                "needs; use the torch backend, or another copy of the model"
            )
        return np.ascontiguousarray(self._weights[name], dtype=np.float32)

    def _constant(self, name: str, array: NDArray[Any]) -> str:
        if name not in self._tensors:
            self._tensors[name] = numpy_helper.from_array(array, name)
        return name

    def _integers(self, *values: int) -> str:
        name = "ints_" + "_".join(str(value) for value in values)
        return self._constant(name, np.array(values, dtype=np.int64))

    def _node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        domain = attributes.pop("domain", "")
        names = [f"{operator}_{len(self._nodes)}_{index}" for index in range(outputs)]
        self._nodes.append(
            helper.make_node(operator, list(inputs), names, domain=domain, **attributes)
        )
        return names

    def _op(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self._node(operator, *inputs, **attributes)[0]

    def _embeddings(self) -> str:
        table = self._constant("words", self._weight("embeddings.word_embeddings.weight"))
        words = self._op("Gather", table, "input_ids")
        positions = self._weight("embeddings.position_embeddings.weight")
        if self._shape.architecture == "mpnet":
            # MPNet's position ids start after the padding id (1), and the input has no padding.
            positions = positions[2:]
        else:
            # All tokens belong to the first segment, so that its row can be added to the weights.
            positions = positions + self._weight("embeddings.token_type_embeddings.weight")[:1]
        tokens = self._op("Gather", self._op("Shape", "input_ids"), self._integers(1))
        rows = self._op(
            "Slice",
            self._constant("positions", np.ascontiguousarray(positions)),
            self._integers(0),
            tokens,
            self._integers(0),
        )
        return self._op(
            "LayerNormalization",
            self._op("Add", words, rows),
            self._constant("embed_scale", self._weight("embeddings.LayerNorm.weight")),
            self._constant("embed_shift", self._weight("embeddings.LayerNorm.bias")),
            epsilon=self._shape.epsilon,
            axis=-1,
        )

    def _layer(self, layer: int, hidden: str, bias: str) -> str:
        at = f"encoder.layer.{layer}."
        mpnet = self._shape.architecture == "mpnet"
        attended = self._attention(at, hidden, bias)
        out = f"{at}attention.{'attn.o' if mpnet else 'output.dense'}"
        norm = f"{at}attention.{'LayerNorm' if mpnet else 'output.LayerNorm'}"
        hidden = self._add_and_norm(self._linear(out, attended), hidden, out, norm)
        inner = f"{at}intermediate.dense"
        grown = self._op(
            "BiasGelu",
            self._linear(inner, hidden),
            self._constant(f"{inner}.bias", self._weight(f"{inner}.bias")),
            domain=_CONTRIB,
        )
        out = f"{at}output.dense"
        return self._add_and_norm(self._linear(out, grown), hidden, out, f"{at}output.LayerNorm")

    def _linear(self, name: str, hidden: str) -> str:
        # torch keeps a layer's matrix with its outputs first, and MatMul needs them last.
        matrix = np.ascontiguousarray(self._weight(f"{name}.weight").T)
        return self._op("MatMul", hidden, self._constant(f"{name}.weight", matrix))

    def _attention(self, at: str, hidden: str, bias: str) -> str:
        names = (
            [f"{at}attention.attn.{part}" for part in "qkv"]
            if self._shape.architecture == "mpnet"
            else [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
        )
        # The fused operator takes queries, keys and values as one matrix.
        weights = np.concatenate([self._weight(f"{name}.weight").T for name in names], axis=1)
        biases = np.concatenate([self._weight(f"{name}.bias") for name in names])
        inputs = [
            hidden,
            self._constant(f"{at}qkv.weight", np.ascontiguousarray(weights)),
            self._constant(f"{at}qkv.bias", biases),
            "attention_mask",
        ]
        if bias:
            # The empty name leaves out the optional input before the bias, that of earlier keys.
            inputs += ["", bias]
        return self._op("Attention", *inputs, num_heads=self._shape.heads, domain=_CONTRIB)

    def _add_and_norm(self, hidden: str, skip: str, linear: str, norm: str) -> str:
        return self._op(
            "SkipLayerNormalization",
            hidden,
            skip,
            self._constant(f"{norm}.weight", self._weight(f"{norm}.weight")),
            self._constant(f"{norm}.bias", self._weight(f"{norm}.bias")),
            self._constant(f"{linear}.bias", self._weight(f"{linear}.bias")),
            epsilon=self._shape.epsilon,
            domain=_CONTRIB,
        )

    def _distance_bias(self) -> str:
        """Return MPNet's learned attention bias for each head and bucket of distance."""
        buckets = _distance_buckets(self._shape.max_tokens, self._shape.buckets)
        values = self._weight("encoder.relative_attention_bias.weight")[buckets]
        table = np.ascontiguousarray(values.transpose(2, 0, 1)[None])
        tokens = self._op("Gather", self._op("Shape", "input_ids"), self._integers(1))
        ends = self._op("Concat", tokens, tokens, axis=0)
        bias = self._op(
            "Slice",
            self._constant("distances", table),
            self._integers(0, 0),
            ends,
            self._integers(2, 3),
        )
        batch = self._op("Gather", self._op("Shape", "input_ids"), self._integers(0))
        tiles = self._op("Concat", batch, self._integers(1, 1, 1), axis=0)
        return self._op("Expand", bias, tiles)

    def _pooled(self, hidden: str) -> None:
        if self._shape.pooling == "cls":
            pooled = self._op("Gather", hidden, self._integers(0), axis=1)
            pooled = self._op("Squeeze", pooled, self._integers(1))
        else:
            mask = self._op("Cast", "attention_mask", to=TensorProto.FLOAT)
            rows = self._op("Unsqueeze", mask, self._integers(1))
            # The sum over tokens replaces their mean, because the vector is normalised afterwards.
            pooled = self._op("Squeeze", self._op("MatMul", rows, hidden), self._integers(1))
        norm = self._op("ReduceL2", pooled, axes=[1], keepdims=1)
        self._nodes.append(self._final("Div", pooled, norm))

    def _final(self, operator: str, *inputs: str) -> Any:
        return helper.make_node(operator, list(inputs), ["vectors"])


def _distance_buckets(tokens: int, buckets: int, farthest: int = 128) -> NDArray[np.int64]:
    """Return the bucket of the distance between every two positions, as in MPNet and T5.

    Half of the buckets are for keys before the query, half for keys after it. In each half, the
    first half of the buckets have one distance each. The width of the others grows with the
    logarithm of the distance.
    """
    distance = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]
    half = buckets // 2
    exact = half // 2
    away = np.abs(distance)
    # Single precision, as in the reference implementation, because rounding can change the bucket.
    scale = np.float32(math.log(farthest / exact))
    grown = np.log(np.maximum(away, 1).astype(np.float32) / exact) / scale * (half - exact)
    far = np.minimum(exact + grown.astype(np.int64), half - 1)
    numbers: NDArray[np.int64] = np.where(distance > 0, half, 0) + np.where(away < exact, away, far)
    return numbers
