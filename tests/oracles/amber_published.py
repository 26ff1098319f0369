"""AMBER's totals and printed scores, written plainly from the definitions of its script.

Nouns are given. Words are compared by equality, and by a function that stands for the vectors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import eq
from typing import Any

PREFIXES = {
    "discriminative-attribute-state": "as_",
    "discriminative-attribute-number": "an_",
    "discriminative-attribute-action": "aa_",
    "discriminative-hallucination": "ha_",
}
COUNTS = ("correct_score", "correct_num", "no_score", "no_num", "ans_no_score", "ans_no_num")


def question_totals(
    annotations: Mapping[Any, Mapping[str, Any]], answers: Mapping[Any, str]
) -> dict[str, float]:
    """Return the totals over questions."""
    totals: dict[str, float] = {
        f"{prefix}qa_{name}": 0.001 if name.endswith("num") else 0
        for prefix in ("", *PREFIXES.values(), "asso_")
        for name in COUNTS
    }
    for key, said in answers.items():
        about = annotations[key]
        for prefix in ("", PREFIXES.get(about["type"], "asso_")):
            is_no, says_no = about["truth"] == "no", said == "No"
            totals[f"{prefix}qa_correct_num"] += 1
            totals[f"{prefix}qa_no_num"] += is_no
            totals[f"{prefix}qa_ans_no_num"] += says_no
            totals[f"{prefix}qa_correct_score"] += said == about["truth"].capitalize()
            totals[f"{prefix}qa_no_score"] += is_no and says_no
            totals[f"{prefix}qa_ans_no_score"] += is_no and says_no
    return totals


def _listed(words: Sequence[str], table: Mapping[str, Sequence[str]]) -> list[tuple[str, int]]:
    """Return words with their object: the associated words of all objects, then the objects."""
    listed = [(word, at) for at, name in enumerate(words) for word in table[name]]
    return listed + [(name, at) for at, name in enumerate(words)]


def _first(listed: Sequence[tuple[str, int]], fits: Callable[[str], bool]) -> int | None:
    return next((at for word, at in listed if fits(word)), None)


def _equal(one: str, other: str) -> bool:
    return one == other


def description_totals(
    annotations: Mapping[Any, Mapping[str, Any]],
    nouns: Mapping[Any, Sequence[str]],
    table: Mapping[str, Sequence[str]],
    safe: Sequence[str],
    similar: Callable[[str, str], bool] = _equal,
) -> dict[str, float]:
    """Return the totals over descriptions."""
    totals: dict[str, float] = defaultdict(float)
    for name in ("chair", "safe_cover", "hallu_cover", "non_hallu"):
        totals[f"{name}_num"] = 0.001
        totals[f"{name}_score"] = 0
    known = {word for name, words in table.items() for word in (name, *words)}
    for key, said in nouns.items():
        true = _listed(annotations[key]["truth"], table)
        targets = _listed(annotations[key]["hallu"], table)
        covered: set[int | None] = set()
        met: set[int | None] = set()
        words = [noun for noun in said if noun in known]
        wrong = 0
        for noun in words:
            if noun in safe:
                continue
            equal = _first(true, partial(eq, noun))
            if equal is not None:
                covered.add(equal)
                continue
            met.add(_first(targets, partial(eq, noun)))
            met.add(_first(targets, partial(similar, noun)))
            near = _first(true, partial(similar, noun))
            covered.add(near)
            wrong += near is None
        totals["chair_num"] += len(words)
        totals["chair_score"] += wrong
        totals["safe_cover_num"] += len(annotations[key]["truth"])
        totals["safe_cover_score"] += len(covered - {None})
        totals["hallu_cover_num"] += len(annotations[key]["hallu"])
        totals["hallu_cover_score"] += len(met - {None})
        totals["non_hallu_num"] += 1
        totals["non_hallu_score"] += not wrong
    return dict(totals)


def printed_questions(totals: Mapping[str, float]) -> dict[str, tuple[float, ...]]:
    """Return accuracy, precision, recall and F1 in percent as printed, by dimension."""
    dimensions = {
        "": ("",),
        "existence_": ("ha_",),
        "attribute_": ("as_", "an_", "aa_"),
        "state_": ("as_",),
        "number_": ("an_",),
        "action_": ("aa_",),
        "relation_": ("asso_",),
    }
    out = {}
    for dimension, prefixes in dimensions.items():
        shares = []
        for name in ("correct", "ans_no", "no"):
            top = sum(totals[f"{prefix}qa_{name}_score"] for prefix in prefixes)
            bottom = sum(totals[f"{prefix}qa_{name}_num"] for prefix in prefixes)
            shares.append(round(top / bottom * 100, 1))
        precision, recall = shares[1] / 100, shares[2] / 100
        added = 0.001 if dimension == "existence_" else 0.0001
        f1 = round(2 * precision * recall / (precision + recall + added) * 100, 1)
        out[dimension] = (*shares, f1)
    return out


def printed_descriptions(totals: Mapping[str, float]) -> tuple[float, ...]:
    """Return CHAIR, Cover, Hal and Cog in percent as printed."""
    chair, cover, cog, fine = (
        totals[f"{name}_score"] / totals[f"{name}_num"] * 100
        for name in ("chair", "safe_cover", "hallu_cover", "non_hallu")
    )
    return (round(chair, 1), round(cover, 1), round(100 - fine, 1), round(cog, 1))
