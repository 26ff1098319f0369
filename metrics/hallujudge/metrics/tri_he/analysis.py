"""The Tri-HE paper's analyses, as functions of verdicts that are already there."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from ..framework.claims import ClaimVerdict, Part, Verdict
from ..framework.triplets import Triplet
from .metric import TriHeMetric

__all__ = [
    "FrequentPairs",
    "JudgedAnswer",
    "Rates",
    "Scene",
    "TrendPoint",
    "frequent_pair_rates",
    "is_prediction_error",
    "rates",
    "trend",
]

_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """An answer and the verdicts of its claims."""

    group_id: str
    """Its image."""
    verdicts: tuple[ClaimVerdict, ...]
    """One for each claim, in the order of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Hallucination rates of some answers."""

    hallu_q: float | None
    """Mean over questions; None where no answer has a score."""
    hallu_i: float | None
    """Mean over images."""
    questions: int
    """Answers with a score."""
    images: int
    """Images with such an answer."""
    claims: int
    """Claims of those answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """Rates of the claims within the first words of the answers."""

    words: int
    """How many words."""
    rates: Rates
    """The rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequentPairs:
    """Relation rates of all claims and of those on the most frequent object pairs."""

    original: Rates
    """Of all claims."""
    frequent: Rates
    """Of claims whose pair is among the frequent ones."""
    pairs: tuple[tuple[str, str], ...]
    """Those pairs, the most frequent first."""
    all_pairs: int
    """Distinct pairs in all."""


def rates(answers: Iterable[JudgedAnswer], metric: TriHeMetric, part: str = "") -> Rates:
    """Formulas 1 and 2 of the paper over answers, without intervals.

    Args:
        answers: The answers. Those without a score are left out, as in the report.
        metric: Which variant counts.
        part: Empty for all claims, ``object_`` or ``relation_`` for those with such a part wrong.
    """
    by_image: dict[str, list[float]] = defaultdict(list)
    claims = 0
    for answer in answers:
        if metric.unscored_reason(answer.verdicts) is None:
            rate = metric.score_answer(answer.verdicts).scores[f"{part}hallu_q"]
            by_image[answer.group_id].append(rate or 0.0)
            claims += len(answer.verdicts)
    every = [rate for found in by_image.values() for rate in found]
    return Rates(
        hallu_q=_mean(every),
        hallu_i=_mean([math.fsum(found) / len(found) for found in by_image.values()]),
        questions=len(every),
        images=len(by_image),
        claims=claims,
    )


def _mean(numbers: Sequence[float]) -> float | None:
    return math.fsum(numbers) / len(numbers) if numbers else None


def trend(
    answers: Sequence[JudgedAnswer], metric: TriHeMetric, words: Iterable[int], part: str = ""
) -> tuple[TrendPoint, ...]:
    """Rates over the claims within the first K words of each answer (Figure 3).

    A claim belongs to the first K words when it ends within them. Words are what white space
    separates. The paper cuts at K
    tokens of NLTK, and its script, which has no spans, guesses from vector similarity which claims
    come before the cut; here nothing is guessed. An answer that makes no claim so early drops out
    at that K, as in the paper.

    Args:
        answers: The answers.
        metric: Which variant counts.
        words: The numbers of words, the K of the figure.
        part: As for :func:`rates`.

    Raises:
        ValueError: It isn't known where a claim stands.
    """
    for answer in answers:
        for claim in answer.verdicts:
            if claim.within_words is None:
                raise ValueError(
                    f"the claim {list(claim.triplet)} of image {answer.group_id!r} has no place; "
                    "take claims with an extractor that gives places"
                )
    return tuple(
        TrendPoint(words=k, rates=rates([_first(a, k) for a in answers], metric, part))
        for k in words
    )


def _first(answer: JudgedAnswer, words: int) -> JudgedAnswer:
    early = (c for c in answer.verdicts if c.within_words is not None and c.within_words <= words)
    return JudgedAnswer(group_id=answer.group_id, verdicts=tuple(early))


def frequent_pair_rates(
    answers: Sequence[JudgedAnswer],
    metric: TriHeMetric,
    *,
    share: float = _SHARE,
    canonical: Callable[[str], str] | None = None,
) -> FrequentPairs:
    """Relation rates on the most frequent fifth of object pairs (Table 4).

    Pairs are counted over all claims of all answers, in the order (first, second) that they have
    there, and ranked by count; equal counts in lexical order, so that the result does not depend on
    the order of answers. The share is of distinct pairs, rounded up.

    Args:
        answers: The answers.
        metric: Which variant counts.
        share: The share of pairs that is taken.
        canonical: What makes names of the same object equal. The paper replaces each by the name of
            its WordNet synset. None: letter case and white space don't count.

    Raises:
        ValueError: The share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; give a number above 0 and at most 1")
    name = canonical or _plain
    counts = Counter(
        _pair(claim.triplet, name)
        for answer in answers
        for claim in answer.verdicts
        if isinstance(claim.triplet, Triplet)
    )
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
    taken = ranked[: math.ceil(share * len(ranked) - 1e-9)]
    return FrequentPairs(
        original=rates(answers, metric, "relation_"),
        frequent=rates([_on(answer, set(taken), name) for answer in answers], metric, "relation_"),
        pairs=tuple(taken),
        all_pairs=len(ranked),
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _pair(triplet: Triplet, name: Callable[[str], str]) -> tuple[str, str]:
    return name(triplet.subject), name(triplet.object)


def _on(
    answer: JudgedAnswer, pairs: Collection[tuple[str, str]], name: Callable[[str], str]
) -> JudgedAnswer:
    kept = tuple(
        claim
        for claim in answer.verdicts
        if isinstance(claim.triplet, Triplet) and _pair(claim.triplet, name) in pairs
    )
    return JudgedAnswer(group_id=answer.group_id, verdicts=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A scene graph taken apart, to look parts of claims up in."""

    objects: frozenset[Hashable]
    """Its objects."""
    relations: frozenset[Hashable]
    """Its relations."""
    triplets: frozenset[tuple[Hashable, ...]]
    """Its triplets."""
    canonical: Callable[[str], Hashable]
    """What makes texts that mean the same equal."""

    @classmethod
    def of(
        cls,
        triplets: Iterable[Triplet],
        objects: Iterable[str] = (),
        *,
        canonical: Callable[[str], Hashable] | None = None,
    ) -> Scene:
        """The parts of a scene graph.

        Args:
            triplets: The scene graph.
            objects: Objects of the image beside those that the triplets name.
            canonical: What makes texts that mean the same equal. None: letter case and white space
                don't count.
        """
        name = canonical or _plain
        known = frozenset(tuple(map(name, triplet)) for triplet in triplets)
        return cls(
            objects=frozenset(
                [*map(name, objects), *(t[0] for t in known), *(t[2] for t in known)]
            ),
            relations=frozenset(relation for _, relation, _ in known),
            triplets=known,
            canonical=name,
        )


def is_prediction_error(claim: ClaimVerdict, scene: Scene) -> bool:
    """Whether an unsupported claim is a prediction error rather than a hallucination (section 3.1).

    The paper sets such errors apart: both objects and the relation are in the scene graph, the
    triplet is not. Its rates count them with the others all the same, as its judges don't tell them
    apart; so do ours. A claim whose judge names a wrong object is none.

    Args:
        claim: The claim and its verdict.
        scene: The scene graph of its image.
    """
    if (
        claim.verdict is not Verdict.NOT_SUPPORTED
        or claim.part not in (None, Part.RELATION)
        or not isinstance(claim.triplet, Triplet)
    ):
        return False
    parts = one, relation, other = tuple(map(scene.canonical, claim.triplet))
    paired = parts in scene.triplets
    return {one, other} <= scene.objects and relation in scene.relations and not paired
