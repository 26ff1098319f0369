"""Write the model of make_tiny_llama.py as a GGUF file, which llama.cpp reads.

    python make_tiny_gguf.py FOLDER FILE

Run as a program by a Python that has gguf and safetensors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def write(folder: Path, file: Path) -> None:
    """Write a folder's model and tokenizer into one file."""
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_rope_freq_base(_rope_base(config))
    writer.add_vocab_size(config["vocab_size"])
    _add_tokenizer(writer, folder)
    for name, tensor in load_file(folder / "model.safetensors").items():
        writer.add_tensor(*_renamed(name, tensor.astype("float32"), config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _rope_base(config: dict[str, Any]) -> float:
    return float(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])


def _add_tokenizer(writer: Any, folder: Path) -> None:
    read = json.loads((folder / "tokenizer.json").read_text())
    pieces = dict(read["model"]["vocab"])
    marks = {each["content"] for each in read["added_tokens"]}
    ordered = sorted(pieces, key=pieces.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(ordered)
    # 3: a control token, 1: a normal one.
    writer.add_token_types([3 if piece in marks else 1 for piece in ordered])
    writer.add_token_merges([" ".join(pair) for pair in read["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def _renamed(name: str, tensor: Any, config: dict[str, Any]) -> tuple[str, Any]:
    if name in TOP:
        return TOP[name], tensor
    _model, _layers, number, rest = name.split(".", 3)
    part = rest.removesuffix(".weight")
    heads = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}
    if part in heads:
        # llama.cpp turns neighbouring pairs, transformers the two halves of a head.
        count = config[heads[part]]
        halves = tensor.reshape(count, 2, tensor.shape[0] // count // 2, tensor.shape[1])
        tensor = halves.swapaxes(1, 2).reshape(tensor.shape)
    return f"blk.{number}.{NAMES[part]}.weight", tensor


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
