"""POPE's analyses: frequent hallucinations, stability over prompts, agreement with captions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .question_builder import ObjectCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRatio:
    """Share of hallucinated mentions whose objects are among the k most frequent ones."""

    k: int
    """Number of objects that count as frequent."""
    value: float | None
    """Mean over images; None if no image has a hallucinated object."""
    n: int
    """Number of images with a hallucinated object; the mean is over these."""


def hit_ratio_by_frequency(
    hallucinated: Iterable[Iterable[str]], counts: ObjectCounts, ks: Sequence[int] = (10, 20, 30)
) -> list[HitRatio]:
    """Return HR_A@k (formula 3 of the paper).

    For one image, it is the share of hallucinated mentions whose objects are among the k most
    frequent ones. The score is the mean over images. Formula 3 also counts images without
    hallucination, whose share is 0/0; they are left out here.

    Args:
        hallucinated: For each image, the objects that its caption hallucinates, one for each
            mention.
        counts: Frequencies of objects. The paper counts in MSCOCO and does not print the list.
        ks: The values of k.
    """
    return _hit_ratios(hallucinated, counts.by_frequency(), ks)


def hit_ratio_by_company(
    hallucinated: Mapping[str, Iterable[str]],
    shown: Mapping[str, Collection[str]],
    probe: str,
    counts: ObjectCounts,
    ks: Sequence[int] = (10, 20, 30),
) -> list[HitRatio]:
    """Return HR_C@k(o) (formula 4 of the paper), over the images that show object o.

    Ties: of objects that occur equally often together with o, the one that counting met first
    beside o comes first. Counted over images in the order of their numbers, this reaches 14 of the
    18 cells of Tables 2 and 10 whose captions are published; ties by name reach 12.

    Args:
        hallucinated: Image -> the objects that its caption hallucinates, one for each mention.
        shown: Image -> the objects that it shows.
        probe: The object o.
        counts: How often objects occur together with it.
        ks: The values of k.
    """
    rows = [names for image, names in hallucinated.items() if probe in shown.get(image, ())]
    return _hit_ratios(rows, companions(probe, counts), ks)


def companions(probe: str, counts: ObjectCounts) -> tuple[str, ...]:
    """Return the objects other than one, those that occur with it most often first.

    Args:
        probe: The object.
        counts: How often objects occur together with it; of equally common ones, the one that
            counting met first comes first. Objects that never do are last, by name.
    """
    together = counts.together.get(probe, {})
    # A stable sort: equally common objects stay in the order in which counting met them.
    ranked = sorted(together, key=lambda name: -together[name])
    return (*ranked, *sorted(counts.images.keys() - together.keys() - {probe}))


def _hit_ratios(
    rows: Iterable[Iterable[str]], ranked: Sequence[str], ks: Sequence[int]
) -> list[HitRatio]:
    # The formulas are 0/0 for images without hallucinations.
    mentions = [names for row in rows if (names := list(row))]
    out = []
    for k in ks:
        top = set(ranked[:k])
        shares = [sum(name in top for name in names) / len(names) for names in mentions]
        value = math.fsum(shares) / len(shares) if shares else None
        out.append(HitRatio(k=k, value=value, n=len(shares)))
    return out


def accumulated_proportions(
    hallucinated: Iterable[Iterable[str]],
    ranked: Sequence[str],
    ks: Sequence[int] = (10, 20, 30, 40, 50, 60, 70, 80),
) -> list[float | None]:
    """Return the share of all hallucinations that the first k objects cause (Tables 8 and 9).

    Args:
        hallucinated: For each image, the hallucinated objects of its caption.
        ranked: Objects in order, such as :meth:`ObjectCounts.by_frequency` or :func:`companions`.
        ks: The values of k.
    """
    times = Counter(name for row in hallucinated for name in row)
    total = times.total()
    if not total:
        return [None for _ in ks]
    return [sum(times[name] for name in ranked[:k]) / total for k in ks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A score over several prompt templates."""

    mean: float
    std: float
    """Standard deviation over the templates (of the population, as in Table 4)."""
    lowest: float
    """Lowest value."""
    highest: float
    """Highest value."""
    templates: int
    """Number of templates."""


def template_stability(scores: Mapping[str, float]) -> Stability:
    """Return how much a score varies with the prompt (section 5.3 of the paper, Table 4).

    Args:
        scores: Template -> score.

    Raises:
        ValueError: No scores are given.
    """
    if not scores:
        raise ValueError("no scores are given; give the score of at least one template")
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
    """Agreement between answers to questions and captions of the same images."""

    denied: int
    """Objects whose presence the model denied."""
    denied_but_mentioned: int
    """Denied objects that its caption of the same image mentions."""
    mentioned: int
    """Objects in questions that captions mention."""
    mentioned_and_affirmed: int
    """Mentioned objects whose presence the model affirmed."""

    @property
    def denial_rate(self) -> float | None:
        """Share of denied objects that captions do not mention; None without denied ones."""
        return 1 - self.denied_but_mentioned / self.denied if self.denied else None

    @property
    def affirmation_rate(self) -> float | None:
        """Share of mentioned objects that were affirmed; None without mentioned ones."""
        return self.mentioned_and_affirmed / self.mentioned if self.mentioned else None


def caption_consistency(
    polled: Iterable[tuple[str, str, str | None]], captions: Mapping[str, Collection[str]]
) -> Consistency:
    """Compare answers with captions (section 5.3 of the paper, "Consistency").

    Args:
        polled: Image, object, and parsed answer: ``yes``, ``no``, or None for an unparsed answer,
            which does not count. Of several answers about one object, the first counts.
        captions: Image -> the objects that its caption mentions; other images are left out.
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
