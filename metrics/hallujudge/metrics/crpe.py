"""CRPE: questions about existence, subjects, predicates and objects, each asked four times.

Wang et al., 2024; the released ``eval_crpe.py`` of the All-Seeing Project V2. A question has four
options, which are rolled on by one each time: it counts if all four answers are right. Answers are
lines as LLaVA's loader writes them, with ``question_id`` and ``text``; ``-R`` has the questions.

* ``accuracy`` = questions with four right answers / questions; in ``lmms-eval`` right answers /
  answers, which is another number under the same name
* ``answer_accuracy`` = right answers / answers, in every variant
* ``unparsed_rate`` = answers that are not an option's letter / answers

``published`` follows the released script. An answer is right if its text is the letter and nothing
else: "B.", "(B)", "b" and ``<answer>B</answer>`` are wrong, empty ones too. Four answers of a
category are a question in the order of the file, whatever their ids, so that lines that changed
places change the numbers. Where the number of answers of a category is not a multiple of four, the
script stops, and the score is None here. It prints no figure of all categories: ``accuracy`` has a
value for each category, and overall only if there is one category.

``lmms-eval`` follows its task ``crpe_relation``: thoughts and the marks of an answer go, then all
punctuation; an option's text anywhere in what is left, the leftmost one, is that option. So "It is
not the cart" is the cart, "The answer is B." is wrong, "B. t-shirt" too since its hyphen is lost,
and a closing mark without an opening one leaves the thought in the answer.

``corrected`` reads an option's letter or text, and puts the answers together that have one image,
stem and set of options. A question without four answers, or with one that can't be parsed, does not
count in ``accuracy``, whose n says how many do; ``unparsed_rate`` says how many answers are unread.

The published rows are of one category each. The "Overall" of the authors' table is the mean of the
three categories of relations, without existence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import punctuation
from typing import ClassVar

from .answers.answer_scores import AnswerScore, accuracy, is_right, unparsed_rate, value_of
from .answers.answer_text import number_of
from .answers.answers_metric import AnswersMetric
from .answers.choices import read_choice
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    EachRecord,
    Keys,
    Parsed,
    one_answer,
)
from .framework import columns_and_scores as framework
from .framework.arrays import FloatArray, np
from .framework.columns_and_scores import Column, Grouping
from .responses.thoughts import Division, keyed_division

CATEGORIES = ("exist", "subject", "predicate", "object")
"""What questions are about."""
_CODES = {name: code for code, name in enumerate(CATEGORIES, start=1)}
PUBLISHED, HARNESS, CORRECTED = "published", "lmms-eval", "corrected"
_TIMES = 4
# Key of a record's place in the file; released records have none of this name.
_PLACE = "place in the file"
# As in lmms-eval, which also takes "plan B. …" within the stem for an option.
_OPTION = re.compile(r"\b([A-Z])\.\s+([^\n]*)")


# Two parsers read the options of a question, one after the other.
@lru_cache(maxsize=16)
def _options(question: str) -> Sequence[tuple[str, str]]:
    """Return letter and text of each option."""
    return _OPTION.findall(question)


def _published(answer: Answer) -> Parsed:
    text = answer.response or ""
    value = text if len(text) == 1 else None
    # A label of several letters makes any answer wrong, as in the script.
    return Parsed(value, value == answer.label, "the letter alone")


_TAGS = re.compile(r"<think>.*?</think>|<thought>.*?</thought>", re.DOTALL)
_MARKED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_MARKS = re.compile(r"[^\w\s]")
# Its filter drops all but letters, digits, "_" and blanks, and its comparison ASCII punctuation.
_NO_MARKS = str.maketrans("", "", punctuation)


def _harness(answer: Answer) -> Parsed:
    text = _TAGS.sub("", answer.response or "").strip()
    text = marked[1].strip() if (marked := _MARKED.search(text)) else text
    said = _MARKS.sub("", text).strip()
    letters = {text.strip(): letter for letter, text in _options(answer.question)}
    places = [(at, n, x) for n, x in enumerate(letters) if (at := said.find(x)) >= 0]
    # The leftmost option counts; of options at one place the first.
    value = letters[min(places)[2]] if places else said
    wanted, given = (each.lower().translate(_NO_MARKS) for each in (answer.label, value))
    # For the rate of unread answers; whether an answer is right does not depend on it.
    known = value.upper() if value.upper() in letters.values() else None
    return Parsed(known, given == wanted, "an option's text" if places else "letter")


def _corrected(answer: Answer) -> Parsed:
    value, how = read_choice(answer.response or "", dict(_options(answer.question)))
    return Parsed(value, value == answer.label.upper(), how)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Circular(AnswersMetric):
    """A metric whose answers count together by fours, whatever lies between them."""

    place_columns: ClassVar[tuple[Column, ...]] = (
        Column(name="category", meaning="category, as a number", label=True),
        Column(name="place", meaning="place in the file", label=True),
        Column(name="question", meaning="question, as a number", integral=False, label=True),
    )

    @property
    def division(self) -> Division | None:
        """Take no marks off for the scripts, which know none of thoughts."""
        return None if self.variant == CORRECTED else keyed_division

    def seen_of(self, answer: Answer) -> tuple[str | None, ...]:
        """Return what parsers see of an answer: the question from its options on, if not a letter.

        Before them is what differs from question to question.
        """
        seen = AnswersMetric.seen_of(self, answer)
        if self.variant == PUBLISHED and len(answer.response or "") <= 1:
            return seen
        first = _OPTION.search(answer.question)
        return (*seen, answer.question[first.start() :] if first else "")

    def places(self, item: AnswersItem) -> tuple[float, ...]:
        """Return the category of an answer, and its place or its question where they count."""
        answer = item.answers[0] if item.answers else Answer(None)
        category, place, question = item.fields.get("category", ""), 0, 0
        if self.variant == PUBLISHED and (at := answer.fields.get("place", "")[:9]).isdecimal():
            place = int(at)
        if self.variant == CORRECTED:
            # Rolled options are the same lines of the question, after other letters.
            lines = answer.question.split("\n")
            kept = sorted([line[2:] if line[1:2] == "." else line for line in lines])
            question = number_of(category, item.group_id, *kept)
        return _CODES.get(category, 0), place, question

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the columns of questions that count, and of those that are right."""
        category, every = items["category"], np.ones(len(items["right"]), dtype=np.bool_)
        keys = items["question"].copy()
        if self.variant == PUBLISHED:
            # By category, then by the place in the file: each four in this order are a question.
            order = np.lexsort((items["place"], category))
            first = np.searchsorted(category[order], category[order])
            keys[order] = category[order] * len(order) + (np.arange(len(order)) - first) // _TIMES
        groups = Grouping(keys, every)
        whole = groups.count(every) == _TIMES
        counted = whole & (groups.count(items["answered"] > 0) == _TIMES)
        if self.variant == PUBLISHED:
            # The script prints no figure of several categories, and stops within a question.
            counted &= whole.all() and len(np.unique(category)) == 1
        right = counted & (groups.count(items["right"] > 0) == _TIMES)
        return {"questions": groups.placed(counted), "right_questions": groups.placed(right)}


