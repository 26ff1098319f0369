"""Mementos' analyses: correlation of hallucinations, recall by length, co-occurring behaviours.

The functions work on scored items; see section 3.2 of the paper.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from ..framework.agreement import pearson
from ..framework.arrays import np
from ..framework.columns_and_scores import mean_of_known

_MEASURES = ("recall", "precision", "f1")
# Half the width of a normal 95 % interval, in standard errors.
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSequence:
    """A scored item, reduced to what the analyses need."""

    domain: str
    """Domain of the sequence."""
    scores: Mapping[str, float | None]
    """Scores of the item, ``object_recall`` to ``behavior_f1``."""
    episode_length: int | None = None
    """Number of events in the sequence."""
    true_behaviors: tuple[str, ...] = ()
    """Reference behaviours that the description names."""
    hallucinated_behaviors: tuple[str, ...] = ()
    """Hallucinated behaviours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Correlation of object and behaviour scores of one domain (Table 3)."""

    domain: str
    measure: str
    """``recall``, ``precision`` or ``f1``."""
    value: float | None
    """Pearson's coefficient; None for fewer than two sequences, or if either is constant."""
    n: int
    """Number of sequences for which both scores are defined."""


def hallucination_correlation(sequences: Iterable[ScoredSequence]) -> list[Correlation]:
    """Return the correlation of object and behaviour scores over each domain's sequences.

    Table 3 has coefficients for recall, precision and F1 in each domain, but does not name their
    kind. This function computes Pearson's.
    """
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for sequence in sequences:
        for measure in _MEASURES:
            pair = tuple(
                sequence.scores.get(f"{kind}_{measure}") for kind in ("object", "behavior")
            )
            if pair[0] is not None and pair[1] is not None:
                points[sequence.domain, measure].append((pair[0], pair[1]))
    return [
        Correlation(
            domain=domain, measure=measure, value=pearson(*zip(*pairs, strict=True)), n=len(pairs)
        )
        for (domain, measure), pairs in sorted(
            points.items(), key=lambda entry: (entry[0][0], _MEASURES.index(entry[0][1]))
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthPoint:
    """Recall of the sequences of one episode length (Figure 7)."""

    domain: str
    episode_length: int
    """Number of events in the sequence."""
    object_recall: float | None
    """Mean object recall."""
    behavior_recall: float | None
    """Mean behaviour recall."""
    n: int
    """Number of sequences of that length."""


def recall_by_length(sequences: Iterable[ScoredSequence]) -> list[LengthPoint]:
    """Return the mean recall by episode length, which falls if errors accumulate."""
    groups: dict[tuple[str, int], list[ScoredSequence]] = defaultdict(list)
    for sequence in sequences:
        if sequence.episode_length is not None:
            groups[sequence.domain, sequence.episode_length].append(sequence)
    return [
        LengthPoint(
            domain=domain,
            episode_length=length,
            object_recall=mean_of_known(s.scores.get("object_recall") for s in members),
            behavior_recall=mean_of_known(s.scores.get("behavior_recall") for s in members),
            n=len(members),
        )
        for (domain, length), members in sorted(groups.items())
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snowballing:
    """How recall changes with each further event of a sequence (section 3.2, Figure 7)."""

    domain: str
    measure: str
    """``object_recall`` or ``behavior_recall``."""
    slope: float | None
    """Change of recall for one more event, by least squares; None if all lengths are equal."""
    ci_low: float | None
    """Lower end of the 95 % interval."""
    ci_high: float | None
    """Upper end of the interval. Below 0, errors accumulate."""
    n: int
    """Number of sequences."""


def snowballing(sequences: Iterable[ScoredSequence]) -> list[Snowballing]:
    """Return the trend of recall over episode lengths, for each domain.

    The paper draws the curve and names no test. The interval is normal, with a standard error that
    holds for unequal variances (HC1; MacKinnon and White 1985), because recall of long sequences
    varies less than that of short ones.
    """
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for sequence in sequences:
        for measure in ("object_recall", "behavior_recall"):
            recall = sequence.scores.get(measure)
            if sequence.episode_length is not None and recall is not None:
                points[sequence.domain, measure].append((sequence.episode_length, recall))
    return [_trend(*key, found) for key, found in sorted(points.items())]


def _trend(domain: str, measure: str, points: Sequence[tuple[float, float]]) -> Snowballing:
    lengths, recall = np.array(points, dtype=float).T
    around = lengths - lengths.mean()
    spread, count = float(around @ around), len(points)
    slope = float(around @ recall) / spread if spread > 0 else None
    low = high = None
    if slope is not None and count > 2:
        moved = around * (recall - recall.mean() - slope * around)
        error = math.sqrt(float(moved @ moved) * count / (count - 2)) / spread
        low, high = slope - _NORMAL_95 * error, slope + _NORMAL_95 * error
    return Snowballing(
        domain=domain, measure=measure, slope=slope, ci_low=low, ci_high=high, n=count
    )


class BehaviorPairs:
    """Counts of behaviours that occur in the same sequence, by the human descriptions.

    Args:
        episodes: The behaviours of each sequence.
    """

    def __init__(self, episodes: Iterable[Iterable[str]]) -> None:
        self._alone: Counter[str] = Counter()
        self._with: dict[str, Counter[str]] = defaultdict(Counter)
        self.episodes = 0
        for behaviors in episodes:
            different = set(behaviors)
            self.episodes += 1
            self._alone.update(different)
            for one, other in permutations(different, 2):
                self._with[one][other] += 1

    def share(self, companion: str, behavior: str) -> float:
        """Return the share of a behaviour's sequences that also have the companion."""
        alone = self._alone[behavior]
        return self._with[behavior][companion] / alone if alone else 0.0

    def frequency(self, behaviors: Iterable[str]) -> float:
        """Return the share of all behaviours, with repetitions, that are among these."""
        total = self._alone.total()
        return sum(self._alone[behavior] for behavior in behaviors) / total if total else 0.0

    def companions(self, behavior: str, k: int) -> tuple[str, ...]:
        """Return the k behaviours that occur most often with one; ties by name."""
        found = self._with.get(behavior, Counter())
        return tuple(sorted(found, key=lambda name: (-found[name], name))[:k])


@dataclass(frozen=True, slots=True, kw_only=True)
class Companionship:
    """Share of hallucinated behaviours that are usual companions of a true one."""

    domain: str
    value: float | None
    """Share of hallucinated behaviours; None if there are none."""
    expected: float | None
    """The same share for behaviours drawn at random by their frequency."""
    n: int
    """Number of hallucinated behaviours."""


def companions(
    sequences: Iterable[ScoredSequence], pairs: BehaviorPairs, *, k: int = 5
) -> list[Companionship]:
    """Return the share of hallucinated behaviours that are usual companions, by domain.

    The paper describes the effect without a formula; this definition is Hallujudge's.

    Args:
        sequences: Scored sequences; behaviours should be roots of one graph on both sides.
        pairs: Counts of behaviours in the same sequence.
        k: Number of usual companions of a behaviour.
    """
    usual: dict[str, frozenset[str]] = {}
    counts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for sequence in sequences:
        near: set[str] = set()
        true = set(sequence.true_behaviors)
        for behavior in true:
            if behavior not in usual:
                usual[behavior] = frozenset(pairs.companions(behavior, k))
            near |= usual[behavior]
        near -= true
        # A second word for a reference behaviour is not hallucinated.
        made_up = set(sequence.hallucinated_behaviors) - true
        row = counts[sequence.domain]
        row[0] += len(made_up & near)
        row[1] += len(made_up)
        row[2] += len(made_up) * pairs.frequency(near)
    return [
        Companionship(
            domain=domain,
            value=hits / n if n else None,
            expected=chance / n if n else None,
            n=int(n),
        )
        for domain, (hits, n, chance) in sorted(counts.items())
    ]
