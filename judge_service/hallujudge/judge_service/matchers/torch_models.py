"""Sentence encoders and pair classifiers on torch, which is imported when a model is loaded."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import InvalidInputError, MissingExtraError, OverloadedError
from . import Architecture, KeptValues, SmallPreset, Vectors, length_batches, plain
from .model_folders import ModelFolder, encoder_shape

_Found = TypeVar("_Found")
# Tokenizers without a limit have a very large number instead.
_NO_LIMIT = 100_000
# Where the files state neither positions nor a limit: that of BERT.
_DEFAULT_TOKENS = 512
# Position ids of these models start after the padding id (1).
_SHIFTED = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
_HHEM_PREFIX = "t5."
# What labels say. transformers 5 would otherwise take the precision in which weights are stored.
_PRECISION = "float32"
# The words "0" and "1" of Flan-T5's vocabulary (Liyan06/MiniCheck, minicheck/inference.py).
_NO, _YES = 3, 209


def encode_by_length(
    lengths: Sequence[int], size: int, encode: Callable[[list[int]], Vectors]
) -> Vectors:
    """Return one row for each position, from an encoder of batches of equal length."""
    rows = np.empty((len(lengths), size), dtype=np.float32)
    for batch in length_batches(lengths):
        rows[batch] = encode(batch)
    return rows


class TorchEncoder:
    """A sentence encoder as its authors run it.

    Texts are encoded in batches of equal length. On a CPU this makes a vector independent of its
    batch, except for the last bits, which the rounding of scores removes. Weights that are stored
    in half precision are computed with in single precision, as on onnxruntime.

    Args:
        model: The model.
        device: The device, such as ``cpu`` or ``cuda``.

    Raises:
        MissingExtraError: torch or sentence-transformers is not installed.
        InvalidInputError: The model is not a sentence encoder, or the device does not exist.
    """

    def __init__(self, model: ModelFolder, device: str = "cpu") -> None:
        with MissingExtraError.unless_installed("the torch backend", "matcher"):
            from sentence_transformers import SentenceTransformer
        shape = encoder_shape(model)
        try:
            with quiet_loading():
                self._model = SentenceTransformer(
                    str(model.path),
                    device=device,
                    local_files_only=True,
                    trust_remote_code=False,
                    model_kwargs={"use_safetensors": True, "dtype": _PRECISION},
                )
        except (OSError, ValueError, RuntimeError, AssertionError) as err:
            if is_out_of_memory(err):
                raise no_memory(f"the model {model.name}", device) from err
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

        def fitted(batch: list[int]) -> Vectors:
            return np.concatenate([rows for _, rows in in_memory(batch, run, self._device)])

        return encode_by_length(self._lengths(readable), self.size, fitted)

    def _lengths(self, texts: list[str]) -> list[int]:
        if not texts:
            return []
        found = self._model.tokenizer(
            texts, truncation=True, max_length=self._model.max_seq_length, padding=False
        )
        return [len(ids) for ids in found["input_ids"]]


class TorchPairs:
    """A small judge's model: its input format and its probability of "supported".

    Args:
        preset: The small judge.
        model: The folder of the model.
        weights: The loaded model, which presets of equal weights share.
        kept: How many pairs' probabilities are kept between calls.

    Raises:
        InvalidInputError: The model does not have the classes that the preset reads.
    """

    def __init__(
        self, preset: SmallPreset, model: ModelFolder, weights: TorchWeights, kept: int = 0
    ) -> None:
        self._kept: KeptValues[tuple[str, str], float] = KeptValues(self._computed, kept)
        self._preset = preset
        self._weights = weights
        self._classes, self._supported = _classes(preset, model, weights.classes)
        self.label = f"{model.label}/{weights.backend}"
        self.limit = weights.limit(preset.limit)
        # The longest first, because a regular expression takes the first alternative that fits.
        special = sorted(weights.special_tokens, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, special)) or r"(?!)")

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens."""
        if not texts:
            return []
        return self._weights.lengths([self._defused(text) for text in texts])

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return the number of tokens of each input, with template and special tokens."""
        return [len(ids) for ids in self.encoded(pairs)["input_ids"]] if pairs else []

    def supported(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each premise supports its claim."""
        found = self._kept.values(pairs)
        return [found[pair] for pair in pairs]

    def _computed(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        tokens = self.encoded(pairs)

        def run(batch: list[int]) -> list[float]:
            rows = {name: [values[at] for at in batch] for name, values in tokens.items()}
            chosen = self._weights.logits(rows)[:, self._classes]
            chances: list[float] = chosen.softmax(dim=-1)[:, self._supported].tolist()
            return chances

        out = [0.0] * len(pairs)
        for batch in length_batches([len(ids) for ids in tokens["input_ids"]]):
            for part, chances in in_memory(batch, run, self._weights.device):
                for position, chance in zip(part, chances, strict=True):
                    out[position] = chance
        return out

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> dict[str, list[list[int]]]:
        """Return what the model reads for each premise and claim, without padding."""
        premises = [self._defused(premise) for premise, _ in pairs]
        claims = [self._defused(claim) for _, claim in pairs]
        if not self._preset.template:
            return self._weights.tokens(premises, claims)
        eos = self._weights.eos
        return self._weights.tokens(
            [
                self._preset.template.format(premise=premise, claim=claim, eos=eos)
                for premise, claim in zip(premises, claims, strict=True)
            ]
        )

    def _defused(self, text: str) -> str:
        """Return a text in which the tokenizer finds no special token, such as ``</s>``.

        A judged text with the separator could otherwise write its own premise.
        """
        return self._special.sub(lambda found: f"{found[0][0]} {found[0][1:]}", plain(text))


def _classes(preset: SmallPreset, model: ModelFolder, count: int) -> tuple[list[int], int]:
    """Return the columns of the logits that compete, and which of them means "supported"."""
    if preset.head == "entailment":
        return list(range(count)), entailment_index(model.config, model.name)
    if preset.head == "words":
        if count <= _YES:
            raise _unsuitable(preset, model, f"a vocabulary of {count} words")
        return [_NO, _YES], 1
    if count != 2:
        raise _unsuitable(preset, model, f"{count} classes")
    return [0, 1], 1


def _unsuitable(preset: SmallPreset, model: ModelFolder, found: str) -> InvalidInputError:
    return InvalidInputError(
        f"the model {model.name} has {found}, so it is not a model of the judge {preset.name}; "
        f"give the weights of {preset.model}, or choose another judge",
        metadata={"model": model.name},
    )


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
        with MissingExtraError.unless_installed("a small judge", "matcher"):
            import transformers
        # The automatic choice reads config.json, where HHEM names a class of its own code.
        kind = transformers.T5Tokenizer if architecture == "hhem" else transformers.AutoTokenizer
        try:
            with quiet_loading():
                self._tokenizer = kind.from_pretrained(
                    str(tokenizer or model.path), local_files_only=True, trust_remote_code=False
                )
                self._model, self._run = _LOADERS[architecture](transformers, model)
                self._model.to(device).eval()
        except (OSError, ValueError, KeyError, RuntimeError, AssertionError) as err:
            if is_out_of_memory(err):
                raise no_memory(f"the model {model.name}", device) from err
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
        self.device = device
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
            wanted: The limit of the authors' code; 0 for that of the model's files.
        """
        positions = self._positions()
        if wanted:
            return min(wanted, positions or wanted)
        limit = int(self._tokenizer.model_max_length)
        positions = positions or _DEFAULT_TOKENS
        return min(limit, positions) if limit < _NO_LIMIT else positions

    def _positions(self) -> int:
        """Return the number of position embeddings; 0 if positions are relative."""
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

        feed = {name: torch.tensor(values, device=self.device) for name, values in rows.items()}
        with torch.inference_mode():
            return self._run(feed).float()


def in_memory(
    batch: list[int], run: Callable[[list[int]], _Found], device: str
) -> Iterator[tuple[list[int], _Found]]:
    """Run a batch, and halves of it where the device has too little memory for all of it.

    A GPU is often shared with a language model that takes most of its memory.

    Args:
        batch: Positions of texts.
        run: What is run for some of them.
        device: The device, for the error.

    Yields:
        The positions that were run together, and what was found.

    Raises:
        OverloadedError: There is too little memory for one text.
    """
    try:
        found = run(batch)
    except RuntimeError as err:
        if not is_out_of_memory(err):
            raise
        if len(batch) == 1:
            raise no_memory("one text", device) from err
    else:
        yield batch, found
        return
    # Not in the handler: until it ends, the error holds what the failed batch had in memory.
    middle = len(batch) // 2
    for half in (batch[:middle], batch[middle:]):
        yield from in_memory(half, run, device)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that a device's memory is full."""
    import torch

    return isinstance(error, torch.OutOfMemoryError)


def no_memory(what: str, device: str) -> OverloadedError:
    """Return the error for what a device has no memory for."""
    return OverloadedError(
        f"the device {device} has no memory left for {what}; let what else runs there keep less "
        "(vLLM takes nine tenths of a GPU by default), or give the option device=cpu",
        reason="MEMORY_FULL",
        metadata={"device": device},
    )


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
        dtype=_PRECISION,
        output_loading_info=True,
    )
    if missing := sorted(found["missing_keys"]):
        raise ValueError(f"its file has no tensor {missing[0]}")
    return loaded


