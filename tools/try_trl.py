"""Train one step of GRPO with TRL and a reward, on a tiny random model without a GPU.

    python -m venv trl-env
    trl-env/bin/pip install . trl torch
    trl-env/bin/python tools/try_trl.py [--asynchronous]

TRL's pins differ from the suite's, so it needs an environment of its own. The script fails if the
reward of a completion differs from what CHAIR says of it.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.metadata import version
from typing import Any

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from hallujudge.sdk import Client
from hallujudge.sdk.rewards import Reward, trl_reward

WORDS = ["[PAD]", "[UNK]", "[EOS]", "Describe", "a", "cat", "dog", "sofa", "on", "and", "the", "."]
OBJECTS = ["cat", "couch"]


class Kept(Reward):
    """A reward that keeps what it was asked and what it said."""

    seen: list[tuple[str, float | None]]

    def __call__(self, responses: Any, references: Any = None) -> list[float | None]:
        """Return the rewards."""
        found = super().__call__(responses, references)
        self.seen = [*getattr(self, "seen", []), *zip(responses, found, strict=True)]
        return found


def tiny_model() -> tuple[Any, Any]:
    """Return a random model of a dozen words and its tokenizer."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "eos_token": "[EOS]"}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, names["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=0,
        eos_token_id=2,
        bos_token_id=None,
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    return LlamaForCausalLM(config), fast


def main() -> None:
    """Train one step, and compare each reward with a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asynchronous", action="store_true", help="an awaited reward function")
    options = parser.parse_args()
    model, tokenizer = tiny_model()
    reward = Kept("chair", "chair_i")
    function = trl_reward(reward, references="objects", asynchronous=options.asynchronous)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=[function],
            train_dataset=Dataset.from_list([{"prompt": "Describe the", "objects": OBJECTS}] * 8),
            args=GRPOConfig(
                output_dir=folder,
                max_steps=1,
                per_device_train_batch_size=4,
                num_generations=4,
                max_completion_length=12,
                use_cpu=True,
                report_to=[],
                logging_steps=1,
                bf16=False,
            ),
        )
        trainer.train()
    with Client.embedded() as client:
        for text, value in reward.seen:
            report = client.score("chair", responses={"1": text}, references={"1": OBJECTS})
            score = report.scores["chair_i"].value
            assert value == (None if score is None else 1 - score), (text, value, score)
    logged = {key: value for key, value in trainer.state.log_history[0].items() if "reward" in key}
    print(f"trl {version('trl')}: {len(reward.seen)} completions rewarded as CHAIR says; {logged}")


if __name__ == "__main__":
    main()
