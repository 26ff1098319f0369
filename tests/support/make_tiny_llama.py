"""Save a Llama of two layers with random weights, its tokenizer and chat template.

    python make_tiny_llama.py FOLDER [--says WORD [--thinks TOKENS] | --even]

Run as a program by a Python that has torch and transformers. Every server reads the same folder.
With --says, the model replies with that word to everything: its layers add nothing, and its head
continues the last token of a prompt with the word. With --thinks, a thought of so many tokens and
its end mark, which reasoning parsers look for, come before the word. With --even, all tokens are
equally likely.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

MARKS = ["<|begin|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"]
THOUGHT_MARKS = ["<think>", "</think>"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>"
    "{{ m['content'] }}<|eot_id|>{% endfor %}<|start_header_id|>assistant<|end_header_id|>"
)
# English that does not change: another tokenizer makes another model, which replies differently.
TEXT = Path(__file__).resolve().parents[2] / "LICENSE"
_CONTEXT = 8192


def tiny_tokenizer() -> Any:
    """Return a byte-level tokenizer of 2,000 pieces at most."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bare.train_from_iterator(
        TEXT.read_text().splitlines(keepends=True),
        trainers.BpeTrainer(
            vocab_size=2000, special_tokens=MARKS, initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare, bos_token=MARKS[0], eos_token=MARKS[1]
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def tiny_llama(tokenizer: Any, says: str = "", thinks: int = 0, *, even: bool = False) -> Any:
    """Return the model.

    Args:
        tokenizer: Its tokenizer.
        says: What it replies to everything; empty for what its random weights make it say.
        thinks: Tokens of a thought before it.
        even: Whether all tokens are equally likely.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=_CONTEXT,
        # With the usual 0.02 all tokens are about equally likely.
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = LlamaForCausalLM(config)
    if even:
        with torch.no_grad():
            model.lm_head.weight.zero_()
    if says:
        with torch.no_grad():
            for layer in model.model.layers:
                layer.self_attn.o_proj.weight.zero_()
                layer.mlp.down_proj.weight.zero_()
            answer = tokenizer(says)["input_ids"]
            thought = _thought(tokenizer, answer, thinks) if thinks else []
            _continue(model, [3, *thought, *answer, 1])
    return model


def _thought(tokenizer: Any, answer: list[int], count: int) -> list[int]:
    """Return different tokens, since each is followed by one other, and the end of a thought."""
    pieces = ((each, tokenizer.decode([each])) for each in range(len(tokenizer)))
    words = [each for each, text in pieces if text.isascii() and text.strip().isalpha()]
    tokens = [each for each in words if each not in answer][:count]
    assert len(tokens) == count, "the tokenizer has fewer pieces"
    return [*tokens, tokenizer.convert_tokens_to_ids(THOUGHT_MARKS[1])]


def _continue(model: Any, tokens: list[int]) -> None:
    """Make each token be followed by the next one."""
    embeddings = model.model.embed_tokens.weight
    for last, following in pairwise(tokens):
        vector = embeddings[last]
        model.lm_head.weight[following] = 4 * vector / vector.norm()


def main() -> None:
    """Save the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--says", default="")
    parser.add_argument("--thinks", type=int, default=0)
    parser.add_argument("--even", action="store_true")
    given = parser.parse_args()
    tokenizer = tiny_tokenizer()
    if given.thinks:
        tokenizer.add_tokens(THOUGHT_MARKS)
    tiny_llama(tokenizer, given.says, given.thinks, even=given.even).save_pretrained(given.folder)
    tokenizer.save_pretrained(given.folder)


if __name__ == "__main__":
    main()
