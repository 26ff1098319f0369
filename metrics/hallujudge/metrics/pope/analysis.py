"""POPE's analyses: what is hallucinated, how stable answers are, whether captions agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .build import ObjectCounts
from .metric import PopeCounts, PopeMetric

__all__ = [
    "Consistency",
    "HitRatio",
    "ParserComparison",
    "Stability",
    "accumulated_proportions",
    "caption_consistency",
    "hit_ratio_by_company",
    "hit_ratio_by_frequency",
    "parser_comparison",
    "template_stability",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRatio:
    """How many hallucinated objects are among the k most frequent ones."""

    k: int
    """How many objects count as frequent."""
    value: float | None
    """The mean over images; None where no image has a hallucinated object."""
    n: int
    """Images with a hallucinated object, which the mean is over."""


def hit_ratio_by_frequency(
    hallucinated: Iterable[Collection[str]], counts: ObjectCounts, ks: Sequence[int] = (10, 20, 30)
) -> list[HitRatio]:
    """HR_A@k (papers/pope.txt, formula 3).

    The mean over images of the share of an image's hallucinated objects that are among the k
    objects that most images show. Formula 3 divides by all images, and has nothing to divide for
    one without hallucination; those are left out here.

    Args:
        hallucinated: For each image, the different objects that its caption makes up.
        counts: How frequent objects are; the paper counts in MSCOCO and prints no list.
        ks: The values of k.
    """
    return _hit_ratios(list(hallucinated), counts.by_frequency(), ks)


def hit_ratio_by_company(
    hallucinated: Mapping[str, Collection[str]],
    shown: Mapping[str, Collection[str]],
    probe: str,
    counts: ObjectCounts,
    ks: Sequence[int] = (10, 20, 30),
) -> list[HitRatio]:
    """HR_C@k(o) (papers/pope.txt, formula 4): over images that show object o, by its company.

    Args:
        hallucinated: Image -> the different objects that its caption makes up.
        shown: Image -> the objects that it shows.
        probe: The object o.
        counts: How often objects stand with it.
        ks: The values of k.
    """
    rows = [names for image, names in hallucinated.items() if probe in shown.get(image, ())]
    ranked = [name for name in counts.by_company([probe]) if name != probe]
    return _hit_ratios(rows, ranked, ks)


def _hit_ratios(
    rows: Sequence[Collection[str]], ranked: Sequence[str], ks: Sequence[int]
) -> list[HitRatio]:
    sets = [set(row) for row in rows if row]
    out = []
    for k in ks:
        top = set(ranked[:k])
        shares = [len(names & top) / len(names) for names in sets]
        value = math.fsum(shares) / len(shares) if shares else None
        out.append(HitRatio(k=k, value=value, n=len(shares)))
    return out


def accumulated_proportions(
    hallucinated: Iterable[Iterable[str]],
    ranked: Sequence[str],
    ks: Sequence[int] = (10, 20, 30, 40, 50, 60, 70, 80),
) -> list[float | None]:
    """The share of all hallucination times that falls on the k first objects (Tables 8 and 9).

    Args:
        hallucinated: For each image, the objects that its caption makes up.
        ranked: Objects in order, such as :meth:`ObjectCounts.by_frequency`.
        ks: The values of k.
    """
    times = Counter(name for row in hallucinated for name in row)
    total = times.total()
    if not total:
        return [None for _ in ks]
    return [sum(times[name] for name in ranked[:k]) / total for k in ks]


def parser_comparison(
    answers: Sequence[str], labels: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """The scores of the same answers under every parser.

    Args:
        answers: What the model wrote.
        labels: ``yes`` or ``no``, one for each answer.

    Returns:
        Parser -> score -> value; None where it is not defined.
    """
    comparison = ParserComparison()
    comparison.add(answers, labels)
    return comparison.scores()


class ParserComparison:
    """The scores of the same answers under every parser, from as many batches as there are."""

    def __init__(self) -> None:
        self._metrics = {name: PopeMetric(variant=name) for name in PopeMetric.variant_names()}
        self._counts = dict.fromkeys(self._metrics, PopeCounts(0, 0, 0, 0, 0, 0, 0))

    def add(self, answers: Sequence[str], labels: Sequence[str]) -> None:
        """Adds answers.

        Args:
            answers: What the model wrote.
            labels: ``yes`` or ``no``, one for each answer.
        """
        for name, metric in self._metrics.items():
            more = metric.count(answers, labels)
            self._counts[name] = PopeCounts(*map(sum, zip(self._counts[name], more, strict=True)))

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Parser -> score -> value; None where it is not defined."""
        return {name: _scores(counts) for name, counts in self._counts.items()}


