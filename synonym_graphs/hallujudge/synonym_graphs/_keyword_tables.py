"""What a graph says about keywords, laid out for matching."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from ._graph import SynonymGraph
from ._words import clean_word

__all__ = [
    "UNCLEAR",
    "WALKED",
    "Aliases",
    "Plan",
    "aliases_of",
    "inverse",
    "plan_of",
    "singular_phrase",
    "tables_of",
    "takings",
]


_SEVERAL: Final = -1
"""Instead of a place: the prediction may take one of several reference keywords."""
_WALK: Final = -2
"""Instead of a place: only a walk tells what the prediction takes."""
WALKED: Final = frozenset((_WALK,))
UNCLEAR: Final = frozenset((_WALK, _SEVERAL))
"""Places of which another prediction may make something else."""


class Plan(NamedTuple):
    """What predictions take of one reference list, worked out beforehand."""

    takes: dict[str, tuple[int, ...]]
    """Prediction -> places of the reference keywords that it names."""
    names_any: Callable[[str], bool]
    """Whether a prediction names a reference keyword."""
    place_of: Callable[[str], int]
    """The place that such a prediction takes, or a number of ``UNCLEAR``."""
    wanted: frozenset[str]
    """The reference keywords."""
    size: int
    """How many they are."""
    special: frozenset[str]
    """Predictions with which only a walk tells the outcome: those that are read together with the
    next one, and reference keywords that lead to others but not to themselves."""
    endless: bool
    """Whether a reference keyword is unknown to the graph, and so is never taken away."""


def plan_of(
    takes: dict[str, tuple[int, ...]],
    wanted: frozenset[str],
    special: AbstractSet[str],
    *,
    endless: bool,
) -> Plan:
    """The plan of a reference list."""
    places = {w: p[0] if len(p) == 1 else _SEVERAL for w, p in takes.items()}
    places |= dict.fromkeys(special, _WALK)
    return Plan(
        takes=takes,
        names_any=places.__contains__,
        place_of=places.__getitem__,
        wanted=wanted,
        size=len(wanted),
        special=frozenset(special),
        endless=endless,
    )


def takings(plan: Plan, hot: Sequence[str]) -> tuple[int, int]:
    """How many reference keywords predictions take, and how many predictions are right."""
    taken: set[int] = set()
    right = 0
    for word in hot:
        for place in plan.takes[word]:
            if place not in taken:
                taken.add(place)
                right += 1
                break
        else:
            # Too late, but spelt like a reference keyword, which is right all the same.
            right += word in plan.wanted
    return len(taken), right


class Aliases(NamedTuple):
    """How words that are written otherwise are found."""

    spelling: Mapping[str, str]
    """Plain spelling -> the graph's own."""
    roots: frozenset[str]
    """Words that some form leads to."""
    all_roots: Mapping[str, tuple[str, ...]]
    """Form -> its roots in the graph's order."""


def tables_of(
    graph: SynonymGraph,
) -> tuple[dict[str, frozenset[str]], dict[tuple[str, str], frozenset[str]]]:
    """Keyword -> roots, and two keywords in a row -> roots."""
    if not graph.pairs:
        # A word always stands for itself too, so that a list matches itself whatever its words.
        return {form: frozenset((form, *roots)) for form, roots in graph.edges}, {}
    singles = {word: frozenset(roots) for word, second, roots in graph.pairs if not second}
    doubles = {
        (word, second): frozenset(roots) for word, second, roots in graph.pairs if second and roots
    }
    return singles, doubles


def inverse(singles: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    """Root -> the forms that lead to it."""
    forms: dict[str, list[str]] = {}
    for form, roots in singles.items():
        for root in roots:
            forms.setdefault(root, []).append(form)
    return {root: tuple(found) for root, found in forms.items()}


def aliases_of(
    graph: SynonymGraph, known: frozenset[str], singles: Mapping[str, frozenset[str]]
) -> Aliases:
    spelling: dict[str, str] = {}
    # Forms before bare roots, and shorter spellings first: " pick up" must not hide "pick up".
    for word in sorted(known, key=lambda word: (word not in singles, len(word), word)):
        spelling.setdefault(clean_word(word), word)
    released = (root for _, second, found in graph.pairs if not second for root in found)
    roots = frozenset(released if graph.pairs else graph.roots)
    entries = ((w, r) for w, second, r in graph.pairs if not second) if graph.pairs else graph.edges
    return Aliases(spelling, roots, {form: found for form, found in entries if found})


def singular_phrase(phrase: str) -> str:
    """A phrase with its last word in the singular."""
    from ._singular import singular

    head, _, last = phrase.rpartition(" ")
    # Longer ones are no words, and the rules would go through them two hundred times.
    return phrase if not last or len(phrase) > 256 else f"{head} {singular(last)}".strip()
