"""Mementos' published matching, written plainly: slow, and easy to check by eye.

Tests compare the fast matcher with this code. It follows the released procedure step
by step and shares no code with the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Graph = Mapping[str, Mapping[str, Sequence[str]]]
"""{word: {second word, or '' for none: [roots]}}, as released."""


class ReleasedGraph:
    """A graph with the released question: is a path of words a synonym of a goal?"""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def leads_to(self, words: Sequence[str], goal: str) -> bool:
        """Tell whether one word, or two in a row, stand for the goal."""
        if len(words) == 1:
            return goal in self.graph.get(words[0], {}).get("", [])
        first, second = words
        if first not in self.graph or second not in self.graph[first]:
            return False
        return goal in self.graph.get(first, {}).get(second, [])


def replaced(
    reference: Sequence[str],
    predicted: Sequence[str],
    graph: ReleasedGraph,
    *,
    pairs: bool,
    leftovers_as_one: bool,
) -> list[object]:
    """Replace predictions by the reference's words that they stand for."""
    remaining = list(reference)
    result: list[object] = []
    index = 0
    while index < len(predicted) and len(remaining) > 0:
        before = len(remaining)
        for place in range(len(remaining)):
            if graph.leads_to([predicted[index]], remaining[place]):
                result.append(remaining[place])
                index += 1
                remaining.pop(place)
                break
            if pairs and index + 1 < len(predicted):
                both = [predicted[index], predicted[index + 1]]
                if graph.leads_to(both, remaining[place]):
                    result.append(remaining[place])
                    index += 2
                    remaining.pop(place)
                    break
        if len(remaining) == before:
            result.append(predicted[index])
            index += 1
    if index < len(predicted):
        # The released script appends the iterator itself, which is one more element.
        result.extend([object()] if leftovers_as_one else predicted[index:])
    return result


def counts(
    reference: Sequence[str],
    predicted: Sequence[str],
    graph: ReleasedGraph,
    *,
    pairs: bool,
    leftovers_as_one: bool = True,
) -> tuple[int, int, int]:
    """Right, wrong and missed keywords."""
    found = set(
        replaced(reference, predicted, graph, pairs=pairs, leftovers_as_one=leftovers_as_one)
    )
    wanted = set(reference)
    return len(wanted & found), len(found - wanted), len(wanted - found)


def scores(right: int, wrong: int, missed: int) -> dict[str, float]:
    """Return recall, precision and F1; 0/0 is 0."""
    recall = right / (right + missed) if right + missed else 0.0
    precision = right / (right + wrong) if right + wrong else 0.0
    total = precision + recall
    return {
        "recall": recall,
        "precision": precision,
        "f1": 2 * precision * recall / total if total else 0.0,
    }


class Evidence(NamedTuple):
    """Evidence of the procedure's outcome."""

    matched: tuple[tuple[str, str], ...]
    """Predictions, two of them joined by a plus, with the reference keyword that they stand for."""
    hallucinated: tuple[str, ...]
    """Different predictions that stand for none."""
    missed: tuple[str, ...]
    """Different reference keywords that none stands for."""


def evidence(
    reference: Sequence[str], predicted: Sequence[str], graph: ReleasedGraph, *, pairs: bool
) -> Evidence:
    """Go through the predictions as ``replaced`` does, and keep which of them did what."""
    remaining = list(reference)
    stands: dict[int, tuple[str, str]] = {}
    second: set[int] = set()
    index = 0
    while index < len(predicted):
        both = [predicted[index], predicted[index + 1]] if index + 1 < len(predicted) else []
        for place, goal in enumerate(remaining):
            if graph.leads_to([predicted[index]], goal):
                stands[index] = (predicted[index], goal)
            elif pairs and both and graph.leads_to(both, goal):
                stands[index] = (" + ".join(both), goal)
                second.add(index + 1)
            if index in stands:
                remaining.pop(place)
                break
        index += 2 if index + 1 in second else 1
    for index, word in enumerate(predicted):
        if word in reference and index not in stands and index not in second:
            stands[index] = (word, word)
    named = {goal for _, goal in stands.values()}
    right = second.union(stands)
    return Evidence(
        matched=tuple(stands[index] for index in sorted(stands)),
        hallucinated=tuple(dict.fromkeys(w for i, w in enumerate(predicted) if i not in right)),
        missed=tuple(dict.fromkeys(word for word in reference if word not in named)),
    )
