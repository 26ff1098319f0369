"""Ask for rewards by the unchanged code of a trainer, on tiny random models without a GPU.

    python -m venv trl-env
    trl-env/bin/pip install '.[http]' torch trl
    trl-env/bin/python tools/try_trainers.py trl [--asynchronous]

The trainers' pins differ from the suite's, so each needs an environment of its own. Where a whole
installation needs a GPU, install the trainer with --no-deps and what its reward code imports:

    verl      transformers tensordict omegaconf hydra-core ray orjson aiohttp
    ms-swift  transformers datasets modelscope peft json_repair dacite aiohttp
    openrlhf  transformers aiohttp

The script fails if the reward of a response differs from what a report says of it.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from hallujudge.sdk import Client
from hallujudge.sdk.rewards import Reward, trl_reward

WORDS = ["[PAD]", "[UNK]", "[EOS]", "Describe", "a", "cat", "dog", "sofa", "on", "and", "the", "."]
WORDS += ["<think>", "</think>", "<answer>", "</answer>"]
OBJECTS = ["cat", "couch"]
ANSWERS = ["a cat on the sofa", "a cat and a dog", "a dog", "the . and"]
THOUGHT, UNFINISHED = "<think> a dog </think> ", "<think> a cat"
MARKED = [f"{THOUGHT}<answer> {text} </answer>" for text in ANSWERS[:3]]
# Sixteen texts, four times.
TEXTS = [*ANSWERS, *(THOUGHT + text for text in ANSWERS), *MARKED, *[UNFINISHED] * 5] * 4


class Kept(Reward):
    """A reward that keeps what it was asked and what it said, a batch at a time."""

    batches: ClassVar[list[list[tuple[str, float | None]]]] = []

    def __call__(self, responses: Any, references: Any = None) -> list[float | None]:
        """Return the rewards."""
        found = super().__call__(responses, references)
        self.batches.append(list(zip(responses, found, strict=True)))
        return found


def check(seen: Sequence[tuple[str, float | None]]) -> None:
    """Compare each reward with a report, and that of a text with a thought with its answer's."""
    found = dict(seen)
    for text in found.keys() & {*TEXTS}:
        answer = text.removeprefix(THOUGHT).removeprefix("<answer> ").removesuffix(" </answer>")
        wanted = None if text == UNFINISHED else found.get(answer, found[text])
        assert found[text] == wanted, (text, found[text], wanted)
    with Client.embedded() as client:
        for text, value in found.items():
            report = client.score("chair", responses={"1": text}, references={"1": OBJECTS})
            score = report.scores["chair_i"].value
            assert value == (None if score is None else 1 - score), (text, value, score)


def tiny_tokenizer() -> Any:
    """Return a tokenizer of a dozen words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "eos_token": "[EOS]"}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, names["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def tiny_model() -> Any:
    """Return a random model of a dozen words."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            pad_token_id=0,
            eos_token_id=2,
            bos_token_id=None,
        )
    )


def plugin(folder: Path, last: str) -> Any:
    """Write a file as users do, with a reward and what a trainer reads; return its path."""
    path = folder / "hallujudge_rewards.py"
    path.write_text(
        "import sys\n"
        "import torch\n"
        "from hallujudge.sdk.rewards import openrlhf_reward, swift_reward, verl_reward\n"
        'reward = sys.modules["__main__"].Kept("chair", "chair_i")\n'
        f"{last}\n"
    )
    return path


