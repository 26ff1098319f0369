"""Released scripts as plain loops: yes anywhere is yes, else no anywhere is no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

__all__ = ["elv_halluc", "rates", "read", "repope"]

Scores: TypeAlias = "dict[str, float | None]"


def read(text: str) -> str | None:
    lowered = text.lower()
    for word in ("yes", "no"):
        if word in lowered:
            return word
    return None


def over(top: float, bottom: float) -> float | None:
    return top / bottom if bottom else None


def rates(answers: Sequence[tuple[str, str]]) -> Scores:
    """Return the scores of labels with responses."""
    right = {"yes": 0, "no": 0}
    asked = {"yes": 0, "no": 0}
    for label, response in answers:
        asked[label] += 1
        right[label] += read(response) == label
    positive, negative = (over(right[label], asked[label]) for label in ("yes", "no"))
    known = positive is not None and negative is not None and positive + negative > 0
    return {
        "accuracy": over(sum(right.values()), len(answers)),
        "true_positive_rate": positive,
        "true_negative_rate": negative,
        "harmonic_mean": 2 * positive * negative / (positive + negative) if known else None,  # type: ignore[operator]  # known
        "unparsed_rate": over(sum(read(text) is None for _, text in answers), len(answers)),
    }


def elv_halluc(lines: Sequence[Mapping[str, str]]) -> Scores:
    """Return the scores of lines, of which three in their order are a triplet."""
    inside = outside = 0
    triplets = [lines[start : start + 3] for start in range(0, len(lines) - 2, 3)]
    for triplet in triplets:
        right = {
            line["caption_type"]: read(line["model_response"]) == read(line["ref_answer"])
            for line in triplet
        }
        inside += right["ground_truth"] and right["in_video"]
        outside += right["ground_truth"] and right["out_video"]
    one, other = over(inside, len(triplets)), over(outside, len(triplets))
    known = one is not None and other is not None and one < 1
    return {
        "in_video_accuracy": one,
        "out_video_accuracy": other,
        "sah_ratio": (other - one) / (1 - one) if known else None,  # type: ignore[operator]  # known
    }


def repope(answers: Sequence[tuple[str, str]]) -> Scores:
    """Return the scores of labels with responses; those that can't be read enter no count."""
    pairs = [(label, said) for label, text in answers if (said := read(text)) is not None]
    tp, fp, tn, fn = (
        pairs.count(pair) for pair in (("yes", "yes"), ("no", "yes"), ("no", "no"), ("yes", "no"))
    )
    return {
        "accuracy": over(tp + tn, len(pairs)),
        "precision": over(tp, tp + fp),
        "recall": over(tp, tp + fn),
        "f1": over(2 * tp, 2 * tp + fp + fn),
        "yes_ratio": over(tp + fp, len(pairs)),
        "unparsed_rate": over(len(answers) - len(pairs), len(answers)),
    }