# Rows stay as they are, since questions are made from whole tables of answers.
_MEANING = "questions with four right answers / questions"
_CIRCULAR = AnswerScore(
    definition=framework.share("accuracy", _MEANING, "right_questions", "questions", bounded=False),
    counts=(value_of("row", "whether the answer is right", is_right),),
)
_SHARED = (accuracy(name="answer_accuracy"), unparsed_rate("answers", "answers, parsed or not"))


def _accuracy_means(what: str) -> Callable[[Mapping[str, float]], Iterable[str]]:
    """Return the notes that say which of the two numbers ``accuracy`` is."""
    return lambda totals: [f"accuracy counts {what}"] if totals["answers"] else []


def _question(record: Mapping[str, object], place: int, key: str) -> Mapping[str, object]:
    """Return a record; the text of a question is its question, and of an answer its response."""
    if key == "label":
        return {"question": record.get("text"), **record}
    return {_PLACE: str(place + 1), **record}


BENCHMARK = ClosedQuestions(
    name="crpe",
    title="CRPE: existence, subjects, predicates and objects, each asked four times.",
    unit="answers",
    keys=Keys(
        response=("response", "text", "prediction", "output"),
        label=("correct_option", "label"),
        id=("question_id", "doc_id", "id"),
        media=("image",),
        fields={"category": ("category",), "place": (_PLACE,)},
        optional=("place",),
    ),
    labels=(),
    places={"category": CATEGORIES},
    question_files="questions.json",
    unfold=EachRecord(_question),
    variants=(
        AnswerVariant(
            name=PUBLISHED,
            meaning="The released script: the letter alone; questions are fours in file order.",
            parse=_published,
            missing="wrong",
            notes=_accuracy_means("four answers of a category, in the order of the file, as one"),
        ),
        AnswerVariant(
            name=HARNESS,
            meaning="lmms-eval's rule: each answer counts alone; an option's text is its letter.",
            parse=_harness,
            missing="wrong",
            notes=_accuracy_means("each answer, not the four to a question as the paper does"),
            scores=(accuracy(), *_SHARED),
        ),
        AnswerVariant(
            name=CORRECTED,
            meaning="A letter or an option's text; questions by image, stem and options.",
            parse=_corrected,
            unparsed="unscored",
            notes=_accuracy_means("the four answers to a question as one, wherever they are"),
        ),
    ),
    scores=(_CIRCULAR, *_SHARED),
    # One answer is not a question of four, so that its own score is the second one.
    ranked_by=("accuracy", "answer_accuracy"),
    trial=one_answer(
        id="1",
        response="A",
        label="A",
        fields={"category": "object"},
        answer_fields={"place": "1"},
    ),
    group_by=("category",),
    base=_Circular,
)
"""The declaration."""
