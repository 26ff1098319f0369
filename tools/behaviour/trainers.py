"""What a trainer makes of a missing reward: the advantages of four responses to one prompt.

    python tools/behaviour/trainers.py trl

Prints one cell for each case, as JSON. `behaviour_tables.py` installs the packages and compares.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

REWARDS = [1.0, 0.0, 1.0]
WORDS = ["[PAD]", "[EOS]", "describe", "a", "b", "c", "d"]
TEXTS = ["a", "b", "c", "d"]


class FailedRewardError(Exception):
    """What the reward function raises."""


def failing() -> float:
    """Raise, as a judge that does not answer makes a reward function do."""
    raise FailedRewardError


# What the reward function gives for the fourth response, or for all four.
CASES: dict[str, Callable[[int], Any]] = {
    "0.0 for the fourth": lambda at: [*REWARDS, 0.0][at],
    "None for the fourth": lambda at: [*REWARDS, None][at],
    "NaN for the fourth": lambda at: [*REWARDS, float("nan")][at],
    "an exception for the fourth": lambda at: REWARDS[at] if at < len(REWARDS) else failing(),
    "None for all four": lambda _: None,
}


def tiny_tokenizer() -> Any:
    """Return a tokenizer of a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"unk_token": "[PAD]", "pad_token": "[PAD]", "eos_token": "[EOS]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def trl(reward: Callable[[int], Any]) -> Sequence[float]:
    """Train one step of GRPO and return the advantages that it logs."""
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    def function(completions: Sequence[str], **_: Any) -> list[Any]:
        return [reward(at) for at in range(len(completions))]

    shape = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    ends = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None}
    config = LlamaConfig(vocab_size=len(WORDS), num_hidden_layers=1, **shape, **ends)
    with tempfile.TemporaryDirectory() as folder:
        options = {"output_dir": folder, "max_steps": 1, "per_device_train_batch_size": 4}
        trainer = GRPOTrainer(
            model=LlamaForCausalLM(config),
            processing_class=tiny_tokenizer(),
            reward_funcs=[function],
            train_dataset=Dataset.from_list([{"prompt": "describe"}] * 4),
            args=GRPOConfig(
                **options,
                num_generations=4,
                max_completion_length=4,
                use_cpu=True,
                report_to=[],
                bf16=False,
            ),
        )
        trainer.train()
    return list(trainer._logs["advantages"])


def verl(reward: Callable[[int], Any]) -> Sequence[float]:
    """Ask verl's reward manager, put the scores in its tensor, and normalise as GRPO does."""
    import numpy as np
    import torch
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    tokenizer = tiny_tokenizer()
    ids = tokenizer(TEXTS, return_tensors="pt")["input_ids"]
    ones = torch.ones_like(ids)
    data = DataProto.from_dict(
        tensors={"prompts": ids, "responses": ids, "attention_mask": torch.cat([ones, ones], 1)},
        non_tensors={
            "data_source": np.array(["mine"] * 4, dtype=object),
            "reward_model": np.array([{"ground_truth": ""}] * 4, dtype=object),
            "extra_info": np.array([{} for _ in TEXTS], dtype=object),
        },
    )

    def function(solution_str: str, **_: Any) -> Any:
        return reward(TEXTS.index(solution_str))

    async def asked() -> list[Any]:
        manager = NaiveRewardManager(OmegaConf.create({}), tokenizer, function)
        calls = [manager.run_single(data[at : at + 1]) for at in range(4)]
        return [one["reward_score"] for one in await asyncio.gather(*calls)]

    scores = NaiveRewardManager.assemble_rm_scores(data, asyncio.run(asked()))
    advantages, _ = compute_grpo_outcome_advantage(scores, ones, np.zeros(4, dtype=int))
    return list(advantages[:, 0].tolist())


def ms_swift(reward: Callable[[int], Any]) -> Sequence[float]:
    """Compute rewards and advantages of samples with swift's functions."""
    import torch
    from swift.rl_core.advantage import compute_advantages
    from swift.rl_core.data import GRPOSample
    from swift.rl_core.grpo_algorithm import compute_rewards_per_func

    def function(completions: Sequence[str], **_: Any) -> list[Any]:
        return [reward(at) for at in range(len(completions))]

    samples = [
        GRPOSample.from_row({"messages": [{"role": "assistant", "content": text}]})
        for text in TEXTS
    ]
    found = compute_rewards_per_func(samples, [function], [None], torch.device("cpu"))
    advantages, _ = compute_advantages(found, torch.ones(1), 4)
    return list(advantages.tolist())


