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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .answers.answer_scores import AnswerScore, all_right, combined, unparsed_rate
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import Answer, AnswersItem, Bundling, ClosedQuestions, Keys
from .answers.yes_no import CONTAINS_VARIANTS
from .framework.arrays import FloatArray, np
from .framework.asking import name_under

TRUTH, INSIDE, OUTSIDE = "ground_truth", "in_video", "out_video"
"""The captions of a triplet."""
CAPTIONS = {
    TRUTH: "right",
    INSIDE: "with a detail of another event of the video",
    OUTSIDE: "with a detail from outside the video",
}
"""Caption -> what it is."""
_IDS = ("triplet_id", "pair_id")
_VIDEO, _ASPECT, _TYPE = ("video_id", "video", "video_path"), ("aspect",), ("caption_type", "type")
_IS_CUT = "is_cut"


def _triplets(
    records: Sequence[Mapping[str, object]], key: str
) -> Iterator[tuple[int, Mapping[str, object] | ValueError]]:
    """Yield records with the id of their triplet: their own, or its number in their order.

    An id may count from 1 in each video, so that video and aspect are a part of it.

    Raises:
        ValueError: A caption is in one triplet twice.
    """
    # One rule for the whole file: a number by order could be another record's id.
    own = next((name for name in _IDS if records and name in records[0]), "")
    seen: set[tuple[str, str]] = set()
    videos: dict[str, str] = {}
    for place, record in enumerate(records):
        if own and not name_under(record, (own,)):
            yield place, ValueError(f"no {own}, unlike the first record", "Give all one")
            continue
        places = (name_under(record, keys) for keys in (_VIDEO, _ASPECT, (own,)))
        triplet = "/".join(filter(None, places)) if own else str(place // len(CAPTIONS) + 1)
        caption = name_under(record, _TYPE).casefold()
        # Every triplet after a lost line is shifted, so that nothing that follows can be used.
        if not own and (triplet, caption) in seen:
            raise ValueError(
                f"one caption twice in a triplet, as after a lost or doubled record: {triplet} "
                f"({caption})",
                f"Give every record once: {len(CAPTIONS)} in their order count together, unless "
                f"they have the same {_IDS[0]!r}",
            )
        seen.add((triplet, caption))
        video = name_under(record, _VIDEO).strip().casefold()
        # A shifted triplet may have each caption once, but of two videos.
        if video and not own and videos.setdefault(triplet, video) != video:
            fault = f"triplets have lines with another {_VIDEO[0]}: {triplet}"
            yield place, ValueError(fault, f"Correct them, or give each triplet its {_IDS[0]!r}")
            continue
        # The script drops one or two records at the end; here their triplet is unscored.
        is_last = not own and place >= len(records) - len(records) % len(CAPTIONS)
        cut = {_IS_CUT: True} if is_last and key == "response" else {}
        yield place, {**record, _IDS[0]: triplet, **cut}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Triplets(AnswersMetric):
    """A metric of triplets, of which the last may be cut off."""

    @classmethod
    def may_lack(cls, record: Mapping[str, object]) -> bool:
        """Return whether the triplet of a record is cut off, and so is unscored."""
        return _IS_CUT in record


def _accuracy(name: str, caption: str, meaning: str) -> AnswerScore:
    return all_right(
        f"{name}_accuracy",
        f"triplets right about the right and the {meaning} caption / triplets",
        among=lambda answer: answer.name in (TRUTH, caption),
        own=True,
    )


def _sah_ratio(inside: FloatArray, outside: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(inside == 1, np.nan, (outside - inside) / (1 - inside))


_IN_VIDEO = _accuracy("in_video", INSIDE, "in-video")
_OUT_VIDEO = _accuracy("out_video", OUTSIDE, "out-of-video")

BENCHMARK = ClosedQuestions(
    name="elv-halluc",
    title="ELV-Halluc: wrong details of long videos, from another event or from outside.",
    unit="triplets",
    keys=Keys(
        response=("model_response", "response", "prediction", "output"),
        label=("ref_answer", "answer", "label"),
        media=_VIDEO,
        fields={"aspect": _ASPECT, "caption_type": _TYPE, "triplet": _IDS},
        optional=("triplet",),
    ),
    bundle=Bundling(by=("triplet",), name=("caption_type",)),
    places={"caption_type": CAPTIONS},
    unfold=_triplets,
    base=_Triplets,
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
            # No least value: the divisor is near 0 where nearly all in-video answers are right.
            low=float("-inf"),
        ),
        unparsed_rate("answers", "answers, parsed or not"),
    ),
    ranked_by=("in_video_accuracy",),
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
