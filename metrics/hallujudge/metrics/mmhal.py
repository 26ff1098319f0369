"""MMHal-Bench: open answers about images, rated from 0 to 6 by a judge.

Sun et al., 2023; released script ``summarize_gpt_mmhal.py`` (RLAIF-V's copy also has
informativeness). An item is an answer. Its judge's review holds a rating: 6 to 3 for an answer
without hallucination, by how informative it is, and 2 to 0 for one with a hallucination.

* ``average_score`` = sum of the ratings / ratings, from 0 to 6
* ``hallucination_rate`` = ratings below 3 / ratings
* ``informativeness`` = how informative the answers are, whether they hallucinate or not: a rating r
  is r - 3 points if it is 3 or more, otherwise r points; the sum of the points / 3 / ratings
* ``unreadable_rate`` = reviews without a readable rating / reviews

The groups of ``type`` are the eight question types. Variants:

* ``published`` follows the script. It looks for "rating: N" in the review in lower case, N from 0
  to 6. A review with none, or with several, counts as a rating of 0 and thus as a hallucination.
  "Rating: 10" is 1, "Rating: 3.5" is 3 and "Overrating: 2" is 2; "Rating : 4" and "**Rating:** 4"
  are none. The type follows from the place of a record in the file, of 96.
* ``corrected`` reads whole numbers from 0 to 6 after the word "rating", with blanks, asterisks or a
  colon between them, and takes the last one. Reviews without one are unscored. The type is the
  record's own.

A missing review is unscored in both variants; the script stops there. It also stops unless there
are 96 reviews; here any number is scored, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from .answers.answer_items import with_lists
from .answers.answer_scores import ReadAnswer, count, share, unparsed_rate
from .answers.answer_text import reply_text
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    EachRecord,
    InputTable,
    JudgedAnswers,
    Keys,
    Parsed,
)
from .framework.metric import verdicts_option

TYPES = (
    *("attribute", "adversarial", "comparison", "counting"),
    *("relation", "environment", "holistic", "other"),
)
"""The question types, in the order in which the released file repeats them."""
PUBLISHED = "published"
# The benchmark has 96 questions, and its judge rates from 0 to 6.
_QUESTIONS, _BEST = 96, 6
# Key of a record's place in the file; released records have none of this name.
_PLACE = "place in the file"
_OBJECTS = "image_content"
_WITHOUT_HALLUCINATION = 3  # ratings from here on
_RATINGS = tuple(map(str, range(_BEST + 1)))
# "Rating: 4", "**Rating:** 4", "rating 4"; neither 10 nor 3.5, and not the end of "Overrating".
_RATING = re.compile(r"\brating[\s*]*:?[\s*]*([0-6])(?![.,]?[0-9])", re.IGNORECASE)


def _published(answer: Answer) -> Parsed:
    review = answer.fields.get("review", "").lower()
    found = [rating for rating in _RATINGS if f"rating: {rating}" in review]
    return _parsed(found[0] if len(found) == 1 else None, "rating: N")


def _corrected(answer: Answer) -> Parsed:
    found = _RATING.findall(answer.fields.get("review", ""))
    return _parsed(found[-1] if found else None, "last rating")


def _parsed(rating: str | None, how: str) -> Parsed:
    return Parsed(rating, int(rating or 0) >= _WITHOUT_HALLUCINATION, how)


def _rating(answer: ReadAnswer) -> int:
    return int(answer.value or 0)


def _type_by_place(item: AnswersItem) -> str:
    """Return the type that the released script gives a record; empty after the last question."""
    place = item.answers[0].fields.get("place") if item.answers else None
    if not place:
        return item.fields.get("type", "")
    # As in RLAIF-V's copy, answers after the last question count in averages, and in no type.
    return TYPES[(int(place) - 1) % len(TYPES)] if int(place) <= _QUESTIONS else ""


def _placed(record: Mapping[str, object], place: int, _key: str) -> Mapping[str, object]:
    """Return a record with its place, counted from 1, and the objects of its image."""
    return {**with_lists(record, (_OBJECTS,)), _PLACE: str(place + 1)}


def _with_review(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer with its review, from its record or from the file of reviews."""
    # The file of reviews is given on purpose, so that it goes before the record's own review.
    given = record.get("reviews")
    given = record.get("review") if given is None else given
    is_rating = isinstance(given, (int, float))
    review = None if is_rating else reply_text(given)
    if review is None and (rating := reply_text(given if is_rating else record.get("rating"))):
        # A column of numbers with a gap has 4.0 for 4, which `corrected` would refuse like 3.5.
        review = f"Rating: {rating.removesuffix('.0')}"
    shown = record.get(_OBJECTS)
    objects = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown or "")
    # An empty review is not a missing one: the blank keeps them apart.
    own = {} if review is None else {"review": review or " "}
    # The review is read from the record, since the file of reviews may have another one.
    others = {name: text for name, text in answer.fields.items() if name != "review"}
    place = record.get(_PLACE)
    placed = {"place": place} if isinstance(place, str) else {}
    fields = {**others, "objects": objects, **own, **placed}
    return structs.replace(answer, fields=fields)