def _classifier(transformers: Any, model: ModelFolder) -> tuple[Any, _Run]:
    loaded = _complete(transformers.AutoModelForSequenceClassification, model)
    return loaded, lambda feed: loaded(**feed).logits


def _seq2seq(transformers: Any, model: ModelFolder) -> tuple[Any, _Run]:
    loaded = _complete(transformers.AutoModelForSeq2SeqLM, model)

    def run(feed: Mapping[str, Any]) -> Any:
        # T5's decoder begins with the padding token, whose id is 0.
        begin = feed["input_ids"].new_zeros((len(feed["input_ids"]), 1))
        return loaded(**feed, decoder_input_ids=begin).logits[:, 0]

    return loaded, run


def _hhem(transformers: Any, model: ModelFolder) -> tuple[Any, _Run]:
    """Return HHEM's T5 token classifier, whose folder names code of its own instead of a shape."""
    from safetensors.torch import load_file

    tensors = {
        name.removeprefix(_HHEM_PREFIX): tensor for name, tensor in load_file(model.weights).items()
    }
    config = transformers.T5Config(**_t5_shape({n: t.shape for n, t in tensors.items()}))
    loaded = transformers.T5ForTokenClassification(config)
    # The embeddings are tied: the file has them once or twice, under these names.
    shared = tensors["transformer.shared.weight"]
    tensors["transformer.encoder.embed_tokens.weight"] = shared
    loaded.load_state_dict(tensors)
    return loaded, lambda feed: loaded(**feed).logits[:, 0]


def _t5_shape(shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the values of a T5 encoder's configuration, read from the shapes of its weights."""
    block = "transformer.encoder.block"
    words, size = shapes["transformer.shared.weight"]
    buckets, heads = shapes[f"{block}.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    inner = shapes[f"{block}.0.layer.0.SelfAttention.q.weight"][0]
    return {
        "vocab_size": words,
        "d_model": size,
        "d_kv": inner // heads,
        "d_ff": shapes[f"{block}.0.layer.1.DenseReluDense.wi_0.weight"][0],
        "num_layers": sum(name.endswith("SelfAttention.q.weight") for name in shapes),
        "num_heads": heads,
        "relative_attention_num_buckets": buckets,
        "feed_forward_proj": "gated-gelu",
        "num_labels": shapes["classifier.weight"][0],
        "use_cache": False,
    }


# They are given transformers, which is imported late.
_LOADERS: Mapping[Architecture, Callable[[Any, ModelFolder], tuple[Any, _Run]]] = {
    "classifier": _classifier,
    "seq2seq": _seq2seq,
    "hhem": _hhem,
}


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Disable the progress bars of transformers, and restore their state afterwards."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
