"""Archives of answers that are generated from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hallujudge.metrics.infact.operators import OPERATORS, TAXONOMY

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
