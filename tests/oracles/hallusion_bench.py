"""HallusionBench's numbers, written plainly from their definitions: one dictionary of lists each.

A row is a dictionary with ``category``, ``subcategory``, ``set_id``, ``figure_id``,
``question_id``, ``visual_input``, ``correctness`` (0, 1 or 2), ``gt`` (0 or 1) and ``same``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Row = dict[str, Any]


def is_right(row: Row) -> bool:
    no_figure = row["category"] == "VS" and row["figure_id"] == "0"
    return bool(row["correctness"] == 1 or (no_figure and row["correctness"] == 2))


def pair_of(row: Row) -> tuple[str, ...]:
    return (row["category"], row["subcategory"], row["set_id"], row["question_id"])


def figure_of(row: Row) -> tuple[str, ...]:
    return (row["category"], row["subcategory"], row["set_id"], row["figure_id"])


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> list[list[bool]]:
    groups: dict[Any, list[bool]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(is_right(row))
    return list(groups.values())


def share(of: Sequence[Any]) -> float | None:
    return sum(map(float, of)) / len(of) if of else None


def question_cause(row: Row) -> str:
    """Return the cause by the answer alone; empty for a right answer."""
    wrong, unclear = row["correctness"] == 0, row["correctness"] == 2
    if row["category"] == "VD":
        if row["figure_id"] == "0":
            return "visual_illusion" if wrong or unclear else ""
        return "mixed" if wrong else "visual_illusion" if unclear else ""
    if row["visual_input"] == 0:
        return "language_hallucination" if wrong else ""
    return "mixed" if wrong else "visual_illusion" if unclear else ""


def blame(row: Row, before: int) -> tuple[int, int]:
    """Language and vision, 0 or 1 each, given the correctness of the answer for figure 0."""
    now, same = row["correctness"], row["same"]
    if now == 1:
        return 0, 0
    if row["category"] == "VD":
        if row["figure_id"] != "0" and before == 1 and now == 0 and same == 1:
            return 1, 1
        return 0, 1
    if row["figure_id"] == "0":
        return (1, 0) if now == 0 else (0, 0)
    if before == 0:
        return (1, 0) if now == 0 and same == 1 else (1, 1)
    if before == 2:
        return 0, 1
    if now == 0 and row["visual_input"] == 2 and same == 1:
        return 1, 0
    return 0, 1


def cause_of(language: int, vision: int) -> str:
    if language and vision:
        return "mixed"
    return "language_hallucination" if language else "visual_illusion" if vision else ""


CAUSES = ("language_hallucination", "visual_illusion", "mixed")


def shares(prefix: str, causes: Sequence[str]) -> dict[str, float | None]:
    return {f"{prefix}{cause}": share([cause == one for one in causes]) for cause in CAUSES}


def causes_of(rows: Sequence[Row]) -> dict[str, float | None]:
    before = {pair_of(row): row["correctness"] for row in rows if row["figure_id"] == "0"}
    blames = [(row, blame(row, before[pair_of(row)])) for row in rows]
    pairs: dict[tuple[str, ...], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row, (language, vision) in blames:
        known = pairs[pair_of(row)]
        pairs[pair_of(row)] = (known[0] + language, known[1] + vision)
    return {
        **shares("", [cause_of(*found) for row, found in blames if not is_right(row)]),
        **shares("question_", [question_cause(row) for row in rows if not is_right(row)]),
        **shares("pair_", [cause_of(*found) for found in pairs.values() if any(found)]),
    }


def scores(rows: Sequence[Row]) -> dict[str, float | None]:
    figures = grouped(
        [r for r in rows if not (r["category"] == "VS" and r["figure_id"] == "0")], figure_of
    )
    easy = grouped([row for row in rows if row["visual_input"] != 2], pair_of)
    hard = grouped([row for row in rows if row["visual_input"] == 2], pair_of)
    wrong = [row for row in rows if not is_right(row)]
    yes = [is_right(row) == (row["gt"] == 1) for row in rows]
    three = {
        "question_accuracy": share([is_right(row) for row in rows]),
        "pair_accuracy": share([all(pair) for pair in grouped(rows, pair_of)]),
        "figure_accuracy": share([all(figure) for figure in figures]),
    }
    known = [value for value in three.values() if value is not None]
    return {
        **three,
        "mean_accuracy": sum(known) / 3 if len(known) == 3 else None,
        "easy_pair_accuracy": share([all(pair) for pair in easy]),
        "hard_pair_accuracy": share([all(pair) for pair in hard]),
        "figure_wrong": share([not any(figure) for figure in figures]),
        "figure_inconsistent": share([any(f) and not all(f) for f in figures]),
        "figure_score": share([sum(figure) / len(figure) for figure in figures]),
        "yes_percent_difference": (sum(yes) - sum(row["gt"] for row in rows)) / len(rows),
        "false_positive_ratio": share([row["gt"] == 0 for row in wrong]),
        "unclear_rate": share([row["correctness"] == 2 for row in rows]),
        **causes_of(rows),
    }


def kit_table(rows: Sequence[Row]) -> dict[str, float]:
    """The table of VLMEvalKit: questions with a figure; sets are named without their category."""
    shown = [row for row in rows if row["visual_input"] != 0]
    pairs = grouped(shown, lambda row: pair_of(row)[1:])
    figures = grouped(shown, lambda row: figure_of(row)[1:])
    three = {
        "question_accuracy": sum(map(is_right, shown)) / len(shown),
        "pair_accuracy": sum(map(all, pairs)) / len(pairs),
        "figure_accuracy": sum(map(all, figures)) / len(figures),
    }
    return {**three, "mean_accuracy": sum(three.values()) / 3}
