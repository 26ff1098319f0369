"""Weights of small judges, loaded by transformers without any code of their folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InvalidInputError, MissingExtraError
from ..models import ModelFolder
from ..presets import Architecture
from ..quiet import quiet_loading

__all__ = ["TorchWeights"]

# Tokenizers without a limit have a very large number instead.
_NO_LIMIT = 100_000
_DEFAULT_TOKENS = 512
# Position ids of these models start after the padding id (1).
_SHIFTED = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
_HHEM_PREFIX = "t5."


class TorchWeights:
    """A loaded model with its tokenizer; small judges that read the same weights share it.

    Args:
        model: The model.
        architecture: How its weights are loaded.
        device: The device, such as ``cpu`` or ``cuda``.
        tokenizer: The folder of the tokenizer, if the model's folder has none.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        InvalidInputError: The model is not of this architecture.
    """

    def __init__(
        self,
        model: ModelFolder,
        architecture: Architecture,
        device: str = "cpu",
        tokenizer: Path | None = None,
    ) -> None:
        try:
            from transformers import AutoTokenizer, T5Tokenizer
        except ImportError as err:
            raise MissingExtraError.of("a small judge", "matcher") from err
        # The automatic choice reads config.json, where HHEM names a class of its own code.
        kind = T5Tokenizer if architecture == "hhem" else AutoTokenizer
        try:
            with quiet_loading():
                self._tokenizer = kind.from_pretrained(
                    str(tokenizer or model.path), local_files_only=True, trust_remote_code=False
                )
                self._model, self._run = _LOADERS[architecture](model)
                self._model.to(device).eval()
        except (OSError, ValueError, KeyError, RuntimeError, AssertionError) as err:
            # transformers lists every architecture that it knows after the first line.
            reason = (str(err).splitlines() or [type(err).__name__])[0].rstrip(".")
            if isinstance(err, KeyError):
                reason = f"its file has no {reason}"
            raise InvalidInputError(
                f"transformers cannot load the model {model.name} on {device}: {reason}; give "
                "the model that this judge is made for, with all its files",
                metadata={"model": model.name},
            ) from err
        self._config = model.config
        self._device = device
        self.backend = "torch-fp32" + ("" if device == "cpu" else f"-{device}")
        self.classes = self._count(architecture)

    def _count(self, architecture: Architecture) -> int:
        config = self._model.config
        return int(config.vocab_size if architecture == "seq2seq" else config.num_labels)

    @property
    def eos(self) -> str:
        """The token that ends a text, which MiniCheck puts between premise and claim."""
        return str(self._tokenizer.eos_token or self._tokenizer.sep_token or "")

    @property
    def special_tokens(self) -> set[str]:
        """Texts that the tokenizer reads as one special token."""
        return {token for token in self._tokenizer.all_special_tokens if token} | {
            str(token) for token in self._tokenizer.added_tokens_decoder.values() if str(token)
        }

    def limit(self, wanted: int) -> int:
        """Return the maximum number of tokens of an input.

        Args:
            wanted: That of the authors' code; 0: what the model's files say.
        """
        positions = self._positions()
        if wanted:
            return min(wanted, positions or wanted)
        limit = int(self._tokenizer.model_max_length)
        positions = positions or _DEFAULT_TOKENS
        return min(limit, positions) if limit < _NO_LIMIT else positions

    def _positions(self) -> int:
        """Return the number of position embeddings; 0: positions are relative."""
        config = self._config
        kind = config.get("model_type")
        if kind == "deberta-v2" and not config.get("position_biased_input", True):
            return 0
        if "max_position_embeddings" not in config:
            return 0
        return max(0, int(config["max_position_embeddings"]) - 2 * (kind in _SHIFTED))

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens."""
        found = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [len(ids) for ids in found["input_ids"]]

    def tokens(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> dict[str, list[list[int]]]:
        """Return the model's inputs, one row for each text or pair, without padding."""
        return dict(self._tokenizer(list(texts), list(pairs) if pairs else None, verbose=False))

    def logits(self, rows: Mapping[str, list[list[int]]]) -> Any:
        """Return the logits of inputs of equal length, one row for each."""
        import torch

        feed = {name: torch.tensor(values, device=self._device) for name, values in rows.items()}
        with torch.inference_mode():
            return self._run(feed).float()


_Run = Callable[[Mapping[str, Any]], Any]


def _complete(kind: Any, model: ModelFolder) -> Any:
    """Return a model whose every tensor is in its file; transformers draws missing ones at random.

    Raises:
        ValueError: A tensor is missing.
    """
    loaded, found = kind.from_pretrained(
        str(model.path),
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
    )
    if missing := sorted(found["missing_keys"]):
        raise ValueError(f"its file has no tensor {missing[0]}")
    return loaded


def _classifier(model: ModelFolder) -> tuple[Any, _Run]:
    from transformers import AutoModelForSequenceClassification

    loaded = _complete(AutoModelForSequenceClassification, model)
    return loaded, lambda feed: loaded(**feed).logits


def _seq2seq(model: ModelFolder) -> tuple[Any, _Run]:
    from transformers import AutoModelForSeq2SeqLM

    loaded = _complete(AutoModelForSeq2SeqLM, model)

    def run(feed: Mapping[str, Any]) -> Any:
        # T5's decoder begins with the padding token, whose id is 0.
        begin = feed["input_ids"].new_zeros((len(feed["input_ids"]), 1))
        return loaded(**feed, decoder_input_ids=begin).logits[:, 0]

    return loaded, run


def _hhem(model: ModelFolder) -> tuple[Any, _Run]:
    """Return HHEM's T5 token classifier, whose folder names code of its own instead of a shape."""
    from safetensors.torch import load_file
    from transformers import T5ForTokenClassification

    tensors = {
        name.removeprefix(_HHEM_PREFIX): tensor for name, tensor in load_file(model.weights).items()
    }
    loaded = T5ForTokenClassification(_t5_config({n: t.shape for n, t in tensors.items()}))
    # The embeddings are tied: the file has them once or twice, under these names.
    shared = tensors["transformer.shared.weight"]
    tensors["transformer.encoder.embed_tokens.weight"] = shared
    loaded.load_state_dict(tensors)
    return loaded, lambda feed: loaded(**feed).logits[:, 0]


def _t5_config(shapes: Mapping[str, Sequence[int]]) -> Any:
    """Return the configuration of a T5 encoder, read from the shapes of its weights."""
    from transformers import T5Config

    block = "transformer.encoder.block"
    words, size = shapes["transformer.shared.weight"]
    buckets, heads = shapes[f"{block}.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    inner = shapes[f"{block}.0.layer.0.SelfAttention.q.weight"][0]
    return T5Config(
        vocab_size=words,
        d_model=size,
        d_kv=inner // heads,
        d_ff=shapes[f"{block}.0.layer.1.DenseReluDense.wi_0.weight"][0],
        num_layers=sum(name.endswith("SelfAttention.q.weight") for name in shapes),
        num_heads=heads,
        relative_attention_num_buckets=buckets,
        feed_forward_proj="gated-gelu",
        num_labels=shapes["classifier.weight"][0],
        use_cache=False,
    )


_LOADERS: Mapping[Architecture, Callable[[ModelFolder], tuple[Any, _Run]]] = {
    "classifier": _classifier,
    "seq2seq": _seq2seq,
    "hhem": _hhem,
}
