"""VidHal: which caption fits a video best, and in which order the captions fit it.

Choong et al., VidHal, 2024. The item of both tasks is one answer: ``options`` holds the letters
that were shown with their captions (empty texts if answers are letters only), and the label is the
letter of the most faithful caption, or all letters in the right order, such as ``B, A, C``.

``vidhal-mcqa`` (formula 1): ``accuracy`` = videos whose most faithful caption was chosen / videos.

``published`` follows the released evaluation: the answer is right if it *is* the letter, or if it
contains the right caption in lower case, without full stops at its ends. The script does not
convert the answer to lower case, so a caption copied with its capital letter counts as wrong; so
does ``(B)``. No answer is unparsed. ``corrected`` uses the shared parser of choices; unparsed
answers are unscored.

``vidhal-ordering`` (sections 4.2 and 5.4):

* ``ndcg`` (formulas 2 to 6): the mean over videos; an order that is partial, repeats a letter or
  has a letter that was not shown scores 0
* ``invalid_response_rate``: the share of such orders
* ``regurgitation_rate``: the share of videos whose order of letters is the most frequent one, over
  all valid orders
* ``hm_j_k`` (formula 8): the share of videos where caption j, which is worse, comes before k

``published`` parses letters as the released evaluation does. An invalid order counts in the
denominator of ``hm_j_k``, as in formula 8, so that invalid orders look aligned. ``corrected``
parses orders however they are written; ``hm_j_k`` is over videos with a valid order.

Differences from the released evaluation: without a display order it draws a random one; here that
is an error. It scores orders that repeat a letter, and stops at letters that were not shown; here
both are invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ..answers.answer_scores import ReadAnswer, count, is_right, share
from ..answers.answers_metric import AnswersMetric
from ..answers.choices import parse_as_labelled
from ..answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    InputTable,
    Keys,
    Parsed,
)
from ..answers.declared_metrics import metric_of
from ..answers.orders import ndcg_of, ordered_by, ranks_in, read_order, read_order_published
from ..framework.asking import AskingProtocol, AskingStep, Shown, plain
from .order_analyses import FURTHER_SCORES, OrdersMetric, ShownMetric


def _chosen_as_released(answer: Answer) -> Parsed:
    said, label = answer.response or "", answer.label
    caption = answer.options.get(label, "")
    # Letters alone have empty captions, which every answer contains.
    right = said == label or (caption != "" and caption.lower().strip(".") in said)
    return Parsed(label if right else said if said in answer.options else None, right, "published")


def _ndcg(answer: ReadAnswer) -> float:
    ranks = ranks_in(answer)
    return ndcg_of(ranks) if ranks else 0.0


def _is_invalid(answer: ReadAnswer) -> bool:
    return ranks_in(answer) is None


_Record: TypeAlias = Mapping[str, object]


def _shown(answer: Answer, record: _Record) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the captions of the letters that were shown, and the letters in the right order.

    Raises:
        ValueError: The captions, or the ranks of the letters, have another form.
    """
    display = record.get("options")
    if display is None:
        return {}, ()
    # What is not an object has no letters, which _ranks_of() refuses with the next step.
    given = display.items() if isinstance(display, (dict, Mapping)) else ()
    ranks, order = _ranks_of(tuple([(str(letter), str(rank)) for letter, rank in given]))
    captions = _by_rank(answer.options)
    if captions and len(captions) != len(ranks):
        raise ValueError(
            "videos have a display order with more or fewer letters than captions",
            "Give the options file of the same release",
        )
    shown = {letter: captions[n - 1] if captions else "" for letter, n in ranks.items()}
    return shown, order


# A benchmark has few display orders, which are permutations of a few letters.
@lru_cache(maxsize=1024)
def _ranks_of(
    display: tuple[tuple[str, str], ...],
) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """Return letter -> rank, in the order of the letters, and the letters in the right order."""
    ranks = {letter.strip(): rank.strip() for letter, rank in display}
    remedy = 'Write each as an object letter -> rank, such as {"A": "2", "B": "1", "C": "3"}'
    # One caption can be in one order only, which a question about it would not ask.
    if len(ranks) < 2 or set(ranks.values()) != set(_ranks_to(len(ranks))):
        raise ValueError("display orders that are not a permutation of the ranks", remedy)
    if strange := next((letter for letter in ranks if len(letter) != 1), ""):
        raise ValueError("display orders have keys that are not one letter", remedy, strange)
    known = {letter: int(rank) for letter, rank in sorted(ranks.items())}
    return known, tuple(sorted(known, key=known.__getitem__))


def _by_rank(captions: Mapping[str, str]) -> list[str]:
    """Return captions by rank; a list of captions has letters as its keys."""
    ranks = _ranks_to(len(captions))
    if all(map(captions.__contains__, ranks)):
        return list(map(captions.__getitem__, ranks))
    if list(captions)[:1] == ["A"]:
        return list(captions.values())
    raise ValueError(
        "captions are not an object rank -> caption with the ranks 1 to M",
        "Give the annotations of the release",
    )


