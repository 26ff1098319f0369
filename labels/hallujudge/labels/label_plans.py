"""Plans of what to label next: a random sample, stratified by verdict and margin."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from hallujudge.metrics.framework.json_values import file_text
from hallujudge.sdk.archives.stored_files import read_stored
from hallujudge.sdk.errors import InvalidInputError

from .verdicts import DecidedItem

By: TypeAlias = Literal["claim", "item"]

# Before any label: one verdict in five is wrong. MiniLM's and Llama's verdicts on Tri-HE's known
# claims are wrong more and less often than that (docs/explanation/tri-he-validation.md).
_ASSUMED_ERROR = 0.2
_BINS = 3
# Ten labels for each of six strata: two verdicts, by thirds of the margin.
_LEAST_FOR_BINS = 60
_MOST = 100_000
# Numbers of further labels whose gain is shown.
_STEPS = (100, 200, 300, 400)
# Labels of a stratum, if it has as many units and there are enough; fewer are too uncertain.
_LEAST_IN_STRATUM = 5
# The 97.5 % quantile of the normal distribution: widths are those of 95 % intervals.
_NORMAL = 1.96


class Unit(NamedTuple):
    """A claim or an item that may be drawn."""

    item: str
    """Id of the item."""
    claim: int | None
    """Place of the claim in the item's evidence; None for a whole item."""
    cluster: str
    """Its image or video."""
    hallucinated: bool
    """The verdict."""
    margin: float | None
    """How sure the judge is, the least of an item's claims; None if unknown."""
    text: str
    """The claim, or the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStratum:
    """Units with one verdict and a similar margin; each has the same chance to be drawn."""

    verdict: str
    """``supported`` or ``not_supported``."""
    low: float | None
    """Smallest margin; None without margins."""
    high: float | None
    """Margin below which they are; None without a limit."""
    units: int
    """How many units it has."""
    drawn: int
    """How many of them are to be labelled."""

    def holds(self, unit: Unit) -> bool:
        """Return whether a unit belongs to it."""
        if unit.hallucinated != (self.verdict == "not_supported"):
            return False
        if self.low is None:
            return True
        margin = max(unit.margin or 0.0, 0.0)
        return self.low <= margin and (self.high is None or margin < self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedUnit:
    """A claim or an item to label."""

    item: str
    """Id of the item."""
    claim: int | None
    """Place of the claim in the item's evidence; None for a whole item."""
    stratum: int
    """Place of its stratum."""
    text: str
    """The claim, or the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The precision that a number of labels achieves."""

    labels: int
    """How many labels."""
    width: float
    """Expected width of the interval of the share of hallucinated units, for this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """What to label: a random sample of a run."""

    signature: str
    """Signature of the run."""
    by: By
    """What is drawn: claims, or items with all their claims."""
    seed: int
    """Seed of the random numbers."""
    strata: tuple[PlanStratum, ...]
    """The strata with their numbers, which give each label its weight."""
    units: tuple[PlannedUnit, ...]
    """What to label, in the order in which it was drawn."""
    gains: tuple[Gain, ...]
    """What these labels and more would give."""

    def stratum_of(self, unit: Unit) -> int:
        """Return the place of a unit's stratum.

        Raises:
            InvalidInputError: The plan is of another run.
        """
        for place, stratum in enumerate(self.strata):
            if stratum.holds(unit):
                return place
        raise InvalidInputError(
            f"item {unit.item!r:.80} is in no stratum of the plan; plan labels of this run again"
        )

    def to_text(self) -> str:
        """Return the text of the plan's file."""
        return file_text("label-plan", asdict(self))


def units_of(items: Iterable[DecidedItem], by: By) -> list[Unit]:
    """Return what may be drawn of a run: claims with a verdict, or items with one."""
    out = []
    for item in items:
        decided = [claim for claim in item.claims if claim.hallucinated is not None]
        if by == "claim":
            out += [
                Unit(item.id, c.index, item.cluster, bool(c.hallucinated), c.margin, c.text)
                for c in decided
            ]
        elif item.hallucinated is not None:
            known = [c.margin for c in decided if c.margin is not None]
            # An item is wrong as soon as one of its claims is: the least sure one decides.
            margin = min(known, default=None)
            out.append(Unit(item.id, None, item.cluster, item.hallucinated, margin, item.response))
    return out


def plan_labels(
    items: Iterable[DecidedItem],
    *,
    signature: str,
    count: int,
    by: By = "claim",
    seed: int = 0,
    before: LabelPlan | None = None,
    truths: Mapping[tuple[str, int | None], bool] | None = None,
) -> LabelPlan:
    """Return what to label next.

    Args:
        items: The items of the run.
        signature: The run's signature.
        count: How many units to draw.
        by: Whether to draw claims, or items with all their claims.
        seed: Seed of the random numbers.
        before: An earlier plan of the run, which is extended; its strata and seed are kept.
        truths: Labels of units so far. They show which strata have errors, and get more labels.

    Raises:
        InvalidInputError: The number is out of range, the run has nothing to label, or the earlier
            plan is of another run.
    """
    if not 1 <= count <= _MOST:
        raise InvalidInputError(f"count is {count}; give a number from 1 to {_MOST:,}")
    if before is not None and before.signature != signature:
        raise InvalidInputError(
            "the earlier plan is of another run; give another --out, or delete the plan"
        )
    # An extended plan draws as it began: its units would have two chances otherwise.
    by, seed = (before.by, before.seed) if before else (by, seed)
    units = units_of(items, by)
    if not units:
        raise InvalidInputError("the run has no verdicts to label; score items with claims first")
    # Other strata would give the labels that exist already other weights.
    strata = before.strata if before else tuple(_strata(units, count))
    empty = LabelPlan(signature=signature, by=by, seed=seed, strata=strata, units=(), gains=())
    return _drawn(empty, units, count, truths or {})


