"""VideoHallucer's numbers, written plainly from their definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Pair = Mapping[str, Any]

PAPER_SETS = (
    "object_relation",
    "temporal",
    "semantic_detail",
    "external_factual",
    "external_nonfactual",
)


def has_label(question: Mapping[str, Any]) -> bool:
    """Return whether the answer contains the label as a word."""
    found = re.search(rf"\b({question['answer']})\b", question["predict"], re.IGNORECASE)
    return found is not None


def scores(pairs: Sequence[Pair]) -> dict[str, float | None]:
    """Accuracies and the yes bias of some pairs."""
    hits = [(has_label(pair["basic"]), has_label(pair["hallucination"])) for pair in pairs]
    answers = [
        (right, pair[name]["answer"])
        for pair, both in zip(pairs, hits, strict=True)
        for name, right in zip(("basic", "hallucination"), both, strict=True)
    ]
    wrong = [label for right, label in answers if not right]
    said_yes = sum(right == (label == "yes") for right, label in answers)
    return {
        "basic_accuracy": sum(basic for basic, _ in hits) / len(pairs),
        "hallucination_accuracy": sum(other for _, other in hits) / len(pairs),
        "pair_accuracy": sum(basic and other for basic, other in hits) / len(pairs),
        "yes_percent_difference": (said_yes - sum(label == "yes" for _, label in answers))
        / len(answers),
        "false_positive_ratio": wrong.count("no") / len(wrong) if wrong else None,
    }


def means(sets: Mapping[str, Sequence[Pair]]) -> dict[str, float | None]:
    """Means of accuracies over the paper's five sets."""
    names = ("basic_accuracy", "hallucination_accuracy", "pair_accuracy")
    if not all(sets.get(name) for name in PAPER_SETS):
        return {f"mean_{name}": None for name in names}
    single = [scores(sets[name]) for name in PAPER_SETS]
    return {f"mean_{name}": sum(one[name] or 0 for one in single) / len(single) for name in names}
