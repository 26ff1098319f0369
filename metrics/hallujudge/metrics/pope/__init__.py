"""POPE: yes/no questions about objects that an image shows or lacks.

Li et al., Evaluating Object Hallucination in Large Vision-Language Models, 2023. Over questions
with the label yes or no (section 5.1, "Metrics"), with yes as the positive class:

* ``accuracy`` = right answers / answers
* ``precision`` = right yes / all yes
* ``recall`` = right yes / (right yes + wrong no)
* ``f1`` = 2 right yes / (2 right yes + wrong yes + wrong no), the harmonic mean of the two
* ``yes_ratio`` = yes / answers, of the *predictions* (one tool reports the labels' share)
* ``unparsed_rate`` = unparsed answers / all answers

A variant is a parser of ``hallujudge.metrics.answers.yes_no``. ``published`` follows the released
script: an answer that is not clearly no is yes, so that none is unparsed. ``lmms-eval`` and
``vlmevalkit`` count unparsed answers as wrong, as those tools do. Precision and recall of
``lmms-eval`` leave them out; recall of ``vlmevalkit`` counts them as no, and its table counts an
item in each of its categories. ``repope`` and ``strict`` leave them unscored: they enter no
denominator but that of ``unparsed_rate``.

RePOPE (Neuhaus and Hein, 2025) has better labels for most of the questions, and dropped the
others. ``repope`` is the rule of its script (``src/eval_utils.py``), and ``first-word`` mends it:
"snow" is not no, "eyes" is not yes, and unparsed answers are wrong. Labels come with the questions.

Differences from the released scripts: they join answers to questions by order, and stop with a
division by zero if a model never says yes. Here the precision is then None, and ``f1`` is 0 if any
answer is wrong.

The paper's analyses follow the declaration: frequent hallucinations, stability over prompts, and
agreement with captions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..answers.answer_scores import count, share
from ..answers.answers_metric import AnswersMetric
from ..answers.closed_questions import (
    AnswerVariant,
    ClosedQuestions,
    FileNames,
    Keys,
    UnparsedAs,
    compared_by,
    one_answer,
)
from ..answers.declared_metrics import metric_of
from ..answers.yes_no import YES_NO_PARSERS, object_scores
from .question_builder import ObjectCounts


def _variant(name: str, meaning: str, unparsed: UnparsedAs = "wrong") -> AnswerVariant:
    return AnswerVariant(
        name=name,
        meaning=meaning,
        parse=compared_by(YES_NO_PARSERS[name], name),
        unparsed=unparsed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Categories(AnswersMetric):
    """A metric of questions that may be in several categories."""

    split_fields: ClassVar[frozenset[str]] = frozenset({"category"})
    # Its labels lack the questions that were dropped.
    drops_unknown: ClassVar[frozenset[str]] = frozenset({"repope"})

    @property
    def repeated_by(self) -> str:
        """The field of VLMEvalKit's table, which counts a question in each of its categories."""
        return "category" if self.variant == "vlmevalkit" else ""


LABEL_SETS = ("pope", "repope")
"""Names of the sets of labels: a file is of the last one that its name has, else of the first."""

BENCHMARK = ClosedQuestions(
    name="pope",
    title="POPE: yes answers to questions about objects that an image lacks.",
    unit="questions",
    keys=Keys(
        # If a record has both, `answer` is the label and `prediction` the response (VLMEvalKit).
        response=("response", "output", "prediction", "predict", "answer", "text", "caption"),
        label=("label", "gt", "gt_answer", "ground_truth", "answer"),
        # The short names are those of lmms-eval's tasks, such as pope_adv.
        values={
            "category": FileNames(
                {
                    "random": "random",
                    "popular": "popular",
                    "pop": "popular",
                    "adversarial": "adversarial",
                    "adv": "adversarial",
                }
            )
        },
    ),
    variants=(
        _variant(
            "published",
            "POPE's script: an answer is no if its first sentence has no or not, else yes.",
        ),
        _variant(
            "opera",
            "OPERA's script: as published, over the whole answer, and words in n't are no.",
        ),
        _variant(
            "lmms-eval", "lmms-eval: the whole answer is yes or no; any other counts as wrong."
        ),
        _variant(
            "vlmevalkit",
            "VLMEvalKit: exactly one of the words yes and no; any other counts as wrong.",
            "no",
        ),
        _variant(
            "repope",
            "RePOPE's script: yes anywhere is yes, else no anywhere is no; any other is unscored.",
            "unscored",
        ),
        _variant("first-word", "Ours: the first clear yes or no; any other counts as wrong."),
        _variant(
            "strict", "Ours: a clear yes or a clear no; any other answer is unscored.", "unscored"
        ),
    ),
    scores=(
        *object_scores(),
        share(
            "unparsed_rate",
            "answers that the parser could not read / answers",
            count(
                "unparsed",
                "answers that the parser could not read",
                lambda answer: answer.value is None,
                unread=True,
            ),
            "questions",
            direction="lower",
            bounded=False,
            own=True,
        ),
    ),
    ranked_by=("f1",),
    trial=one_answer(id="1", response="Yes.", label="yes"),
    group_by=("category",),
    base=_Categories,
    question_files="questions.json",
)
"""The declaration."""
PopeMetric = metric_of(BENCHMARK)
"""The metric."""


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