def _strata(units: Sequence[Unit], count: int) -> Iterable[PlanStratum]:
    """Yield strata by verdict, and by thirds of the margin where it is known."""
    for verdict in (False, True):
        here = [unit for unit in units if unit.hallucinated == verdict]
        # Negative margins count as 0, as PlanStratum.holds reads them.
        margins = sorted(max(unit.margin, 0.0) for unit in here if unit.margin is not None)
        # Thirds only if all margins are known: claims without one would all be in the least sure
        # third.
        bins = _BINS if len(margins) == len(here) and count >= _LEAST_FOR_BINS else 1
        # A set: where many margins are equal, two thirds may end at the same one.
        cuts = sorted({margins[len(margins) * k // bins] for k in range(1, bins)}) if here else []
        known = bins > 1
        lows = [0.0, *(cut for cut in cuts if cut > 0)] if known else [None]
        for low, high in zip(lows, [*lows[1:], None], strict=True):
            name = "not_supported" if verdict else "supported"
            stratum = PlanStratum(verdict=name, low=low, high=high, units=0, drawn=0)
            if size := sum(map(stratum.holds, here)):
                yield replace(stratum, units=size)


def _drawn(
    empty: LabelPlan,
    units: Sequence[Unit],
    count: int,
    truths: Mapping[tuple[str, int | None], bool],
) -> LabelPlan:
    """Return the plan with what is drawn, and with the gains of drawing more."""
    strata = empty.strata
    members: dict[int, list[Unit]] = defaultdict(list)
    for unit in units:
        members[empty.stratum_of(unit)].append(unit)
    sizes = [len(members[place]) for place in range(len(strata))]
    taken = [stratum.drawn for stratum in strata]
    rates = [_rate(strata[place], members[place], truths) for place in range(len(strata))]
    # The standard deviation of a label that is 1 with this rate, as Neyman's allocation needs it.
    spreads = [(rate * (1 - rate)) ** 0.5 for rate in rates]
    # A run may have fewer units than are asked for.
    total = min(sum(taken) + count, sum(sizes))
    numbers = allocate(total, sizes, spreads, taken)
    chosen = [
        # Labels are joined by fewer characters than 400 (_COMPARED of human_labels).
        PlannedUnit(item=unit.item, claim=unit.claim, stratum=place, text=unit.text[:400])
        for place in range(len(strata))
        # A seed for each stratum, so that they are drawn independently of each other.
        for unit in _first(members[place], numbers[place], f"{empty.seed}/{place}")
    ]
    gains = []
    # What is drawn now stays drawn: these are the gains of extending the plan.
    for more in (0, *_STEPS):
        given = allocate(min(total + more, sum(sizes)), sizes, spreads, numbers)
        width = expected_width(sizes, rates, given)
        gains.append(Gain(labels=sum(given), width=round(width, 6)))
    return replace(
        empty,
        strata=tuple(
            replace(stratum, units=size, drawn=number)
            for stratum, size, number in zip(strata, sizes, numbers, strict=True)
        ),
        units=tuple(chosen),
        # Small runs are labelled in full by the first steps; the further ones are equal.
        gains=tuple(dict.fromkeys(gains)),
    )


def _rate(
    stratum: PlanStratum, units: Sequence[Unit], truths: Mapping[tuple[str, int | None], bool]
) -> float:
    """Return the share of a stratum's units that are hallucinated, by labels or as assumed.

    Half a label of each kind is added, as Jeffreys' prior does, so that no share is 0 or 1.
    """
    known = [truths[unit[:2]] for unit in units if unit[:2] in truths]
    if known:
        return (sum(known) + 0.5) / (len(known) + 1)
    return 1 - _ASSUMED_ERROR if stratum.verdict == "not_supported" else _ASSUMED_ERROR


def _first(units: Sequence[Unit], count: int, seed: str) -> list[Unit]:
    """Return the units that are drawn, spread over images in random order."""
    clusters = sorted({unit.cluster for unit in units})
    # Shuffled, since images with similar names may be of one source.
    Random(seed).shuffle(clusters)  # noqa: S311 - a seeded draw, no secret
    place = {cluster: at for at, cluster in enumerate(clusters)}
    ordered = sorted(units, key=lambda unit: place[unit.cluster])
    return [ordered[at] for at in drawn_places(len(ordered), count, seed)]


def read_plan(path: str | Path) -> LabelPlan:
    """Return the plan of a file.

    Raises:
        ArchiveError: The file is not a plan.
    """
    what = "a plan of hallujudge label plan"
    return read_stored(Path(path), LabelPlan, "label-plan", what, "plan again")


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
        # A quarter of an even share at a time: exact enough, and few rounds for many labels.
        step = max(1, left // (4 * len(room)))
        at = max(room, key=lambda at: labels * wanted[at] / total - out[at])
        out[at] = min(sizes[at], out[at] + step)
    return out


def _least(labels: int, sizes: Sequence[int], taken: Sequence[int]) -> list[int]:
    """Return the least labels of each stratum: those it has, and up to five if there are enough."""
    for floor in range(_LEAST_IN_STRATUM, 0, -1):
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
        # Rounding may lead two numbers to one place; the next free one is drawn then.
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
    # The last factor is the finite population's: a stratum labelled in full has no error left.
    variance = sum(
        (size / total) ** 2 * rate * (1 - rate) / max(count, 1) * (1 - count / size)
        for size, rate, count in zip(sizes, rates, labels, strict=True)
        if size
    )
    return 2 * _NORMAL * math.sqrt(variance)
