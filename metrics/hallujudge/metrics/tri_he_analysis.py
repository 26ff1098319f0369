"""The Tri-HE paper's analyses, as functions of verdicts that are already there."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from .evidence_tri_he import ClaimVerdict, Part, Verdict
from .tri_he import TriHeMetric
from .triplets import Triplet

__all__ = [
    "FrequentPairs",
    "JudgedAnswer",
    "Rates",
    "TrendPoint",
    "end_of_words",
    "frequent_pair_rates",
    "is_prediction_error",
    "prediction_errors",
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
    response: str = ""
    """Its text; the trend needs it."""


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
        metric: Which reading counts.
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


def end_of_words(response: str, words: int) -> int:
    """Where the first words of a response end: one past the last character.

    Args:
        response: The text.
        words: How many words, as white space separates them.
    """
    end = 0
    for _ in range(words):
        while end < len(response) and response[end].isspace():
            end += 1
        while end < len(response) and not response[end].isspace():
            end += 1
    return end


def trend(
    answers: Sequence[JudgedAnswer], metric: TriHeMetric, words: Iterable[int], part: str = ""
) -> tuple[TrendPoint, ...]:
    """Rates over the claims within the first K words of each answer (Figure 3).

    A claim belongs to the first K words when it ends within them, by its span. The paper cuts at K
    tokens of NLTK, and its script, which has no spans, guesses from vector similarity which claims
    come before the cut; here nothing is guessed. An answer that makes no claim so early drops out
    at that K, as in the paper.

    Args:
        answers: The answers, with their text.
        metric: Which reading counts.
        words: The numbers of words, the K of the figure.
        part: As for :func:`rates`.

    Raises:
        ValueError: A claim has no span.
    """
    for answer in answers:
        for claim in answer.verdicts:
            if claim.span is None:
                raise ValueError(
                    f"the claim {list(claim.triplet)} of image {answer.group_id!r} has no span; "
                    "take claims with an extractor that gives spans"
                )
    return tuple(
        TrendPoint(words=k, rates=rates([_first(a, k) for a in answers], metric, part))
        for k in words
    )


def _first(answer: JudgedAnswer, words: int) -> JudgedAnswer:
    end = end_of_words(answer.response, words)
    early = tuple(claim for claim in answer.verdicts if claim.span and claim.span[1] <= end)
    return JudgedAnswer(group_id=answer.group_id, verdicts=early, response=answer.response[:end])


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
        metric: Which reading counts.
        share: The share of pairs that is taken.
        canonical: What makes names of the same object equal. The paper replaces each by the name of
            its WordNet synset. None: letter case and white space don't count.

    Raises:
        ValueError: The share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; give a number above 0 and at most 1")
    name = canonical or (lambda text: " ".join(text.casefold().split()))
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


def _pair(triplet: Triplet, name: Callable[[str], str]) -> tuple[str, str]:
    return name(triplet.object1), name(triplet.object2)


def _on(
    answer: JudgedAnswer, pairs: Collection[tuple[str, str]], name: Callable[[str], str]
) -> JudgedAnswer:
    kept = tuple(
        claim
        for claim in answer.verdicts
        if isinstance(claim.triplet, Triplet) and _pair(claim.triplet, name) in pairs
    )
    return JudgedAnswer(group_id=answer.group_id, verdicts=kept, response=answer.response)


def is_prediction_error(
    triplet: Triplet,
    references: Iterable[Triplet],
    objects: Collection[str] = (),
    *,
    same: Callable[[str, str], bool] | None = None,
) -> bool:
    """Whether all parts of a triplet exist in the image, but not so paired (section 3.1).

    The paper sets such errors apart from hallucination: both objects and the relation are in the
    scene graph, the triplet is not.

    Args:
        triplet: The claim.
        references: The scene graph.
        objects: Objects of the image beside those that the triplets name.
        same: Whether two texts mean the same. None: letter case and white space don't count.
    """
    means = same or (lambda one, other: one.casefold().split() == other.casefold().split())
    graph = tuple(references)
    names = [*objects, *(end for found in graph for end in (found.object1, found.object2))]
    exist = all(
        any(means(end, name) for name in names) for end in (triplet.object1, triplet.object2)
    ) and any(means(triplet.relation, found.relation) for found in graph)
    return exist and not any(
        all(means(mine, theirs) for mine, theirs in zip(triplet, found, strict=True))
        for found in graph
    )


def prediction_errors(
    verdicts: Iterable[ClaimVerdict],
    references: Sequence[Triplet],
    objects: Collection[str] = (),
    *,
    same: Callable[[str, str], bool] | None = None,
) -> tuple[ClaimVerdict, ...]:
    """The unsupported claims that are prediction errors rather than hallucinations.

    The paper's rates count them with the others, as its judges don't tell them apart; so do ours.

    Args:
        verdicts: The verdicts of an answer's claims.
        references: The scene graph of its image.
        objects: Objects of the image beside those that the triplets name.
        same: As for :func:`is_prediction_error`.
    """
    return tuple(
        claim
        for claim in verdicts
        if claim.verdict is Verdict.NOT_SUPPORTED
        and claim.part in (None, Part.RELATION)
        and isinstance(claim.triplet, Triplet)
        and is_prediction_error(claim.triplet, references, objects, same=same)
    )