@lru_cache(maxsize=64)
def _ranks_to(count: int) -> Sequence[str]:
    return tuple(map(str, range(1, count + 1)))


def _labelled(label: Callable[[Sequence[str]], str]) -> Callable[[Answer, _Record], Answer]:
    """Return what gives an answer its captions, and its label by the letters in the right order."""

    def complete(answer: Answer, record: _Record) -> Answer:
        shown, order = _shown(answer, record)
        # In a fifth of the time of ``_replace``.
        return Answer(
            answer.response, label(order), answer.name, answer.question, shown, answer.fields
        )

    return complete


def _captions_shown(record: Mapping[str, object]) -> Shown:
    captions = record.get("captions")
    answer = Answer(None, options=captions if isinstance(captions, Mapping) else {})
    return Shown(options=_shown(answer, record)[0], media=("video", "video_id", "id"))


_BEST = "Which caption describes this video best?\n{{options}}\nAnswer with its letter only."
_RANKED = (
    "Order these captions by how well they describe this video, the best one first.\n{{options}}\n"
    "Answer with the letters only, separated by commas."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices(ShownMetric):
    """A metric of one of the captions that are shown."""

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return the captions of a video under their letters."""
        return _captions_shown(record)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Orders(OrdersMetric):
    """A metric of orders of the captions that are shown."""

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return the captions of a video under their letters."""
        return _captions_shown(record)


def _declared(base: type[AnswersMetric], **own: object) -> ClosedQuestions:
    return ClosedQuestions(
        unit="videos",
        keys=Keys(
            response=("response", "prediction", "answer", "order", "output", "text"),
            label=(),
            id=("video", "video_id", "id"),
            media=("group_id", "video"),
            options=("captions",),
        ),
        labels=(),
        question_files="questions.json",
        tables=(
            InputTable(
                name="options",
                meaning="File of the display order: video -> letter -> rank.",
            ),
        ),
        group_by=("aspect",),
        base=base,
        **own,  # type: ignore[arg-type]  # the fields in which the tasks differ
    )


def _trial(response: str) -> AnswersItem:
    answer = Answer(response=response, label=response, options=dict.fromkeys("ABC", ""))
    return AnswersItem(id="1", answers=(answer,))


MCQA = _declared(
    _Choices,
    name="vidhal-mcqa",
    title="VidHal: choosing the caption that fits a video best.",
    variants=(
        AnswerVariant(
            name="published",
            meaning="Reproduces the released script: the answer is the letter, or has the caption.",
            parse=_chosen_as_released,
        ),
        AnswerVariant(
            name="corrected",
            meaning="Parses letters and captions however they are written; others are unscored.",
            parse=parse_as_labelled,
            unparsed="unscored",
        ),
    ),
    scores=(
        share(
            "accuracy",
            "videos whose most faithful caption was chosen / videos",
            count("right", "right choices", is_right),
            "videos",
            own=True,
        ),
    ),
    ranked_by=("accuracy",),
    asking=plain(_BEST),
    trial=_trial("B"),
    complete=_labelled(lambda order: order[0] if order else ""),
)
"""The declaration of the multiple choice."""
ORDERING = _declared(
    _Orders,
    name="vidhal-ordering",
    title="VidHal: ordering captions of a video by faithfulness.",
    variants=(
        AnswerVariant(
            name="published",
            meaning="Reproduces the released script: shown letters, separated by commas.",
            parse=ordered_by("published", read_order_published),
        ),
        AnswerVariant(
            name="corrected",
            meaning="Parses orders however they are written; hm_j_k is over valid orders.",
            parse=ordered_by("corrected", read_order),
        ),
    ),
    scores=(
        share(
            "ndcg",
            "NDCG of the order, mean over videos",
            count("ndcg", "NDCG of the order", _ndcg, integral=False),
            "videos",
            own=True,
        ),
        share(
            "invalid_response_rate",
            "orders that do not name every caption once / videos",
            count("invalid", "orders that do not name every caption once", _is_invalid),
            "videos",
            direction="lower",
            own=True,
        ),
        *FURTHER_SCORES,
    ),
    ranked_by=("ndcg",),
    asking=(
        AskingProtocol(
            name="naive",
            meaning="All captions in one call.",
            steps=(AskingStep(prompt=_RANKED),),
        ),
        AskingProtocol(
            name="relative",
            meaning="Two captions in a call, until the order is known (section 9.2).",
            steps=(AskingStep(prompt=_BEST),),
            pairs=True,
        ),
        AskingProtocol(
            name="relative-ends",
            meaning="As relative, and the first with the last caption of each order (formula 7).",
            steps=(AskingStep(prompt=_BEST),),
            pairs=True,
            ends=True,
        ),
    ),
    trial=_trial("B, A, C"),
    complete=_labelled(", ".join),
)
"""The declaration of the ordering."""
BENCHMARKS = (MCQA, ORDERING)
VidhalMcqaMetric = metric_of(MCQA)
"""The metric of the multiple choice."""
VidhalOrderingMetric = metric_of(ORDERING)
"""The metric of the ordering."""
