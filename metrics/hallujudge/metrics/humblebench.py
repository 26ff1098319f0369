"""HumbleBench: multiple choice about images, where the last option is "None of the above".

Tong et al., 2025; the released package HumbleBench 1.0.2, ``utils/metrics.py`` and ``utils/io.py``.
The questions are asked in three modes: with their image (``common``), with a noise image
(``noise_image``), and without the right option (``nota_only``). The option ``mode`` says which it
was, and changes no score. For ``ask``, a noise image is a folder of your own, with noise under the
images' names.

* ``accuracy`` = right answers / lines
* ``none_accuracy`` = right answers with the label E / lines with the label E
* ``a_share`` … ``e_share`` = answers with this letter / lines
* ``na_share`` = answers without a single letter / lines

``published`` follows the released package. The words of an answer are its runs of letters, digits
and underscores, in lower case. An answer is the one letter of a to e among its words; with none or
several it is wrong. So "B. a rope" is wrong, and so is "I'd say C."; ``none_accuracy`` counts an
answer only if it is exactly "E". A line is dropped unless it has the six keys ``question_id``,
``question``, ``type``, ``image``, ``label`` and ``prediction``, with values of their types, and no
others; dropped lines are unscored here, and a note counts them. Empty answers are wrong.

``corrected`` reads the letter of an option, not an article or a part of a contraction, or the text
"None of the above". It scores every line with a prediction, and counts every right E. An answer
without a clear letter is unscored.

Difference from the released package: without a line of label E, ``none_accuracy`` is None, not 0.
In ``noise_image`` the labels stay those of the real image, so that a model that humbly says E is
wrong on most lines: ``e_share`` is then the figure that matters, as a note says.

The published rows are the released result files of the mode ``common``, which have all digits:
22,831 lines, 3,326 of them with the label E. Idefics3 has no row, because its file there says that
it saw noise images. GLM-4.1V answers with E on 9.9 % of the lines and has a ``none_accuracy`` of
0.0006, since the package counts an answer only if it is exactly "E".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from msgspec import structs

from .answers.answer_scores import AnswerScore, accuracy, count, noting, share
from .answers.answers_metric import AnswersMetric
from .answers.choices import read_choice
from .answers.closed_questions import (
    Answer,
    AnswerVariant,
    ClosedQuestions,
    Keys,
    Parsed,
    compared_by,
    one_answer,
)
from .framework.asking import plain
from .framework.metric import OptionDefinition

LETTERS = "ABCDE"
"""The letters of the options; E is none of the above."""
UNKNOWN = "unknown"
"""The mode of a file that the user names none of."""
MODES = (UNKNOWN, "common", "noise_image", "nota_only")
"""The modes in which the questions are asked."""
_KEYS = {"question_id", "question", "type", "image", "label", "prediction"}
# What ``hallujudge ask`` writes into a record next to the prediction.
_OF_ASKING = {"asked", "thought", "steps", "unanswered", "confidence"}
_WORD = re.compile(r"\w+")
_TEXTS = ("prediction", "label", "question", "type")
# A text is a whole number if Python's int() takes it.
_WHOLE = re.compile(r"\s*[+-]?\d+(?:_\d+)*\s*")
_DROPPED = "dropped"
# How ``none_accuracy`` knows the one spelling that it counts.
_EXACT, _AMONG_WORDS = "exactly E", "one letter among the words"


# Answers are mostly single letters, which repeat.
@lru_cache(maxsize=1 << 15)
def _letter_among_words(text: str) -> str | None:
    found = {*_WORD.findall(text.lower())}.intersection(LETTERS.lower())
    return found.pop().upper() if len(found) == 1 else None


def _published(answer: Answer) -> Parsed:
    if fault := answer.fields.get(_DROPPED):
        return Parsed(_DROPPED, False, f"dropped as the package does: {fault}", counts=False)
    text = answer.response or ""
    letter = _letter_among_words(text)
    return Parsed(letter, letter == answer.label, _EXACT if text == "E" else _AMONG_WORDS)


# Only E has one text in all questions; those of the others are lines of the question.
_OPTIONS = {**dict.fromkeys(LETTERS, ""), "E": "None of the above"}


def _with_fault(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer with the reason why the released package drops its line, if it does."""
    if not (fault := _fault(record)):
        return answer
    return structs.replace(answer, fields={**answer.fields, _DROPPED: fault})


