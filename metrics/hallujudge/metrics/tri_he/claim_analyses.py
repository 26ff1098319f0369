"""The Tri-HE paper's analyses, as functions of existing verdicts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from ..framework.claims import ClaimVerdict, Part, Triplet, Verdict
from ..framework.columns_and_scores import mean_of_known
from . import TriHeMetric

# Table 4 is about the 20 % most frequent pairs.
_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """An answer and the verdicts of its claims."""

    group_id: str
    """Id of the image."""
    verdicts: tuple[ClaimVerdict, ...]
    """One verdict for each claim, in the order of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Hallucination rates of some answers."""

    hallu_q: float | None
    """Mean over questions; None if no answer has a score."""
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
    """Number of words."""
    rates: Rates
    """Rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequentPairs:
    """Relation rates of all claims and of those on the most frequent object pairs."""

    original: Rates
    """Rate over all claims."""
    frequent: Rates
    """Rate over claims whose pair is among the frequent ones."""
    pairs: tuple[tuple[str, str], ...]
    """The frequent pairs, the most frequent first."""
    all_pairs: int
    """Number of distinct pairs."""


def rates(answers: Iterable[JudgedAnswer], metric: TriHeMetric, part: str = "") -> Rates:
    """Return formulas 1 and 2 of the paper over answers, without intervals.

    Args:
        answers: The answers. Those without a score are left out, as in the report.
        metric: The metric with its variant.
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
        hallu_q=mean_of_known(every),
        hallu_i=mean_of_known([math.fsum(found) / len(found) for found in by_image.values()]),
        questions=len(every),
        images=len(by_image),
        claims=claims,
    )


def trend(
    answers: Sequence[JudgedAnswer], metric: TriHeMetric, words: Iterable[int], part: str = ""
) -> tuple[TrendPoint, ...]:
    """Return rates over the claims within the first K words of each answer (Figure 3).

    A claim belongs to the first K words if it ends within them. White space separates words. The
    paper cuts at K tokens of NLTK. Its script has no spans and guesses from vector similarity which
    claims come before the cut; here the spans decide. An answer without a claim in its first K
    words is left out at that K, as in the paper.

    Args:
        answers: The answers.
        metric: Which variant counts.
        words: The numbers of words, the K of the figure.
        part: As for :func:`rates`.

    Raises:
        ValueError: The position of a claim is unknown.
    """
    for answer in answers:
        for claim in answer.verdicts:
            if claim.within_words is None:
                raise ValueError(
                    f"the claim {list(claim.triplet)} of image {answer.group_id!r} has no "
                    "position; use an extractor that reports positions, such as rules"
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
    """Return relation rates on the most frequent fifth of object pairs (Table 4).

    Ordered pairs (subject, object) are counted over all claims of all answers and ranked by count.
    Ties are in lexical order, so that the order of answers does not matter. The share is of
    distinct pairs, rounded up.

    Args:
        answers: The answers.
        metric: Which variant counts.
        share: Share of the pairs that count as frequent.
        canonical: Maps names of the same object to one name. The paper uses the name of the WordNet
            synset. By default, letter case and white space are ignored.

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
    # 0.07 * 100 is just above 7 in floating point, and its ceiling would be 8.
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
    """The parts of a scene graph, for looking up parts of claims."""

    objects: frozenset[Hashable]
    """Its objects."""
    relations: frozenset[Hashable]
    """Its relations."""
    triplets: frozenset[tuple[Hashable, ...]]
    """Its triplets."""
    canonical: Callable[[str], Hashable]
    """Maps texts with the same meaning to one text."""

    @classmethod
    def of(
        cls,
        triplets: Iterable[Triplet],
        objects: Iterable[str] = (),
        *,
        canonical: Callable[[str], Hashable] | None = None,
    ) -> Scene:
        """Return the parts of a scene graph.

        Args:
            triplets: The scene graph.
            objects: Further objects of the image, which the triplets do not name.
            canonical: Maps texts with the same meaning to one text. By default, letter case and
                white space are ignored.
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
    """Return whether an unsupported claim is a prediction error (section 3.1).

    The paper distinguishes prediction errors from hallucinations: subject, object and relation are
    in the scene graph, but the triplet is not. Its judges do not distinguish them, so its
    rates include them; so do these. A claim with a wrong object is not a prediction error.

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