def _example(rating: int) -> AnswersItem:
    fields = {"reference": "It is red.", "objects": "Hydrant", "review": f"Rating: {rating}"}
    answer = Answer(question="What color is it?", response="A bright red.", fields=fields)
    return AnswersItem(id="1", fields={"type": TYPES[0]}, answers=(answer,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratings(AnswersMetric):
    """A metric of ratings from 0 to 6; the released script takes types by the place."""

    @classmethod
    def remarks(cls, items: Sequence[AnswersItem]) -> Iterator[str]:
        """Yield that an archive has more or fewer answers than the benchmark."""
        if len(items) != _QUESTIONS:
            yield (
                f"the archive has {len(items)} answers, and the benchmark {_QUESTIONS}; those that "
                "are there are scored"
            )

    def derived_fields(self, item: AnswersItem) -> Mapping[str, str]:
        """Return the type that the released script gives a record."""
        return {"type": _type_by_place(item)} if self.variant == PUBLISHED else {}

    def ends(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Return the counts of the lowest rating and of the highest."""
        # The shared ends are answers equal to their label, or not, and ratings have no label.
        return self.columns_of(_example(0)), self.columns_of(_example(_BEST))


_RATED = count("rated", "ratings that count")
BENCHMARK = ClosedQuestions(
    name="mmhal",
    title="MMHal-Bench: open answers about images, rated from 0 to 6 by a judge.",
    unit="answers",
    keys=Keys(
        id=("question_id", "id", "image_id"),
        response=("model_answer", "response", "prediction", "answer", "output", "text"),
        label=(),
        media=("image_src", "image", "image_id"),
        fields={
            "type": ("question_type", "type", "category"),
            "reference": ("gt_answer", "reference", "label"),
            "review": ("review", "reviews", "rating"),
            "objects": (_OBJECTS,),
        },
        optional=("review", "objects"),
    ),
    unfold=EachRecord(_placed),
    seen=("review",),
    labels=(),
    complete=_with_review,
    tables=(
        InputTable(
            name="reviews",
            form="in order",
            meaning="Judge's reviews: a list in the answers' order, or by id.",
        ),
    ),
    variants=(
        AnswerVariant(
            name=PUBLISHED,
            meaning="The released script: an unreadable review is a rating of 0; types by place.",
            parse=_published,
        ),
        AnswerVariant(
            name="corrected",
            meaning="The last rating counts; unreadable reviews do not; types of the records.",
            parse=_corrected,
            unparsed="unscored",
        ),
    ),
    options=(verdicts_option("ratings", "Ratings of answers.", "the reviews of the files"),),
    judged=JudgedAnswers(
        choices={rating: f"Rating: {rating}" for rating in _RATINGS},
        prompts={"": "mmhal"},
        slots={
            **{slot: slot for slot in ("question", "objects", "reference")},
            "answer": "response",
        },
    ),
    scores=(
        share(
            "average_score",
            "sum of the ratings / ratings",
            count("ratings", "sum of the ratings", _rating),
            _RATED,
            own=True,
            unit="points",
            high=_BEST,
        ),
        share(
            "hallucination_rate",
            "ratings below 3 / ratings",
            count("hallucinated", "ratings below 3", lambda answer: not answer.right),
            _RATED,
            direction="lower",
            own=True,
        ),
        share(
            "informativeness",
            "points for information (0 to 3 for each answer) / 3 / ratings",
            count("points", "points for information", lambda a: _rating(a) - 3 * a.right),
            (_RATED,) * 3,
            own=True,
        ),
        unparsed_rate(
            "reviews", "reviews", name="unreadable_rate", column="unreadable", noun="reviews"
        ),
    ),
    ranked_by=("average_score",),
    trial=_example(_BEST),
    base=_Ratings,
    group_by=("type",),
)
"""The declaration."""