def _fault(record: Mapping[str, object]) -> str:
    if fault := _fault_of(tuple(record)):
        return fault
    # Nearly all records pass, and one look at all types takes less time than four.
    for key in _TEXTS if {*map(type, map(record.get, _TEXTS))} != {str} else ():
        if not isinstance(record[key], str):
            return f"{key} is no text"
    if not isinstance(record["image"], (str, Mapping)):
        return "image is neither a text nor an object"
    number = str(record.get("question_id", record.get("id")))
    whole = number.isdecimal() or _WHOLE.fullmatch(number)
    return "" if whole else "question_id is no whole number"


# The records of a file have the same keys.
@lru_cache(maxsize=256)
def _fault_of(keys: Sequence[str]) -> str:
    # An archive that maps ids to records has the id under this name.
    found = {"question_id" if name == "id" else name for name in keys} - _OF_ASKING
    parts = (("without", sorted(_KEYS - found)), ("with the further key", sorted(found - _KEYS)))
    return " and ".join(f"{what} {', '.join(names)}" for what, names in parts if names)


def _is_read(answer: object) -> bool:
    return getattr(answer, "value", None) != _DROPPED


_LINES = count("lines", "lines that are not dropped", _is_read, unread=True)
_LEFT_OUT = count("dropped", "dropped lines", lambda a: not _is_read(a), unread=True)


def _said(name: str, meaning: str, value: str | None) -> AnswerScore:
    said = count(f"said_{name}", meaning, lambda answer: answer.value == value, unread=True)
    meaning = f"{meaning} / lines"
    return share(f"{name}_share", meaning, said, _LINES, direction="neither", bounded=False)


def _dropped_lines(totals: Mapping[str, float]) -> Iterator[str]:
    """Yield how many lines the released package drops, of which its numbers say nothing."""
    if dropped := totals[_LEFT_OUT.name]:
        yield (
            f"lines that are left out, as the released package drops them: {dropped:,.0f}. They "
            "lack a key, have a further one, or a value of another type, such as no prediction"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Modes(AnswersMetric):
    """A metric whose reports say what the mode of the questions means for the scores."""

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return the shared notes, and what the mode of the questions means."""
        mode = getattr(self, "mode", UNKNOWN)
        notes = {
            UNKNOWN: "the mode of the questions is not known; name it with the option mode",
            "noise_image": "the labels are those of the real images, which the model did not see: "
            "e_share, how often it says none of the above, is the figure that matters",
        }
        # super() does not work in a class that slots=True recreates.
        own = [notes[mode]] if mode in notes and totals[_LINES.name] else []
        return (*AnswersMetric.notes_on(self, totals), *own)


BENCHMARK = ClosedQuestions(
    name="humblebench",
    title="HumbleBench: answers among options of which none may be right.",
    unit="questions",
    keys=Keys(
        response=("prediction", "response"),
        label=("label",),
        media=("image", "file_name"),
        fields={"type": ("type",)},
    ),
    labels=tuple(LETTERS),
    seen=(_DROPPED,),
    complete=_with_fault,
    asking=plain("{{question}}\nAnswer with the letter of the right option only."),
    options=(
        OptionDefinition(
            name="mode", default=UNKNOWN, choices=MODES, meaning="Mode of the questions."
        ),
    ),
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released package: the one letter among the words of an answer.",
            parse=_published,
            missing="wrong",
            notes=_dropped_lines,
        ),
        AnswerVariant(
            name="corrected",
            meaning="The letter of an option; answers without a clear one are unscored.",
            parse=compared_by(lambda text: read_choice(text, _OPTIONS).choice, "choice"),
            unparsed="unscored",
        ),
    ),
    scores=(
        noting(accuracy("right answers / lines"), _LEFT_OUT),
        share(
            "none_accuracy",
            "right answers with the label E / lines with the label E",
            count(
                "none_right",
                "right answers with the label E",
                lambda a: a.label == "E" and a.right and a.how != _AMONG_WORDS,
            ),
            count("none_lines", "lines with the label E", lambda a: a.label == "E"),
        ),
        *(_said(letter.lower(), f"answers {letter}", letter) for letter in LETTERS),
        _said("na", "answers without a single letter", None),
    ),
    ranked_by=("accuracy",),
    trial=one_answer(id="1", response="A", label="A", fields={"type": "Object"}),
    group_by=("type",),
    base=_Modes,
)
"""The declaration."""