def _scores(counts: PopeCounts) -> dict[str, float | None]:
    said_yes = counts.tp + counts.fp
    return {
        "accuracy": _quotient(counts.tp + counts.tn, counts.answered),
        "precision": _quotient(counts.tp, said_yes),
        "recall": _quotient(counts.tp, counts.tp + counts.fn),
        "f1": _quotient(2 * counts.tp, 2 * counts.tp + counts.fp + counts.fn),
        "yes_ratio": _quotient(said_yes, counts.answered),
        "unparsed_rate": _quotient(counts.unparsed, counts.questions),
    }


def _quotient(top: int, bottom: int) -> float | None:
    return top / bottom if bottom else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A score over several prompt templates."""

    mean: float
    """Its mean."""
    std: float
    """Its standard deviation over the templates (the population's, as in Table 4)."""
    lowest: float
    """The least value."""
    highest: float
    """The greatest value."""
    templates: int
    """How many templates."""


def template_stability(scores: Mapping[str, float]) -> Stability:
    """How far a score moves with the prompt (papers/pope.txt, section 5.3, Table 4).

    Args:
        scores: Template -> score.

    Raises:
        ValueError: There is none.
    """
    if not scores:
        raise ValueError("no scores were given; give at least one template's")
    values = list(scores.values())
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return Stability(
        mean=mean,
        std=math.sqrt(spread),
        lowest=min(values),
        highest=max(values),
        templates=len(values),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Whether polled answers agree with captions."""

    denied: int
    """Objects that the model said are not there."""
    denied_but_mentioned: int
    """Those of them that its caption of the same image mentions."""
    mentioned: int
    """Polled objects that captions mention."""
    mentioned_and_affirmed: int
    """Those of them that it said are there."""

    @property
    def denial_rate(self) -> float | None:
        """Share of denied objects that captions leave out too; None without denied ones."""
        return 1 - self.denied_but_mentioned / self.denied if self.denied else None

    @property
    def affirmation_rate(self) -> float | None:
        """Share of mentioned objects that were affirmed; None without mentioned ones."""
        return self.mentioned_and_affirmed / self.mentioned if self.mentioned else None


def caption_consistency(
    polled: Iterable[tuple[str, str, str | None]], captions: Mapping[str, Collection[str]]
) -> Consistency:
    """Polled answers beside captions (papers/pope.txt, section 5.3, "Consistency").

    Args:
        polled: Image, object, and the answer as read: ``yes``, ``no``, or None for unread, which
            counts neither way. An object polled twice counts once, by its first answer.
        captions: Image -> the objects that its caption mentions; images without one are left out.
    """
    seen: dict[tuple[str, str], str | None] = {}
    for image, name, answer in polled:
        if image in captions:
            seen.setdefault((image, name), answer)
    denied = [(image, name) for (image, name), answer in seen.items() if answer == "no"]
    mentioned = [
        answer
        for (image, name), answer in seen.items()
        if answer is not None and name in captions[image]
    ]
    return Consistency(
        denied=len(denied),
        denied_but_mentioned=sum(name in captions[image] for image, name in denied),
        mentioned=len(mentioned),
        mentioned_and_affirmed=sum(answer == "yes" for answer in mentioned),
    )
