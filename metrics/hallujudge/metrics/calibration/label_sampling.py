"""Random samples for labelling: how many labels each stratum gets, and which units are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

LEAST_IN_STRATUM = 5
"""Labels of a stratum, if it has as many units and there are enough; fewer are too uncertain."""

_NORMAL = 1.96


def allocate(
    labels: int, sizes: Sequence[int], spreads: Sequence[float], taken: Sequence[int]
) -> list[int]:
    """Return how many units of each stratum to label in all.

    Neyman's allocation: in proportion to a stratum's size times the standard deviation of its
    labels (On the Two Different Aspects of the Representative Method, 1934). Each stratum gets at
    least those it has, and at least five where there are enough labels for that in all strata.

    Args:
        labels: How many labels there will be, those taken included.
        sizes: Units of each stratum.
        spreads: Expected standard deviation of each stratum's labels.
        taken: Units of each stratum that are drawn already.
    """
    out = _least(labels, sizes, taken)
    wanted = [size * spread for size, spread in zip(sizes, spreads, strict=True)]
    while (left := labels - sum(out)) > 0:
        room = [at for at in range(len(sizes)) if out[at] < sizes[at]]
        if not room:
            break
        # The stratum that is furthest below its share gets the next label.
        total = sum(wanted[at] for at in room) or 1.0
        step = max(1, left // (4 * len(room)))
        at = max(room, key=lambda at: labels * wanted[at] / total - out[at])
        out[at] = min(sizes[at], out[at] + step)
    return out


def _least(labels: int, sizes: Sequence[int], taken: Sequence[int]) -> list[int]:
    """Return the least labels of each stratum: those it has, and up to five if there are enough."""
    for floor in range(LEAST_IN_STRATUM, 0, -1):
        out = [max(min(floor, size), had) for size, had in zip(sizes, taken, strict=True)]
        if sum(out) <= labels:
            return out
    return list(taken)


def drawn_places(size: int, count: int, seed: str) -> list[int]:
    """Return the places of drawn units in a list, in the order in which they are drawn.

    Units of one image are adjacent in the list. Places are van der Corput's sequence, turned
    by a random amount, so that they are spread over the images, each unit has the same chance, and
    a larger sample contains the smaller ones (Cranley and Patterson, Randomization of Number
    Theoretic Methods for Multiple Integration, 1976).

    Args:
        size: Length of the list.
        count: How many to draw.
        seed: Seed of the random turn.
    """
    # A seeded draw, no secret.
    turn = Random(seed).randrange(size) if size else 0  # noqa: S311
    taken: set[int] = set()
    out = []
    for number in range(min(count, size)):
        place = (turn + int(_van_der_corput(number) * size)) % size
        while place in taken:
            place = (place + 1) % size
        taken.add(place)
        out.append(place)
    return out


def _van_der_corput(number: int) -> float:
    """Return the number's binary digits mirrored at the point."""
    out, digit = 0.0, 0.5
    while number:
        out += digit * (number & 1)
        number, digit = number >> 1, digit / 2
    return out


def expected_width(sizes: Sequence[int], rates: Sequence[float], labels: Sequence[int]) -> float:
    """Return how wide the interval of the share of hallucinated claims will be, for the run.

    A stratum without a label counts as if it had one: its share is not known either.

    Args:
        sizes: Units of each stratum.
        rates: Share of each stratum's units that are expected to be hallucinated.
        labels: Labels of each stratum.
    """
    total = sum(sizes)
    variance = sum(
        (size / total) ** 2 * rate * (1 - rate) / max(count, 1) * (1 - count / size)
        for size, rate, count in zip(sizes, rates, labels, strict=True)
        if size
    )
    return 2 * _NORMAL * math.sqrt(variance)
