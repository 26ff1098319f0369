"""AVHBench: what is seen and what is heard in a video, and whether both belong together.

Sung-Bin et al., 2025. No scorer of these tasks is released: the formulas are ours, after the
columns of the README's tables. By task, with yes as the positive class:

* ``accuracy`` = right answers / questions
* ``precision`` = right yes answers / yes answers
* ``recall`` = right yes answers / questions with the label yes
* ``f1`` = harmonic mean of precision and recall
* ``yes_ratio`` = yes answers / questions
* ``unparsed_rate`` = answers that could not be parsed / questions

The groups of ``task`` are Audio-driven Video Hallucination, Video-driven Audio Hallucination and AV
Matching. The paper has no figure over all tasks; those of all questions are ours. AV Captioning has
no closed score (METEOR, CIDEr and a judge in the paper), and counts in none.

* ``paper`` reads the first whole word yes or no, in any case. An answer with neither is wrong, and
  a miss where the label is yes. Absent and empty answers are wrong.
* ``corrected`` reads the same; absent and empty answers are unscored.

Of the 18 rows of the README's tables, 11 fit these formulas within 0.2, and no single formula fits
the others. A number that differs from the leaderboard need not be wrong. The names of tasks in the
training files, AV Hallucination (Video) and (Audio), are read as those of the test file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .answers.answer_scores import count, noting, unparsed_rate
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
    compared_by,
    one_answer,
)
from .answers.yes_no import first_yes_no, object_scores
from .framework.asking import Shown, name_under, plain

SEEN, HEARD = "Audio-driven Video Hallucination", "Video-driven Audio Hallucination"
"""The tasks that ask whether something is visible, and whether it makes a sound."""
TASKS = (SEEN, HEARD, "AV Matching")
"""The tasks with yes or no as answer."""
CAPTIONING = "AV Captioning"
"""The task without a closed score."""
TRAINING_NAMES = {"AV Hallucination (Video)": SEEN, "AV Hallucination (Audio)": HEARD}
"""Name of a task in the training files -> its name in the test file."""
_VIDEO = ("video_id", "video", "video_path")
_PARSE = compared_by(first_yes_no, "first yes or no")


def _task_of(item: AnswersItem) -> str:
    named = item.answers[0].fields.get("task", "").strip() if item.answers else ""
    return TRAINING_NAMES.get(named, named)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Videos(AnswersMetric):
    """A metric of questions; captions have no closed score."""

    @classmethod
    def task(cls, record: Mapping[str, object]) -> str:
        """Return the task of a record."""
        return str(record.get("task", "")).strip()

    @classmethod
    def is_question(cls, record: Mapping[str, object]) -> bool:
        """Return whether a record is not a caption."""
        return cls.task(record) != CAPTIONING

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return how a question is to be answered, and the video whose sound is sent."""
        instruction = "\nAnswer with yes or no." if cls.is_question(record) else ""
        return Shown(slots={"instruction": instruction}, sound=name_under(record, _VIDEO))

    def derived_fields(self, item: AnswersItem) -> Mapping[str, str]:
        """Return the task of an item."""
        return {"task": task} if (task := _task_of(item)) else {}

    def leaves_out(self, item: AnswersItem) -> bool:
        """Return whether an item is a caption."""
        return _task_of(item) == CAPTIONING


_RENAMED = count(
    "renamed",
    "answers whose task has its name of the training files",
    lambda answer: answer.field("task").strip() in TRAINING_NAMES,
)


def _notes(totals: Mapping[str, float]) -> Iterator[str]:
    if totals.get("asked"):
        yield (
            "The paper has figures for each task alone; those over all tasks are ours. "
            f"{CAPTIONING} has no closed score: its records count in none."
        )
    if renamed := totals.get(_RENAMED.name, 0):
        yield (
            f"{renamed:,.0f} answers name their task as the training files do: "
            + ", ".join(f"{old} is read as {new}" for old, new in TRAINING_NAMES.items())
            + "."
        )


BENCHMARK = ClosedQuestions(
    name="avhbench",
    title="AVHBench: what is seen and what is heard in videos.",
    unit="questions",
    keys=Keys(
        response=("prediction", "pred", "response", "output", "model_answer"),
        label=("label", "answer"),
        media=_VIDEO,
        fields={"task": ("task",), "clip": ("video_id", "video"), "text": ("text", "question")},
    ),
    # Released records have no id, and ask about a clip several times.
    bundle=Bundling(by=("clip", "task", "text")),
    seen=("task",),
    question_files="questions.json",
    asking=plain("{{question}}{{instruction}}"),
    variants=(
        AnswerVariant(
            name="paper",
            meaning="Our formulas, as none is released; unparsed and absent answers are wrong.",
            parse=_PARSE,
            unparsed="no",
            missing="wrong",
            notes=_notes,
        ),
        AnswerVariant(
            name="corrected",
            meaning="The same; absent and empty answers are unscored.",
            parse=_PARSE,
            unparsed="no",
            notes=_notes,
        ),
    ),
    scores=(
        *object_scores(),
        noting(unparsed_rate("asked", "answers, parsed or not"), _RENAMED),
    ),
    ranked_by=("accuracy",),
    trial=one_answer(id="1", response="Yes.", label="yes", answer_fields={"task": TASKS[0]}),
    group_by=("task",),
    base=_Videos,
)
"""The declaration."""
