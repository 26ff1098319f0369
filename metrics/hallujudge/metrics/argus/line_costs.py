"""What lines of a caption cost: unsupported lines, misplaced actions, and actions out of order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from math import inf
from typing import NamedTuple

ORDER_PENALTY = 0.1
"""The cost of a pair of actions out of order; the script ignores its option for it."""
_MOST_SEARCHED = 12


class Target(NamedTuple):
    """A line as its cost depends on it."""

    supported: bool
    """Whether the source caption entails it."""
    action: bool
    """Whether it is a dynamic action."""
    anywhere: bool
    """Whether it costs nothing at any place, once supported: a summary or a description."""
    place: int | None
    """The source line with its evidence; None without one."""

    @property
    def ordered(self) -> bool:
        """Whether its place counts for the order of the lines after it."""
        return self.supported and self.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Lines with their places in the source caption."""

    cost: float
    """The cost of all lines."""
    most: float
    """What the cost is divided by."""
    actions: int
    """Number of supported actions."""
    path: tuple[int, ...]
    """The place of each line; -1 for one without a place."""
    costs: tuple[float, ...]
    """The cost of each line, penalties apart."""
    penalties: tuple[float, ...]
    """Its penalty for the actions before it that are placed after it."""

    @property
    def normalized(self) -> float:
        """The cost as a share of its limit; infinite or NaN if that is 0."""
        if self.most:
            return self.cost / self.most
        return inf if self.cost else float("nan")


class _Cell(NamedTuple):
    """The cheapest way to place the lines so far, with the last one at some source line."""

    cost: float
    before: int
    """The place of the line before the last one."""
    after: tuple[int, ...]
    """For each source line, how many actions so far are placed after it."""


def released_matching(targets: Sequence[Target], sources: int) -> Matching:
    """Return the places that the released dynamic programme finds, and their cost.

    Each cell keeps one path only, which later penalties depend on, so that the cost need not be the
    lowest one. Sums of 0.1 are not exact and can decide: they are added up as the script does.

    Args:
        targets: The lines.
        sources: Number of source lines, at least 1.
    """
    penalties = list(accumulate(repeat(ORDER_PENALTY, len(targets)), initial=0.0))
    cells = [_Cell(0.0, 0, (0,) * sources)] * sources
    steps: list[list[_Cell]] = []
    for target in targets:
        cells = _next(target, cells, penalties)
        steps.append(cells)
        if target.ordered:
            cells = [cell._replace(after=_placed(cell.after, at)) for at, cell in enumerate(cells)]
    last = min(range(sources), key=lambda at: steps[-1][at].cost)
    path = [last]
    for cells in reversed(steps[1:]):
        path.append(cells[path[-1]].before)
    path.reverse()
    actions = sum(target.ordered for target in targets)
    return Matching(
        cost=steps[-1][last].cost,
        most=(len(targets) - actions) + ORDER_PENALTY * ((actions * (actions - 1)) / 2),
        actions=actions,
        path=tuple(path),
        costs=tuple(_base(target, at) for target, at in zip(targets, path, strict=True)),
        penalties=_penalties_of(targets, path, penalties),
    )


def _next(target: Target, cells: Sequence[_Cell], penalties: Sequence[float]) -> list[_Cell]:
    """Return the cells after one more line."""
    # Equal cells lead to equal costs, and the first one counts.
    first: dict[tuple[float, tuple[int, ...]], int] = {}
    for at, cell in enumerate(cells):
        first.setdefault((cell.cost, cell.after), at)
    ordered = sorted((cost, at, after) for (cost, after), at in first.items())
    found = []
    for at in range(len(cells)):
        base = _base(target, at)
        best, before, kept = inf, 0, ordered[0][2]
        for cost, earlier, after in ordered:
            total = cost + base
            # Costs rise from here on, and penalties only add to them.
            if total > best:
                break
            if _is_penalized(target):
                total += penalties[after[at]]
            if total < best or (total == best and earlier < before):
                best, before, kept = total, earlier, after
        found.append(_Cell(best, before, kept))
    return found


def _is_penalized(target: Target) -> bool:
    # The script's comment says "unless it is both"; its code has "and", as here.
    return target.action or target.supported


def _base(target: Target, at: int) -> float:
    if not target.supported:
        return 1.0
    return 0.0 if target.anywhere or at == target.place else 1.0


def _placed(after: tuple[int, ...], at: int) -> tuple[int, ...]:
    """Return the counts with one more action at a place."""
    return (*[count + 1 for count in after[:at]], *after[at:])


def _penalties_of(
    targets: Sequence[Target], path: Sequence[int], penalties: Sequence[float]
) -> tuple[float, ...]:
    made: list[float] = []
    places: list[int] = []
    for target, at in zip(targets, path, strict=True):
        later = sum(place > at for place in places) if _is_penalized(target) else 0
        made.append(penalties[later])
        if target.ordered:
            places.append(at)
    return tuple(made)


def corrected_matching(targets: Sequence[Target]) -> Matching:
    """Return the cheapest cost: lines are at the places of their evidence, or cost 1.

    A line without support costs 1, and so does an action without evidence. Each pair of actions in
    the wrong order costs 0.1, of which the later line bears the cost. Taking an action out of the
    order costs 1 as well, which is cheaper if it is in more than ten such pairs. The limit is what
    all lines cost if every action is out of order with all others, so that it is never exceeded.

    Args:
        targets: The lines.
    """
    placed = {n: t.place for n, t in enumerate(targets) if t.ordered and t.place is not None}
    left = placed.keys() - _taken_out(placed)
    costs = tuple(
        float(not t.supported or not (t.anywhere or n in left)) for n, t in enumerate(targets)
    )
    penalties = [0.0] * len(targets)
    seen: list[int] = []
    for number in sorted(left):
        place = placed[number]
        at = bisect_left(seen, place + 1)
        penalties[number] = ORDER_PENALTY * (len(seen) - at)
        seen.insert(at, place)
    actions = len(placed)
    pairs = actions * (actions - 1) // 2
    wrong = round(sum(penalties) / ORDER_PENALTY)
    return Matching(
        cost=sum(costs) + ORDER_PENALTY * wrong,
        most=(len(targets) - actions) + ORDER_PENALTY * pairs,
        actions=actions,
        path=tuple(placed.get(n, -1) for n in range(len(targets))),
        costs=costs,
        penalties=tuple(penalties),
    )


def _taken_out(placed: Mapping[int, int]) -> frozenset[int]:
    """Return the actions that are cheaper out of the order: exactly for up to twelve, else nearly.

    One that is in ten wrong pairs or fewer never is, whichever others are taken out.
    """
    pairs = {
        n: frozenset(m for m in placed if (m - n) * (placed[m] - placed[n]) < 0) for n in placed
    }
    worth = 1 / ORDER_PENALTY
    chosen = sorted(n for n in pairs if len(pairs[n]) > worth)
    if len(chosen) > _MOST_SEARCHED:
        out: set[int] = set()
        while len(pairs[worst := max(chosen, key=lambda n: len(pairs[n] - out))] - out) > worth:
            out.add(worst)
            chosen.remove(worst)
        return frozenset(out)
    best, taken = inf, frozenset[int]()
    for bits in range(1 << len(chosen)):
        out = {n for at, n in enumerate(chosen) if bits >> at & 1}
        wrong = sum(len(pairs[n] - out) for n in pairs if n not in out) // 2
        # In tenths, which are exact.
        if (cost := len(out) * worth + wrong) < best:
            best, taken = cost, frozenset(out)
    return taken
