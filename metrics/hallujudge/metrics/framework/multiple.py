"""Several tests at once: Holm's correction, and letters for what tests can't tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["compact_letters", "holm"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values corrected for their number (Holm, 1979).

    The chance of one or more false findings among all of them is at most the level, however the
    tests depend on each other.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return tuple(corrected)


def compact_letters(count: int, different: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return letters for things by rank; two that share a letter can't be told apart.

    Insert and absorb (Piepho, An Algorithm for a Letter-Based Representation of All-Pairwise
    Comparisons, 2004).

    Args:
        count: How many things there are.
        different: Pairs of ranks, counted from 0, that a test tells apart.
    """
    groups = [frozenset(range(count))] if count else []
    for one, other in sorted(different):
        split = (
            part
            for group in groups
            for part in ((group - {one}, group - {other}) if {one, other} <= group else (group,))
        )
        groups = _absorbed(split)
    groups.sort(key=sorted)
    return tuple(
        "".join(_letter(at) for at, group in enumerate(groups) if rank in group)
        for rank in range(count)
    )


def _absorbed(groups: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Return the distinct groups that are not part of another."""
    distinct = list(dict.fromkeys(groups))
    return [group for group in distinct if not any(group < other for other in distinct)]


def _letter(at: int) -> str:
    """Return the letter of a group: a to z, then a1 to z1, and so on."""
    turn, place = divmod(at, len(_LETTERS))
    return _LETTERS[place] + (str(turn) if turn else "")
