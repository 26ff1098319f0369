"""Archives of answers that are generated from a seed."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hallujudge.metrics.infact import InfactMetric
from hallujudge.metrics.infact.operators import OPERATORS, TAXONOMY, TEMPORAL

LEAVES = [
    (dimension, leaf)
    for dimension, levels in TAXONOMY.items()
    for leaves in levels.values()
    for leaf in leaves
]
WAYS = ("{}", "({})", "Answer: {}", "{}.", "The answer is ({}).")


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write records as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def infact_questions(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Questions with a letter under every operator, some with a confidence."""
    rng = random.Random(seed)
    questions = []
    for index in range(count):
        dimension, leaf = LEAVES[index % len(LEAVES)]
        label = rng.choice("ABCD")
        runs = {
            operator: label if rng.random() < 0.6 else rng.choice("ABCD") for operator in OPERATORS
        }
        questions.append(
            {
                "question_id": f"q{index}",
                "dimension": dimension,
                "category": leaf,
                "order_sensitive": rng.random() < 0.4,
                "label": label,
                "runs": runs,
                "confidence": rng.choice([None, 0.2, 0.4, 0.55, 0.7, 0.95]),
            }
        )
    return questions


def infact_lines(questions: Iterable[Mapping[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Write one line for each question and operator, in random order."""
    rng = random.Random(seed)
    lines = []
    for question in questions:
        for operator, letter in question["runs"].items():
            line = {key: value for key, value in question.items() if key != "runs"}
            line |= {"id": f"{question['question_id']}/{operator}", "operator": operator}
            line["response"] = rng.choice(WAYS).format(letter)
            if operator != "base" or line["confidence"] is None:
                del line["confidence"]
            lines.append(line)
    rng.shuffle(lines)
    return lines


def infact_means(rates: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the scores that INFACT's metric makes of the rates of operators, None for one not run.

    Args:
        rates: Operator -> RR, or TSS for shuffle and reverse.
    """
    sums = {f"asked_{name}": float(rate is not None) for name, rate in rates.items()}
    for name, rate in rates.items():
        sums[f"{'changed' if name in TEMPORAL else 'kept'}_{name}"] = rate or 0.0
    columns = defaultdict(lambda: np.zeros(1), {k: np.array([v]) for k, v in sums.items()})
    found = {s.name: float(s.value(columns)[0]) for s in InfactMetric.score_definitions}
    return {name: None if math.isnan(value) else value for name, value in found.items()}
