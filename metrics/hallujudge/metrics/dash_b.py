"""DASH-B: yes/no questions about objects that fooled models, and about images that show them.

Augustin et al., 2025; released script ``src/eval_utils.py``. Half of the images lack the object.

* ``accuracy`` = right answers / answers
* ``true_positive_rate`` = right answers about images with the object / such answers
* ``true_negative_rate`` = right answers about images without the object / such answers
* ``harmonic_mean`` = 2 TPR TNR / (TPR + TNR)
* ``unparsed_rate`` = answers that could not be parsed / answers

``published`` follows the released script: an answer with ``yes`` anywhere is yes, else one with
``no`` anywhere is no, so that "eyes" is yes and "snow" is no. ``corrected`` reads words; the first
clear one decides. In both, an answer without either is wrong, unlike in RePOPE by the same authors.

Differences from the released script: it stops with a division by zero if both rates are 0 or one
side has no image. Here the harmonic mean, or the rate, is then None. The leaderboard defines
accuracy as the mean of both rates, which is the same only with as many images on either side.

Names of image files repeat: label, object and file are the id of a question. Released answers may
be about images that the released lists no longer have; a note says how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .answers.answer_scores import (
    AnswerScore,
    accuracy,
    combined,
    count,
    is_right,
    share,
    unparsed_rate,
)
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import Bundling, ClosedQuestions, EachRecord, Keys, one_answer
from .answers.yes_no import CONTAINS_VARIANTS, labelled
from .framework.arrays import FloatArray, np
from .framework.asking import YES_OR_NO, Shown, plain

SIDES = {"neg": "no", "pos": "yes"}
"""Last word of the name of an image list -> label of its images."""


def _labelled(record: Mapping[str, object], _place: int, _key: str) -> Mapping[str, object]:
    """Return a record without what the released script read in the response.

    It writes that under ``answer``, next to ``img_id``. In the data set's own records, which have a
    ``question_id``, that is the label.
    """
    if "img_id" not in record or "question_id" in record:
        return record
    return {key: value for key, value in record.items() if key != "answer"}


def _rate(name: str, label: str, images: str) -> AnswerScore:
    kind = "tp" if label == "yes" else "tn"
    right = f"right answers about images {images}"
    return share(
        name,
        f"{right} / answers about them",
        count(kind, right, labelled(label, is_right)),
        count(f"label_{label}", f"answers about images {images}", labelled(label)),
    )


def _harmonic(one: FloatArray, other: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return 2 * one * other / (one + other)


_POSITIVE = _rate("true_positive_rate", "yes", "with the object")
_NEGATIVE = _rate("true_negative_rate", "no", "without the object")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Images(AnswersMetric):
    """A metric of questions that lists of images ask."""

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return the question of a record without one: the lists name the object alone."""
        name = str(record.get("object_name") or record.get("object") or "").strip()
        question = f"Does this image show a {name}?" if name else ""
        # The released code has 20 wordings of the question, so that a record's own one is kept.
        slots = {} if "question" in record else {"question": question}
        return Shown(slots=slots, media=("image", "img_id", "question_id"))

    @classmethod
    def listed(cls, name: str, content: Mapping[str, object]) -> Iterator[Mapping[str, str]]:
        """Yield the questions about the images of a list: dataset -> object -> files.

        Args:
            name: Name of the file without its ending, such as ``dash_benchmark_neg``.
            content: What it holds.

        Raises:
            ValueError: It is not such a list; with the next step.
        """
        side = name.casefold().rpartition("_")[2]
        label = SIDES.get(side)
        if label is None:
            raise ValueError(
                "the name does not say whether the images have the object",
                "Let it end in _pos or _neg, as dash_benchmark_neg.json",
            )
        held = [(name, each) for name, each in content.items() if isinstance(each, Mapping)]
        files = [(dataset, *pair) for dataset, objects in held for pair in objects.items()]
        if not files or any(not isinstance(names, list) for *_, names in files):
            raise ValueError(
                "not an object dataset -> object -> list of image files",
                "Give dash_benchmark_pos.json and dash_benchmark_neg.json",
            )
        for dataset, shown, names in files:
            for file in names:
                # Folders tell equal names apart; those that a user does not have are left out.
                path = f"{side}/{dataset}/{shown}/{file}"
                yield {"img_id": file, "object_name": shown, "gt": label, "image": path}


BENCHMARK = ClosedQuestions(
    name="dash-b",
    title="DASH-B: objects that images seem to show, and objects that they show.",
    unit="questions",
    keys=Keys(
        response=("response", "prediction", "output", "text"),
        label=("gt", "label", "answer"),
        media=(),
        fields={
            "label": ("gt", "label", "answer"),
            "object": ("object_name", "object"),
            "file": ("img_id", "question_id", "image", "image_id"),
        },
        values={"label": {"1": "yes", "0": "no", "true": "yes", "false": "no"}},
    ),
    bundle=Bundling(by=("label", "object", "file")),
    asking=plain(YES_OR_NO),
    unfold=EachRecord(_labelled),
    base=_Images,
    variants=CONTAINS_VARIANTS,
    scores=(
        accuracy(),
        _POSITIVE,
        _NEGATIVE,
        combined(
            "harmonic_mean",
            "harmonic mean of true positive rate and true negative rate",
            _harmonic,
            (_POSITIVE, _NEGATIVE),
        ),
        unparsed_rate("answers", "answers, parsed or not"),
    ),
    ranked_by=("accuracy",),
    trial=one_answer(id="1", response="Yes.", label="yes", fields={"object": "dog"}),
    group_by=("object",),
)
"""The declaration."""
