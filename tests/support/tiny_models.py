"""Small judges' models with random weights: real architectures, tokenizers of a few words."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["TINY", "store_as", "tiny_hhem", "tiny_model"]

_WORDS = ("man", "dog", "horse", "tree", "riding", "under", "is", "blue", "red", "the")
_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "initializer_range": 0.5,
}
_T5: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "feed_forward_proj": "gated-gelu",
    "initializer_factor": 2.0,
}


def _roberta(path: Path) -> None:
    import transformers

    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "Ġ", "Ċ", *string.printable[:94]]
    transformers.RobertaTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)}, merges=[]
    ).save_pretrained(path)
    config = transformers.RobertaConfig(
        vocab_size=len(pieces),
        max_position_embeddings=514,
        pad_token_id=1,
        type_vocab_size=1,
        num_labels=2,
        **_SIZES,
    )
    transformers.RobertaForSequenceClassification(config).save_pretrained(path)


def _deberta(path: Path) -> None:
    import transformers

    pieces = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "▁", *(f"▁{word}" for word in _WORDS)]
    pieces += string.printable[:94]
    transformers.DebertaV2Tokenizer(
        vocab=[(piece, -float(number)) for number, piece in enumerate(pieces)]
    ).save_pretrained(path)
    config = transformers.DebertaV2Config(
        vocab_size=len(pieces),
        max_position_embeddings=64,
        # As in DeBERTa-v3: positions are relative, so that inputs may be longer than 64.
        relative_attention=True,
        position_biased_input=False,
        pos_att_type=["p2c", "c2p"],
        type_vocab_size=0,
        num_labels=2,
        **_SIZES,
    )
    transformers.DebertaV2ForSequenceClassification(config).save_pretrained(path)


def _t5_tokenizer(path: Path) -> int:
    import transformers

    pieces = ["<pad>", "</s>", "<unk>", "▁", *(f"▁{word}" for word in _WORDS)]
    pieces += string.printable[:94]
    pieces += [f"word{number}" for number in range(220 - len(pieces))]
    vocab = [(piece, -float(number)) for number, piece in enumerate(pieces)]
    transformers.T5Tokenizer(vocab=vocab, extra_ids=3).save_pretrained(path)
    return len(pieces) + 3


def _flan_t5(path: Path) -> None:
    import transformers

    config = transformers.T5Config(vocab_size=_t5_tokenizer(path), **_T5)
    transformers.T5ForConditionalGeneration(config).save_pretrained(path)


def tiny_hhem(path: Path) -> Any:
    """A tiny HHEM, built with its shape written down instead of read from its weights."""
    import transformers
    from safetensors.torch import load_file

    tensors = load_file(path / "model.safetensors")
    size = len(tensors["t5.transformer.shared.weight"])
    config = transformers.T5Config(vocab_size=size, num_labels=2, **_T5)
    model = transformers.T5ForTokenClassification(config).eval()
    missing, _ = model.load_state_dict(
        {name.removeprefix("t5."): tensor for name, tensor in tensors.items()}, strict=False
    )
    assert missing == ["transformer.encoder.embed_tokens.weight"], "which is shared.weight"
    return model


def _hhem(path: Path) -> None:
    """Saves what the authors publish: weights under a prefix, a config without a shape."""
    import transformers
    from safetensors.torch import save_file

    size = _t5_tokenizer(path)
    config = transformers.T5Config(vocab_size=size, num_labels=2, **_T5)
    model = transformers.T5ForTokenClassification(config)
    tensors = {
        f"t5.{name}": tensor.contiguous()
        for name, tensor in model.state_dict().items()
        if "embed_tokens" not in name
    }
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(
        '{"model_type": "HHEMv2", "auto_map": {"AutoConfig": "configuration_hhem_v2.HHEMv2Config"}}'
    )


TINY: Mapping[str, Callable[[Path], None]] = {
    "minicheck-roberta": _roberta,
    "minicheck-deberta": _deberta,
    "minicheck-flan-t5": _flan_t5,
    "factcg": _deberta,
    "hhem": _hhem,
}
"""What saves a tiny model of each small judge."""


def tiny_model(path: Path, judge: str) -> Path:
    """Saves a tiny model of a small judge, and gives its folder."""
    import torch

    path.mkdir(parents=True)
    torch.manual_seed(3)
    TINY[judge](path)
    return path


def store_as(path: Path, kind: str) -> None:
    """Stores a folder's weights as another type, as its config.json then says too."""
    import torch
    from safetensors.torch import load_file, save_file

    weights, config = path / "model.safetensors", path / "config.json"
    tensors = {name: tensor.to(getattr(torch, kind)) for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, metadata={"format": "pt"})
    content = json.loads(config.read_text(encoding="utf-8")) | {"dtype": kind}
    config.write_text(json.dumps(content), encoding="utf-8")
