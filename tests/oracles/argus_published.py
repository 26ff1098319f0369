"""The released rule of ARGUS in its plainest form: difflib for all lines, and whole paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import product
from typing import NamedTuple

__all__ = ["Line", "Result", "evidence_line", "lowest_cost", "matched"]

PENALTY = 0.1


class Line(NamedTuple):
    """A judged line."""

    kind: str
    verdict: str
    place: int | None


class Result(NamedTuple):
    """What the dynamic programme finds."""

    cost: float
    most: float
    path: list[int]


def words_of(text: str) -> str:
    """Return a text as lines are compared."""
    return re.sub(r"\s+", " ", re.sub(r"[^\w\s']", " ", text).lower()).strip()


def evidence_line(evidence: str, lines: Sequence[str]) -> int | None:
    """Return the place of the most similar line, as difflib says."""
    sought, best, place = words_of(evidence), 0.0, None
    asked = set(sought.split())
    for number, line in enumerate(map(words_of, lines)):
        if not line or not sought:
            continue
        matcher = SequenceMatcher(None, sought, line)
        chars = matcher.find_longest_match(0, len(sought), 0, len(line)).size
        common = len(asked & set(line.split())) / len(asked)
        score = chars * 0.4 + common * 0.3 + matcher.ratio() * 0.3
        if score > best:
            best, place = score, number
    return place if best >= 0.3 else None


def base(line: Line, at: int) -> int:
    """Return what a line costs at a place."""
    if line.verdict != "entailment":
        return 1
    return 0 if line.kind in {"summary", "visual-description"} or at == line.place else 1


def penalty(line: Line, at: int, before: Sequence[tuple[int, Line]]) -> float:
    """Return the penalty for the actions before a line."""
    total = 0.0
    if line.kind != "dynamic-action" and line.verdict != "entailment":
        return total
    for place, other in before:
        if other.kind == "dynamic-action" and other.verdict == "entailment" and place > at:
            total += PENALTY
    return total


def matched(lines: Sequence[Line], sources: int) -> Result:
    """Return what the dynamic programme finds, with a whole path for each cell."""
    costs = [0.0] * sources
    paths: list[list[int]] = [[] for _ in range(sources)]
    for number, line in enumerate(lines):
        new_costs, new_paths = [float("inf")] * sources, paths
        new_paths = [[] for _ in range(sources)]
        for at in range(sources):
            for before in range(sources):
                path = [*paths[before], before] if number else []
                placed = list(zip(path, lines, strict=False))
                total = costs[before] + base(line, at) + penalty(line, at, placed)
                if total < new_costs[at]:
                    new_costs[at], new_paths[at] = total, path
        costs, paths = new_costs, new_paths
    last = costs.index(min(costs))
    actions = sum(a.kind == "dynamic-action" and a.verdict == "entailment" for a in lines)
    most = (len(lines) - actions) + PENALTY * ((actions * (actions - 1)) / 2)
    return Result(costs[last], most, [*paths[last], last])


def lowest_cost(lines: Sequence[Line]) -> float:
    """Return the lowest cost of the variant corrected, over every choice of misplaced actions."""
    actions = [
        n
        for n, line in enumerate(lines)
        if (line.kind, line.verdict) == ("dynamic-action", "entailment") and line.place is not None
    ]
    free = ("summary", "visual-description")
    fixed = sum(
        n not in actions and (line.verdict != "entailment" or line.kind not in free)
        for n, line in enumerate(lines)
    )
    best = float("inf")
    for kept in product((True, False), repeat=len(actions)):
        places = [lines[n].place or 0 for n, keep in zip(actions, kept, strict=True) if keep]
        wrong = sum(a > b for n, a in enumerate(places) for b in places[n + 1 :])
        best = min(best, fixed + kept.count(False) + PENALTY * wrong)
    return best
