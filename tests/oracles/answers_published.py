"""The published scoring of answers as plain loops, without caches.

The yardsticks for the fast parsers, and what the benchmark compares with. They follow the
released scripts step by step (INFACT's follows the paper, which has none) and share no code with
the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def pope(answers: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """POPE: first sentence, no commas, split at blanks; No, no or not is a no."""
    said = list(answers)
    for index, text in enumerate(said):
        if text.find(".") != -1:
            text = text.split(".")[0]
        text = text.replace(",", "")
        words = text.split(" ")
        if "No" in words or "not" in words or "no" in words:
            said[index] = "no"
        else:
            said[index] = "yes"
    truth = list(labels)
    wanted = []
    for index in range(len(truth)):
        if truth[index] == "no":
            wanted.append(0)
        else:
            wanted.append(1)
    predicted = []
    for word in said:
        if word == "no":
            predicted.append(0)
        else:
            predicted.append(1)
    tp = fp = tn = fn = 0
    for one, other in zip(predicted, wanted, strict=True):
        if one == 1 and other == 1:
            tp += 1
        elif one == 1 and other == 0:
            fp += 1
        elif one == 0 and other == 0:
            tn += 1
        else:
            fn += 1
    precision = tp / (tp + fp) if tp + fp else float("nan")
    recall = tp / (tp + fn) if tp + fn else float("nan")
    both = precision + recall
    return {
        "tp": tp,
        "fp": fp,
        "tn": tn,
        "fn": fn,
        "accuracy": (tp + tn) / len(said),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else float("nan"),
        "yes_ratio": predicted.count(1) / len(said),
    }


def _dcg(ranks: Sequence[int], size: int) -> float:
    gains = [size + 1 - rank for rank in ranks]
    return float(sum(gain / np.log2(place + 2) for place, gain in enumerate(gains)))


def vidhal_ordering(
    answers: Sequence[str], displays: Sequence[Mapping[str, str | int]], size: int = 3
) -> tuple[float, dict[str, int]]:
    """VidHal's NDCG, and how often each answer came; orders that are not a permutation score 0."""
    best = _dcg(list(range(1, size + 1)), size)
    worst = _dcg(list(reversed(range(1, size + 1))), size)
    total = 0.0
    frequency: dict[str, int] = {}
    for answer, display in zip(answers, displays, strict=True):
        order = [part.strip() for part in answer.split(",")]
        frequency[answer] = frequency.get(answer, 0) + 1
        if sorted(order) != sorted(display):
            continue
        total += (_dcg([int(display[letter]) for letter in order], size) - worst) / (best - worst)
    return total / len(answers), frequency


def vidhal_mcqa(
    answers: Sequence[str], displays: Sequence[Mapping[str, str]], captions: Sequence[str]
) -> float:
    """VidHal's accuracy: the letter itself, or the right caption, in lower case, inside it."""
    right = 0
    for answer, display, caption in zip(answers, displays, captions, strict=True):
        letter = {rank: letter for letter, rank in display.items()}["1"]
        right += int(answer == letter or caption.lower().strip(".") in answer)
    return right / len(answers)


INVARIANT = (
    "caption_injection",
    "subtitle_corruption",
    "adversarial_noise",
    "gaussian_noise",
    "motion_blur",
    "compression",
)


def infact(questions: Sequence[Mapping[str, object]]) -> dict[str, float]:
    """INFACT's rates over questions ``{label, order_sensitive, runs: {operator: letter}}``."""
    scores: dict[str, float] = {}
    base = right = 0
    for question in questions:
        base += 1
        right += question["runs"]["base"] == question["label"]  # type: ignore[index]
    scores["base_accuracy"] = right / base
    for operator in INVARIANT:
        kept = asked = 0
        for question in questions:
            runs: Mapping[str, str] = question["runs"]  # type: ignore[assignment]
            if runs["base"] != question["label"] or operator not in runs:
                continue
            asked += 1
            kept += runs[operator] == question["label"]
        scores[f"rr_{operator}"] = kept / asked if asked else float("nan")
    for operator in ("shuffle", "reverse"):
        changed = asked = 0
        for question in questions:
            runs = question["runs"]  # type: ignore[assignment]
            if not question["order_sensitive"] or runs["base"] != question["label"]:
                continue
            if operator in runs:
                asked += 1
                changed += runs[operator] != question["label"]
        scores[f"tss_{operator}"] = changed / asked if asked else float("nan")
    evidence = sum(scores[f"rr_{name}"] for name in INVARIANT[:3]) / 3
    visual = sum(scores[f"rr_{name}"] for name in INVARIANT[3:]) / 3
    scores["rr_evidence_corruption"], scores["rr_visual_degradation"] = evidence, visual
    scores["tss"] = (scores["tss_shuffle"] + scores["tss_reverse"]) / 2
    scores["average"] = (evidence + visual + scores["tss"]) / 3
    return scores