def try_trl(folder: Path, *, asynchronous: bool) -> str:
    """Train one step of GRPO."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    reward = Kept("chair", "chair_i")
    trainer = GRPOTrainer(
        model=tiny_model(),
        processing_class=tiny_tokenizer(),
        reward_funcs=[trl_reward(reward, references="objects", asynchronous=asynchronous)],
        train_dataset=Dataset.from_list([{"prompt": "Describe the", "objects": OBJECTS}] * 8),
        args=GRPOConfig(
            output_dir=str(folder),
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
    seen = [one for batch in Kept.batches for one in batch]
    check(seen)
    logged = {key: value for key, value in trainer.state.log_history[0].items() if "reward" in key}
    return f"{len(seen)} completions of a training step; {logged}"


def try_verl(folder: Path) -> str:
    """Load the function as verl does, and ask its reward manager for each response."""
    import numpy as np
    import torch
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.reward import get_custom_reward_fn

    path = str(plugin(folder, "compute_score = verl_reward(reward, unscored=-1.0)"))
    custom = {"custom_reward_function": {"path": path, "name": "compute_score"}}
    config = OmegaConf.create({"reward": custom})
    tokenizer = tiny_tokenizer()
    compute_score = get_custom_reward_fn(config)
    ids = tokenizer(TEXTS, padding=True, padding_side="right", return_tensors="pt")
    data = DataProto.from_dict(
        tensors={"responses": ids["input_ids"], "attention_mask": ids["attention_mask"]},
        non_tensors={
            "data_source": np.array(["chair"] * len(TEXTS), dtype=object),
            "reward_model": np.array([{"ground_truth": OBJECTS}] * len(TEXTS), dtype=object),
            "extra_info": np.array([{} for _ in TEXTS], dtype=object),
        },
    )

    async def asked() -> list[float]:
        manager = NaiveRewardManager(config, tokenizer, compute_score)
        calls = [manager.run_single(data[at : at + 1]) for at in range(len(TEXTS))]
        return [one["reward_score"] for one in await asyncio.gather(*calls)]

    scores = asyncio.run(asked())
    found = dict(zip(tokenizer.batch_decode(ids["input_ids"], True), scores, strict=True))
    check([(text, None if value == -1 else value) for text, value in found.items()])
    assert torch.tensor(scores).isfinite().all()
    return f"{len(scores)} calls for one response in {len(Kept.batches)} batches"


def try_swift(folder: Path) -> str:
    """Load a plug-in as ms-swift does, and compute the rewards of samples."""
    import torch
    from swift.rewards import orms
    from swift.rl_core.data import GRPOSample
    from swift.rl_core.grpo_algorithm import compute_rewards_per_func
    from swift.utils import import_external_file

    register = "from swift.rewards import orms\n" + "\n".join(
        f'orms["{name}"] = swift_reward(reward, references="shown", asynchronous={awaited})'
        for name, awaited in (("chair", False), ("chair_awaited", True))
    )
    import_external_file(str(plugin(folder, register)))
    samples = [
        GRPOSample.from_row(
            {"messages": [{"role": "assistant", "content": text}], "shown": OBJECTS}
        )
        for text in TEXTS
    ]
    functions = [orms[name](args=None) for name in ("chair", "chair_awaited")]
    found = compute_rewards_per_func(samples, functions, [None, None], torch.device("cpu"))
    for column in found.T.tolist():
        check([(t, None if v != v else v) for t, v in zip(TEXTS, column, strict=True)])
    return f"{len(TEXTS)} samples by a function and an awaited one: {tuple(found.shape)}"


def try_openrlhf(within: Path) -> str:
    """Let OpenRLHF's rollout code ask a function, and a server over HTTP."""
    import torch

    # Its package imports what needs a GPU; the code that asks for rewards does not.
    spec = find_spec("openrlhf")
    assert spec is not None, "install openrlhf"
    package = types.ModuleType("openrlhf.utils")
    package.__path__ = [f"{folder}/utils" for folder in spec.submodule_search_locations or ()]
    sys.modules["openrlhf.utils"] = package
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    tokenizer = tiny_tokenizer()

    class Engine:
        """Writes the texts in turn."""

        def __init__(self) -> None:
            self.texts = iter(TEXTS)

        async def generate(self, *_: Any, **__: Any) -> Any:
            """Return a response with the mark of its end."""
            ids = tokenizer(next(self.texts) + " [EOS]")["input_ids"]
            written = types.SimpleNamespace(token_ids=ids, finish_reason="stop", logprobs=None)
            return types.SimpleNamespace(outputs=[written])

    async def asked(place: str) -> list[Any]:
        executor, engine = SingleTurnAgentExecutor(place), Engine()
        params = types.SimpleNamespace(max_tokens=12, logprobs=None)
        calls = [
            executor.execute("Describe the", OBJECTS, params, 64, tokenizer, engine) for _ in TEXTS
        ]
        return await asyncio.gather(*calls)

    def compared(outputs: Sequence[Any]) -> None:
        pairs = []
        for text, output in zip(TEXTS, outputs, strict=True):
            # As its samples_generator.py makes tensors of them.
            reward = torch.tensor([output["reward"]]).flatten().item()
            missing = torch.as_tensor(output["extra_logs"]["unscored"]).flatten()[0].item()
            pairs.append((text, None if missing else reward))
        check([(text, value if value is None else round(value, 6)) for text, value in pairs])

    path = plugin(within, "reward_func = openrlhf_reward(reward, tensor=torch.tensor)")
    compared(asyncio.run(asked(str(path))))
    command = Path(sys.executable).parent / "hallujudge"
    server = subprocess.Popen(
        [command, "serve", "--port", "0", "--http-port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None, "a pipe"
    try:
        address = next(line for line in server.stdout if "HTTP" in line).split()[-1]
        compared(asyncio.run(asked(f"{address}/rewards/openrlhf?metric=chair&score=chair_i")))
    finally:
        server.terminate()
        server.wait()
    return f"{len(TEXTS)} rollouts asked a function, and as many a server over HTTP"


def main() -> None:
    """Try one trainer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trainer", choices=["trl", "verl", "ms-swift", "openrlhf"])
    parser.add_argument("--asynchronous", action="store_true", help="TRL: an awaited function")
    options = parser.parse_args()
    tries: dict[str, Callable[[Path], str]] = {
        "trl": lambda folder: try_trl(folder, asynchronous=options.asynchronous),
        "verl": try_verl,
        "ms-swift": try_swift,
        "openrlhf": try_openrlhf,
    }
    with tempfile.TemporaryDirectory() as folder:
        done = tries[options.trainer](Path(folder))
    print(f"{options.trainer} {version(options.trainer)}: rewards are what CHAIR says; {done}")


if __name__ == "__main__":
    main()