def openrlhf(reward: Callable[[int], Any]) -> Sequence[float]:
    """Roll out with OpenRLHF's executor, make its experiences, and compute their advantages."""
    import torch

    # Its modules import what needs a GPU; the code for rewards does not use it.
    spec = find_spec("openrlhf")
    assert spec is not None, "install openrlhf"
    root = next(iter(spec.submodule_search_locations or ()))
    for name in ("utils", "trainer", "trainer/ppo_utils", "trainer/ray", "models"):
        package = types.ModuleType("openrlhf." + name.replace("/", "."))
        package.__path__ = [f"{root}/{name}"]
        sys.modules[package.__name__] = package
    for name, word in (
        ("deepspeed", "zero"),
        ("vllm", "SamplingParams"),
        ("openrlhf.trainer.ray.vllm_engine", "batch_vllm_engine_call"),
        ("openrlhf.trainer.ray.launcher", "RayActorGroup"),
    ):
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], word, object)
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
    from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    tokenizer = tiny_tokenizer()

    async def generate(*_: Any, **__: Any) -> Any:
        written = types.SimpleNamespace(token_ids=[1], finish_reason="stop", logprobs=None)
        return types.SimpleNamespace(outputs=[written])

    def function(_queries: Any, _prompts: Any, labels: Sequence[int]) -> dict[str, Any]:
        value = reward(labels[0])
        tensor = None if value is None else torch.tensor([value])
        return {"rewards": tensor, "scores": tensor, "extra_logs": {}}

    executor = SingleTurnAgentExecutor()
    executor.reward_endpoints, executor.reward_func = ["reward.py"], function
    params = types.SimpleNamespace(max_tokens=4, logprobs=None)
    engine = types.SimpleNamespace(generate=generate)

    async def rolled() -> list[Any]:
        calls = [executor.execute("describe", at, params, 64, tokenizer, engine) for at in range(4)]
        return await asyncio.gather(*calls)

    make = SamplesGenerator._process_response_into_experience
    experiences = [make(None, one, max_len=64) for one in asyncio.run(rolled())]
    return advantages_of(RemoteExperienceMaker, experiences)


def advantages_of(maker: Any, experiences: list[Any]) -> Sequence[float]:
    """Let OpenRLHF's maker compute the advantages of four experiences."""
    space = types.SimpleNamespace
    args = space(
        rollout=space(n_samples_per_prompt=4),
        reward=space(clip_range=None, overlong_buffer_len=None, stop_properly_penalty_coef=None),
        algo=space(
            advantage=space(estimator="group_norm", gamma=1.0, lambd=1.0, is_norm_enabled=False),
            kl=space(use_loss=True),
        ),
        train=space(dynamic_batch_enable=False),
    )
    import torch

    for at, one in enumerate(experiences):
        one.index = [at]
        one.kl = torch.zeros_like(one.action_mask, dtype=torch.float32)
    itself = space(
        strategy=space(args=args), kl_ctl=space(value=0.0), advantage_estimator="group_norm"
    )
    itself.get_cumulative_returns = lambda *given: maker.get_cumulative_returns(itself, *given)
    done = maker.compute_advantages_and_returns(itself, experiences)
    found = [one.advantages[one.action_mask.bool()][0].item() for one in done]
    return list(found)


TRAINERS = {"trl": trl, "verl": verl, "ms-swift": ms_swift, "openrlhf": openrlhf}


def cell(trainer: Callable[[Any], Sequence[float]], reward: Callable[[int], Any]) -> str:
    """Return the advantages, or the exception that ends the step."""
    try:
        return ", ".join(f"{value:.2f}" for value in trainer(reward))
    except ImportError:
        raise
    except Exception as err:
        return type(err).__name__


def main() -> None:
    """Print a trainer's cells."""
    logging.disable()
    warnings.simplefilter("ignore")
    os.environ["HF_HUB_OFFLINE"] = "1"
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.chdir(tempfile.mkdtemp())
    trainer = TRAINERS[sys.argv[1]]
    print(json.dumps({name: cell(trainer, reward) for name, reward in CASES.items()}), file=out)


if __name__ == "__main__":
    main()
