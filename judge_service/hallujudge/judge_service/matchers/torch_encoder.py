"""Sentence encoders on sentence-transformers and torch, the reference implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidInputError, MissingExtraError
from .models import ModelFolder, encoder_shape
from .quiet import quiet_loading
from .texts import plain
from .vectors import encode_by_length

if TYPE_CHECKING:
    from .values import Vectors

__all__ = ["TorchEncoder"]


class TorchEncoder:
    """A sentence encoder as its authors run it.

    Texts are encoded in batches of equal length. On a CPU this makes a vector independent of its
    batch, except for the last bits, which the rounding of scores removes.

    Args:
        model: The model.
        device: The device, such as ``cpu`` or ``cuda``.

    Raises:
        MissingExtraError: torch or sentence-transformers is not installed.
        InvalidInputError: The model is not a sentence encoder, or the device does not exist.
    """

    def __init__(self, model: ModelFolder, device: str = "cpu") -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as err:
            raise MissingExtraError.of("the torch backend", "matcher") from err
        shape = encoder_shape(model)
        try:
            with quiet_loading():
                self._model = SentenceTransformer(
                    str(model.path),
                    device=device,
                    local_files_only=True,
                    trust_remote_code=False,
                    model_kwargs={"use_safetensors": True},
                )
        except (OSError, ValueError, RuntimeError, AssertionError) as err:
            raise InvalidInputError(
                f"sentence-transformers cannot load the model {model.name} on {device}: {err}",
                metadata={"model": model.name},
            ) from err
        self._model.max_seq_length = shape.max_tokens
        self._device = device
        self.size = int(model.config["hidden_size"])

    @property
    def label(self) -> str:
        """The backend, the precision, and the device unless it is the CPU."""
        return "torch-fp32" if self._device == "cpu" else f"torch-fp32-{self._device}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text; texts above the model's limit are truncated."""
        import numpy as np

        readable = [plain(text) for text in texts]

        def run(batch: list[int]) -> Vectors:
            rows = self._model.encode(
                [readable[position] for position in batch],
                batch_size=len(batch),
                show_progress_bar=False,
                normalize_embeddings=True,
                convert_to_numpy=True,
            )
            return np.asarray(rows, dtype=np.float32)

        return encode_by_length(self._lengths(readable), self.size, run)

    def _lengths(self, texts: list[str]) -> list[int]:
        if not texts:
            return []
        found = self._model.tokenizer(
            texts, truncation=True, max_length=self._model.max_seq_length, padding=False
        )
        return [len(ids) for ids in found["input_ids"]]
