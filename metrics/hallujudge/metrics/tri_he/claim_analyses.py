"""The Tri-HE paper's analyses, as functions of existing verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from ..framework.arrays import BoolArray, FloatArray, np
from ..framework.claims import ClaimVerdict, Part, Triplet, Verdict
from ..framework.columns_and_scores import mean_of_known
from ..framework.results import UnscoredReason
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


class ClaimTable:
    """The verdicts of many answers as columns, over which rates are sums.

    Rates are those of :meth:`TriHeMetric.score_answer`, for thousands of answers at once.

    Args:
        answers: The answers.
        metric: The metric with its variant.
    """

    def __init__(self, answers: Sequence[JudgedAnswer], metric: TriHeMetric) -> None:
        self._metric = metric
        self._answers = len(answers)
        images: dict[str, int] = {}
        self._image = np.array(
            [images.setdefault(answer.group_id, len(images)) for answer in answers], dtype=np.intp
        )
        sizes = [len(answer.verdicts) for answer in answers]
        self._owner = np.repeat(np.arange(len(answers), dtype=np.intp), sizes)
        self.claims: tuple[ClaimVerdict, ...] = tuple(
            chain.from_iterable(answer.verdicts for answer in answers)
        )
        """All claims, answer by answer."""
        # One column of codes for the verdict and the wrong part: claims are many.
        codes = np.array([_code(claim) for claim in self.claims], dtype=np.int8)
        self._missing = codes <= _ARCHIVED
        self._archived = codes == _ARCHIVED
        counted = np.array([metric.is_hallucinated(claim) for claim in self.claims], dtype=bool)
        self._wrong = (codes >= _NAMELESS) & counted
        self._nameless = (codes == _NAMELESS) & counted
        # Prediction errors have no wrong object, so that these count in every variant.
        self._objects = codes == _OBJECT
        self._weights = np.array(self._soft_weights()) if metric.is_soft else self._wrong

    def _soft_weights(self) -> list[float]:
        """Return what each claim adds: its probability of being wrong, or 0 or 1 by its verdict."""
        weight, unscored = self._metric.soft_weight, Verdict.UNSCORED
        return [0.0 if claim.verdict is unscored else weight(claim) for claim in self.claims]

    def rates(self, chosen: BoolArray | None = None) -> dict[str, Rates]:
        """Return formulas 1 and 2 of the paper, without intervals.

        Answers without a score are left out, as in the report.

        Args:
            chosen: Whether each claim counts; None if all do.

        Returns:
            Empty for all claims, ``object_`` and ``relation_`` for those with such a part wrong ->
            rates.
        """
        sums, of = self._sums(chosen)
        scored = self._scored(of)
        claims = int(of["claims"][scored].sum())
        image = self._image[scored]
        sizes = np.bincount(image)
        # An image none of whose answers has a score has no mean.
        shown = sizes > 0
        made = {}
        for part, values in sums.items():
            every = values[scored]
            means = np.bincount(image, weights=every)[shown] / sizes[shown]
            made[part] = Rates(
                hallu_q=mean_of_known(every.tolist()),
                hallu_i=mean_of_known(means.tolist()),
                questions=len(every),
                images=int(shown.sum()),
                claims=claims,
            )
        return made

    def rate_of_each(self) -> dict[str, list[float | None]]:
        """Return each answer's own rates, by part as in :meth:`rates`; None without a score."""
        sums, of = self._sums(None)
        scored = self._scored(of).tolist()
        return {
            part: [
                value if known else None for value, known in zip(row.tolist(), scored, strict=True)
            ]
            for part, row in sums.items()
        }

    def _sums(
        self, chosen: BoolArray | None
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Return each answer's rate by part, 0 for one without claims, and its counts by name."""
        mask = np.ones(len(self.claims), dtype=bool) if chosen is None else chosen

        def total(column: FloatArray | BoolArray) -> FloatArray:
            # Without any claim, numpy returns whole numbers.
            sums = np.bincount(self._owner, weights=column * mask, minlength=self._answers)
            return sums.astype(np.float64)

        published = self._metric.variant == "published"
        wrong, objects = total(self._wrong), total(self._objects)
        of = {
            "claims": total(mask),
            "missing": total(self._missing),
            "archived": total(self._archived),
        }
        # As in TriHeMetric: published counts claims without a verdict, and every other wrong claim
        # as a wrong relation.
        among = of["claims"] - (0 if published else of["missing"])
        numerators = {
            "": total(self._weights),
            "object_": objects,
            "relation_": wrong - objects - (0 if published else total(self._nameless)),
        }
        rates = {
            part: np.divide(number, among, out=np.zeros_like(among), where=among > 0)
            for part, number in numerators.items()
        }
        return rates, of

    def _scored(self, of: Mapping[str, FloatArray]) -> BoolArray:
        """Return which answers have a score, as :meth:`TriHeMetric.unscored_reason` says."""
        known: BoolArray = of["missing"] < of["claims"]
        if self._metric.variant == "published":
            # A null of an archive is a verdict of the authors' judge; others are missing ones.
            known = known | (of["archived"] == of["missing"])
        some: BoolArray = of["claims"] > 0
        return known & some


# In this order, as codes are compared with one kind and those before or after it.
_MISSING, _ARCHIVED, _SUPPORTED, _NAMELESS, _OBJECT, _RELATION = range(6)


def _code(claim: ClaimVerdict) -> int:
    if claim.verdict is Verdict.SUPPORTED:
        return _SUPPORTED
    if claim.verdict is Verdict.UNSCORED:
        return _ARCHIVED if claim.reason == UnscoredReason.VERDICT_NULL else _MISSING
    if claim.part is None:
        return _NAMELESS
    return _OBJECT if claim.part.is_object else _RELATION


def trend(table: ClaimTable, words: Iterable[int]) -> list[tuple[int, dict[str, Rates]]]:
    """Return rates over the claims within the first K words of each answer (Figure 3).

    A claim belongs to the first K words if it ends within them. White space separates words. The
    paper cuts at K tokens of NLTK. Its script has no spans and guesses from vector similarity which
    claims come before the cut; here the spans decide, and claims without one are left out. An
    answer without a claim in its first K words is left out at that K, as in the paper.

    Args:
        table: The verdicts.
        words: The numbers of words, the K of the figure.

    Returns:
        Each K with its rates by part.
    """
    ends = np.array([math.inf if c.within_words is None else c.within_words for c in table.claims])
    return [(k, table.rates(ends <= k)) for k in words]


def frequent_pair_rates(
    table: ClaimTable,
    *,
    share: float = _SHARE,
    canonical: Callable[[str], str] | None = None,
) -> FrequentPairs:
    """Return relation rates on the most frequent fifth of object pairs (Table 4).

    Ordered pairs (subject, object) are counted over all claims of all answers and ranked by count.
    Ties are in lexical order, so that the order of answers does not matter. The share is of
    distinct pairs, rounded up.

    Args:
        table: The verdicts.
        share: Share of the pairs that count as frequent.
        canonical: Maps names of the same object to one name. The paper uses the name of the WordNet
            synset. By default, letter case and white space are ignored.

    Raises:
        ValueError: The share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; give a number above 0 and at most 1")
    # The same few names are in most claims.
    name = cache(canonical or _plain)
    pairs = [
        (name(claim.triplet.subject), name(claim.triplet.object))
        if isinstance(claim.triplet, Triplet)
        else None
        for claim in table.claims
    ]
    counts = Counter(pair for pair in pairs if pair is not None)
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
    # 0.07 * 100 is just above 7 in floating point, and its ceiling would be 8.
    taken = ranked[: math.ceil(share * len(ranked) - 1e-9)]
    frequent = set(taken)
    return FrequentPairs(
        original=table.rates()["relation_"],
        frequent=table.rates(np.array([pair in frequent for pair in pairs], dtype=np.bool_))[
            "relation_"
        ],
        pairs=tuple(taken),
        all_pairs=len(ranked),
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The parts of a scene graph, for looking up parts of claims."""

    objects: frozenset[Hashable]
    relations: frozenset[Hashable]
    triplets: frozenset[tuple[Hashable, ...]]
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
    rates include them; only those of the variant ``definition`` do not. A claim with a wrong object
    is not a prediction error.

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
