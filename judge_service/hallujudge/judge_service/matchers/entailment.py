"""Entailment cross-encoders on transformers and torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidInputError, MissingExtraError
from .models import ModelFolder
from .quiet import quiet_loading
from .texts import plain
from .vectors import length_batches

__all__ = ["TorchEntailment", "entailment_index"]

# Tokenizers without a limit have a very large number instead.
_NO_LIMIT = 100_000
_DEFAULT_TOKENS = 512


def entailment_index(config: Mapping[str, Any], model: str) -> int:
    """Return the index of the entailment label, by the label names in the configuration.

    The order of labels differs between models, and a wrong guess would invert verdicts. A model
    without clear label names is therefore refused.

    Args:
        config: The model's config.json.
        model: The model's name, for the error.

    Raises:
        InvalidInputError: No label is called entailment, or several are.
    """
    labels = config.get("id2label")
    named = dict(labels) if isinstance(labels, Mapping) else {}
    found = [index for index, label in named.items() if _is_entailment(str(label))]
    if len(found) != 1 or len(named) < 2:
        shown = ", ".join(str(label) for label in list(named.values())[:8]) or "none"
        raise InvalidInputError(
            f"the model {model} has the labels {shown}; give a model with exactly one label that "
            "is called entailment in id2label of its config.json",
            metadata={"model": model},
        )
    return int(found[0])


def _is_entailment(label: str) -> bool:
    # startswith, because two-way models also have a label "not_entailment".
    words = label.casefold().replace("-", "_").replace(" ", "_")
    return words.startswith("entail")


class TorchEntailment:
    """A cross-encoder with two or three classes, one of them entailment.

    Args:
        model: The model.
        device: The device, such as ``cpu`` or ``cuda``.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        InvalidInputError: The model is not such a classifier.
    """

    def __init__(self, model: ModelFolder, device: str = "cpu") -> None:
        try:
            from transformers import AutoModelForSequenceClassification, AutoTokenizer
        except ImportError as err:
            raise MissingExtraError.of("protocol nli", "matcher") from err
        self._entailed = entailment_index(model.config, model.name)
        try:
            with quiet_loading():
                self._tokenizer = AutoTokenizer.from_pretrained(
                    str(model.path), local_files_only=True, trust_remote_code=False
                )
                self._model = AutoModelForSequenceClassification.from_pretrained(
                    str(model.path),
                    local_files_only=True,
                    trust_remote_code=False,
                    use_safetensors=True,
                ).to(device)
        except (OSError, ValueError, KeyError, RuntimeError, AssertionError) as err:
            raise InvalidInputError(
                f"transformers cannot load the model {model.name} on {device}: {err}",
                metadata={"model": model.name},
            ) from err
        self._model.eval()
        self._device = device
        self.label = f"{model.label}/torch-fp32" + ("" if device == "cpu" else f"-{device}")
        self.room = self._limit(model) - self._tokenizer.num_special_tokens_to_add(pair=True)

    def _limit(self, model: ModelFolder) -> int:
        config = model.config
        positions = int(config.get("max_position_embeddings", _DEFAULT_TOKENS))
        if config.get("model_type") in {"roberta", "xlm-roberta", "camembert", "mpnet"}:
            # The position ids of these models start after the padding id (1).
            positions -= 2
        if positions <= 0:
            positions = _DEFAULT_TOKENS
        limit = int(self._tokenizer.model_max_length)
        return min(limit, positions) if limit < _NO_LIMIT else positions

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens."""
        if not texts:
            return []
        found = self._tokenizer(
            [plain(text) for text in texts], add_special_tokens=False, verbose=False
        )
        return [len(ids) for ids in found["input_ids"]]

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each premise entails its hypothesis."""
        import torch

        if not pairs:
            return []
        tokens = self._tokenizer(
            [plain(premise) for premise, _ in pairs],
            [plain(text) for _, text in pairs],
            verbose=False,
        )
        out = [0.0] * len(pairs)
        for batch in length_batches([len(ids) for ids in tokens["input_ids"]]):
            feed = {
                name: torch.tensor([rows[position] for position in batch], device=self._device)
                for name, rows in tokens.items()
            }
            with torch.inference_mode():
                chances = self._model(**feed).logits.float().softmax(dim=-1)[:, self._entailed]
            for position, chance in zip(batch, chances.tolist(), strict=True):
                out[position] = chance
        return out
