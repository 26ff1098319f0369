"""ELV-Halluc: right captions of a long video, and hallucinated ones from it and from outside.

Lu et al., 2025; released script ``eval.py``. A triplet has a right caption, one with a detail of
another event of the same video, and one with a detail from outside the video. The model says
whether each is correct. Three records in their order are a triplet, and its number is its id; where
records name their triplet, they may be in any order.

* ``in_video_accuracy`` = triplets right about the right caption and the in-video one / triplets
* ``out_video_accuracy`` = the same with the out-of-video caption
* ``sah_ratio`` = (out-of-video accuracy - in-video accuracy) / (1 - in-video accuracy), the share
  of errors that semantic aggregation explains. Negative if the in-video accuracy is higher.
* ``unparsed_rate`` = answers that could not be parsed / answers

``published`` follows the released script: an answer with ``yes`` anywhere is yes, else one with
``no`` anywhere is no, so that "I know it" is no. ``corrected`` reads words; the first clear one
decides. In both, an answer without either is wrong.

Differences from the released script: it drops one or two records at the end without a word, which
here are an unscored triplet; it stops with a division by zero if all in-video answers are right,
where the ratio here is None. A triplet that lacks a caption or has one twice, as after a lost
record, or that has records of several videos or aspects, is an error in both. The script takes
records by their order alone, also where they name their triplet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers.answer_scores import (
    AnswerScore,
    all_right,
    combined,
    unparsed_rate,
)
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    Bundling,
    ClosedQuestions,
    Keys,
)
from .answers.yes_no import CONTAINS_VARIANTS

if TYPE_CHECKING:
    from .framework.columns_and_scores import FloatArray

TRUTH, INSIDE, OUTSIDE = "ground_truth", "in_video", "out_video"
"""The captions of a triplet."""
CAPTIONS = {
    TRUTH: "right",
    INSIDE: "with a detail of another event of the video",
    OUTSIDE: "with a detail from outside the video",
}
"""Caption -> what it is."""


def _accuracy(name: str, caption: str, meaning: str) -> AnswerScore:
    return all_right(
        f"{name}_accuracy",
        f"triplets right about the right and the {meaning} caption / triplets",
        among=lambda answer: answer.name in (TRUTH, caption),
        own=True,
    )


def _sah_ratio(inside: FloatArray, outside: FloatArray) -> FloatArray:
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(inside == 1, np.nan, (outside - inside) / (1 - inside))


_IN_VIDEO = _accuracy("in_video", INSIDE, "in-video")
_OUT_VIDEO = _accuracy("out_video", OUTSIDE, "out-of-video")

BENCHMARK = ClosedQuestions(
    name="elv-halluc",
    summary="Wrong details of long videos, from another event or from outside.",
    title="ELV-Halluc: triplets of captions of events in long videos.",
    unit="triplets",
    keys=Keys(
        response=("model_response", "response", "prediction", "output"),
        label=("ref_answer", "answer", "label"),
        media=("video_id", "video", "video_path"),
        fields={"aspect": ("aspect",), "caption_type": ("caption_type", "type")},
    ),
    bundle=Bundling(
        names=tuple(CAPTIONS),
        every=3,
        ids=("triplet_id", "pair_id"),
        name=("caption_type",),
        known=CAPTIONS,
        same=("media", "aspect"),
        cut=True,
    ),
    variants=CONTAINS_VARIANTS,
    scores=(
        _IN_VIDEO,
        _OUT_VIDEO,
        combined(
            "sah_ratio",
            "(out-of-video accuracy - in-video accuracy) / (1 - in-video accuracy)",
            _sah_ratio,
            (_IN_VIDEO, _OUT_VIDEO),
            direction="lower",
            bounded=False,
            low=float("-inf"),
        ),
        unparsed_rate("answers", "answers, parsed or not"),
    ),
    main_score="in_video_accuracy",
    ranking_source="It is the first score of the released table, before sah_ratio.",
    headline=("in_video_accuracy", "out_video_accuracy", "sah_ratio"),
    trial=AnswersItem(
        id="1",
        fields={"aspect": "object"},
        answers=(
            Answer(name=TRUTH, response="Yes.", label="yes"),
            Answer(name=INSIDE, response="No.", label="no"),
            Answer(name=OUTSIDE, response="No.", label="no"),
        ),
    ),
    group_by=("aspect",),
)
"""The declaration."""
BENCHMARKS = (BENCHMARK,)
