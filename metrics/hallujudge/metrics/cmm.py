"""CMM, the Curse of Multi-Modalities: yes/no questions about what clips show and let hear.

Leng et al., 2024; released script ``evaluation/calculate_score.py``. Half of the questions are
about an object or event that is there (label yes), half about one that is not.

* ``accuracy`` = right answers / questions
* ``perception_accuracy`` (PA) = right answers with the label yes / questions with the label yes
* ``hallucination_resistance`` (HR) = right answers with the label no / questions with the label no
* ``unparsed_rate`` = answers that could not be parsed / questions

Groups are ``sub_category`` and ``granularity_sub_category``, such as
``object-level/visual-language``. As in the script, a granularity other than object-level and
event-level has no group of the second kind. Variants:

* ``published`` follows the script: an answer is right if its first five characters contain the
  label, in any case. "Not only", "I know" and "Snow" are therefore no, "No, yes" is no, and "The
  answer is yes." is nothing. A ratio without any question is 0. Absent and empty answers are wrong.
* ``corrected`` reads the first whole word yes or no of the whole text. An answer with neither is
  wrong, and counted in ``unparsed_rate``. A ratio without any question is None.

Differences from the script: it would compare a label such as "yes." in one way for the accuracy and
in another for PA. Here, a full stop after a label is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .answers.answer_scores import AnswerScore, combined, count, is_right, share, unparsed_rate
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    EachRecord,
    Keys,
    Parsed,
    compared_by,
    one_answer,
)
from .answers.yes_no import first_yes_no, labelled
from .framework.arrays import FloatArray, np
from .framework.asking import Shown, name_under

GRANULARITIES = ("object-level", "event-level")
"""The granularities of the script's third table."""
_LOOKED_AT = 5
# Score -> the label of its questions.
_LABELS = {"accuracy": "", "perception_accuracy": "yes", "hallucination_resistance": "no"}
_PATHS, _IDS = ("video_path", "audio_path"), ("id", "question_id")


def _published(answer: Answer) -> Parsed:
    # Where the five characters have both words, the script finds the label, whichever it is.
    start = (answer.response or "").strip().lower()[:_LOOKED_AT]
    other = "no" if answer.label == "yes" else "yes"
    found = next((word for word in (answer.label, other) if word in start), None)
    return Parsed(found, found == answer.label, "five characters")


def _identified(record: Mapping[str, object], _place: int, _key: str) -> Mapping[str, object]:
    """Return a record with an id of its paths and question: released ones have no other."""
    if paths := [str(path) for key in _PATHS if (path := record.get(key))]:
        return {**record, "id": ": ".join([*paths, str(record.get("question", ""))])}
    if any(key in record for key in _IDS):
        return record
    tried, found = ", ".join((*_IDS, *_PATHS)), ", ".join(sorted(record))
    raise ValueError(
        f"neither an id nor a path: tried {tried}; found {found}",
        "Give the records as they were released",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels(AnswersMetric):
    """A metric that groups sub-categories by their granularity."""

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return the video and the sound of a question; one about a sound alone has no video."""
        # One without either lacks something.
        seen = record.get("video_path") or not record.get("audio_path")
        return Shown(media=() if seen else None, sound=name_under(record, ("audio_path",)))

    def derived_fields(self, item: AnswersItem) -> Mapping[str, str]:
        """Return granularity and sub-category of an item."""
        level, kind = item.fields.get("granularity", ""), item.fields.get("sub_category", "")
        known = level in GRANULARITIES and kind
        return {"granularity_sub_category": f"{level}/{kind}"} if known else {}


def _or_zero(right: FloatArray, asked: FloatArray, every: FloatArray) -> FloatArray:
    # Without any question at all there is no script to follow.
    return np.where(every, right / np.where(asked, asked, 1), np.nan)


def _accuracies() -> Iterator[tuple[AnswerScore, AnswerScore]]:
    """Yield each accuracy, and as the script has it: 0 without a question."""
    every = count("asked_all", "questions")
    for name, label in _LABELS.items():
        which = f" with the label {label}" if label else ""
        of = (
            count(f"right_{label or 'all'}", f"right answers{which}", labelled(label, is_right)),
            count(f"asked_{label or 'all'}", f"questions{which}", labelled(label)),
        )
        meaning = f"right answers{which} / questions{which}"
        yield (
            # A question has one label: the other two would repeat its accuracy, or be undefined.
            share(name, meaning, *of, own=not label),
            # Without it n would be that of the first part, the right answers.
            combined(name, meaning, _or_zero, (*of, every), n=of[1]),
        )


_SCORES = tuple(_accuracies())
_UNPARSED = unparsed_rate("answers", "answers, parsed or not")

BENCHMARK = ClosedQuestions(
    name="cmm",
    title="CMM: yes/no questions about what clips show and let hear.",
    unit="questions",
    keys=Keys(
        id=_IDS,
        response=("pred", "prediction", "response", "output", "text"),
        label=("answer", "label"),
        media=_PATHS,
        fields={name: (name,) for name in ("sub_category", "granularity")},
    ),
    question_files="questions.json",
    unfold=EachRecord(_identified),
    base=_Levels,
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released script: looks for the label in the first five characters.",
            parse=_published,
            missing="wrong",
            scores=(*(zero for _, zero in _SCORES), _UNPARSED),
        ),
        AnswerVariant(
            name="corrected",
            meaning="Reads the first whole word yes or no; an answer with neither is wrong.",
            parse=compared_by(first_yes_no, "first yes or no"),
        ),
    ),
    scores=(*(plain for plain, _ in _SCORES), _UNPARSED),
    ranked_by=("accuracy",),
    trial=one_answer(
        id="1",
        response="Yes.",
        label="yes",
        fields={"sub_category": "visual-language", "granularity": GRANULARITIES[0]},
    ),
    group_by=("sub_category", "granularity_sub_category"),
)
"""The declaration."""
