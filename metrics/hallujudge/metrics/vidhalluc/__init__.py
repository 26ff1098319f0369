"""VidHalluc: actions, their order and scene changes in pairs of videos that look and mean alike.

Li et al., 2024; released scripts ``eval_bqa.py``, ``eval_mcq.py`` and ``eval_tsh.py``; the fourth
task, changes of the scene, is in ``scene_changes``.

* ``vidhalluc-bqa``: a question of several clips with a yes or a no for each. It is right if all
  its clips are.
* ``vidhalluc-mcq``: a clip with four actions, of which one or more are right.
* ``vidhalluc-tsh``: a video with two actions, A and B, whose order is asked.

* ``accuracy`` = right questions / questions
* ``unparsed_rate`` = missing or unparsed answers / answers

``published`` reproduces the scripts, including their known bugs:

* A yes or no is the text before the first full stop and the first comma, in any case. "Yes it is"
  and "**Yes**" are wrong, and so is a clip without an answer. A question without any answer, of an
  unknown id or behind the end of a list, leaves the denominator. Questions are joined by position.
* Letters are all capitals A to D that stand alone, such as the article in "A person is running".
  "AC" and "b" are not parsed. Without a letter, the first choice whose text occurs is chosen, so
  that "running" hides "running on a track". No letter equals a label without a letter.
* Orders are read by patterns that exclude single letters instead of words, so that "Action B
  happens after Action A" is read as BA. Brackets before a full stop or a space may be marks.

``corrected`` reads the first yes or no as a word; letters alone or joined, but no article, or else
the longest choices; and the order of whole words, with any text between them and repeated actions
merged. Missing answers count as wrong, also those of whole questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from msgspec import structs

from ..answers.answer_items import HeldAnswers, in_columns
from ..answers.answer_scores import ReadAnswer, all_right, unparsed_rate
from ..answers.answer_text import remembered
from ..answers.answers_metric import AnswersMetric
from ..answers.choices import all_chosen
from ..answers.closed_questions import (
    Answer,
    AnswerParser,
    AnswersEvidence,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
    Parsed,
    compared_by,
)
from ..answers.declared_metrics import metric_of
from ..answers.orders import order_of_two
from ..answers.yes_no import first_yes_no
from ..framework.asking import Shown, plain
from ..framework.results import ScoredItem
from . import scene_changes


def yes_no_before_marks(text: str) -> str | None:
    """Return what is before the first full stop and comma if it is yes or no, as released."""
    word = text.strip().partition(".")[0].partition(",")[0].strip().lower()
    return word if word in ("yes", "no") else None


_ALONE = re.compile(r"\b[A-D]\b")


@remembered
def _capitals(text: str) -> frozenset[str]:
    return frozenset(_ALONE.findall(text))


def _letters_alone(answer: Answer) -> frozenset[str]:
    text = answer.response or ""
    if found := _capitals(text):
        return found
    # Files with another order than that of the letters have it in a field.
    # A client may send anything, letters without a choice too.
    order = answer.fields.get("order", "").split()
    letters = [each for each in order if each in answer.options] or sorted(answer.options)
    lower = text.lower()
    named = (each for each in letters if answer.options[each].lower() in lower)
    return frozenset({next(named, "")} - {""})


_LETTERS = re.compile("[A-D]")
_LABEL = re.compile(r"\s*(?:(?:[A-D][\s,;&]*(?:and\s+)?)+|none\b.*|None\b.*)")


def with_order(answer: Answer, _record: Mapping[str, object]) -> Answer:
    """Return an answer with the order of its choices, where the file has another than letters.

    Raises:
        ValueError: The label is not letters.
    """
    if answer.label and not _LABEL.fullmatch(answer.label):
        raise ValueError("labels are not letters A to D", "Correct them", answer.label)
    if sorted(answer.options) == [*answer.options]:
        return answer
    return structs.replace(answer, fields={"order": " ".join(answer.options)})


def choices_published(answer: Answer) -> Parsed:
    """Return the letters alone, or the first choice whose text occurs."""
    letters = _letters_alone(answer)
    right = letters == set(_LETTERS.findall(answer.label))
    return Parsed(", ".join(sorted(letters)) or None, right, "letters alone, or a choice")


_MARK = r"(action [ab]|[ab][\.\)])"
# As released: the classes exclude the letters of the words.
_PATTERNS = {
    word: re.compile(rf"{_MARK}[^{word}]+{word}[^action]*?{_MARK}")
    for word in ("before", "then", "after")
}


def order_by_patterns(text: str) -> str | None:
    """Return the order as the released script reads it, which may be another text than AB or BA."""
    text = text.lower()
    if text in ("ab", "ba", "a", "b"):
        return text.upper()
    named = [each for each in "ab" if f"action {each}" in text]
    if "not clear" in text or "no clear" in text or not named:
        return None
    if len(named) == 1:
        return named[0].upper()
    word = next((each for each in _PATTERNS if each in text), "")
    found = _PATTERNS[word].search(text) if word else None
    marks = list(found.groups()) if found else re.findall(_MARK, text)
    order = [mark[-1] for mark in marks]
    return "".join(order[::-1] if found and word == "after" else order).upper()


_Records: TypeAlias = Sequence[Mapping[str, object]]
_Unfolded: TypeAlias = Iterator[tuple[int, Mapping[str, object]]]
# A dict is found in a fifth of the time of another mapping.
_OBJECT = (dict, Mapping)


def _questions(records: _Records, key: str) -> _Unfolded:
    """Yield the questions of objects id -> list, by position; other records as they are."""
    # A mapping in memory is split into records.
    named = [{str(r["id"]): r["text"]} if r.keys() == {"id", "text"} else r for r in records]
    lists = [each for values in named for each in values.values() if isinstance(each, list)]
    asked = [each for listed in lists for each in listed if isinstance(each, _OBJECT)]
    # Where all lack it the key has another name, and no model left everything out.
    if asked and all(each.get("a") is None for each in asked):
        raise ValueError(_no_clips(asked), "Give it this name")
    for place, values in enumerate(named):
        if not all(isinstance(each, list) or each is None for each in values.values()):
            flat = records[place]
            yield place, {"question": flat["q"], **flat} if "q" in flat else flat
            continue
        for name, listed in values.items():
            for number, each in enumerate(listed if isinstance(listed, list) else ()):
                where = f"question {number + 1} of {name!r}"
                clips = each.get("a") if isinstance(each, _OBJECT) else ()
                # As released, an answered question may lack its clips, but not under another name.
                if clips is None and any(
                    isinstance(held, (list, *_OBJECT)) for held in each.values()
                ):
                    raise ValueError(f"{where}: {_no_clips([each])}", "Give it this name")
                clips = {} if clips is None else clips
                if not isinstance(clips, _OBJECT) or not (clips or key == "response"):
                    raise ValueError(f"{where} has no clips", "Add them")
                own = {"question_id": f"{name}_{number}", "video": name, "question": each.get("q")}
                yield place, {**own, f"{key}s": clips}


def _no_clips(asked: _Records) -> str:
    found = ", ".join(sorted({name for each in asked for name in each}))
    return f"no key for clips: tried a; found {found}"


def _clips(records: _Records, _key: str) -> _Unfolded:
    """Yield the clips of an id, if a record has nothing else; other records as they are."""
    for place, values in enumerate(records):
        clips = {name: each for name, each in values.items() if isinstance(each, _OBJECT)}
        if "id" not in values or not values.keys() - {"id"} <= clips.keys():
            yield place, values
            continue
        for name, each in clips.items():
            own = {"id": f"{values['id']}_{name}", "video": values["id"], "clip": name}
            yield place, {**each, **own}


def _variants(published: AnswerParser, corrected: AnswerParser) -> tuple[AnswerVariant, ...]:
    return (
        AnswerVariant(
            name="published",
            meaning="The released script; unparsed answers are wrong.",
            parse=published,
            missing="wrong in part",
        ),
        AnswerVariant(
            name="corrected",
            meaning="Reads whole words; missing and unparsed answers are wrong.",
            parse=corrected,
            missing="wrong",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfClips(AnswersMetric):
    """A metric of questions about clips."""

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:  # noqa: ARG003
        """Return that a clip is shown: a question's id is its video's, or has the clip's in it."""
        return Shown(media=("clip",))


_COLUMNS = {"labels": "label", "responses": "response"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clips(_OfClips):
    """A metric whose answers are named by ids of clips, which say nothing of their outcomes."""

    outcomes_repeat: ClassVar[bool] = False

    @classmethod
    def held_answers(cls, record: Mapping[str, object]) -> HeldAnswers | None:
        """Return the clips of a question."""
        return in_columns(record, _COLUMNS)

    def read(self, answer: Answer) -> ReadAnswer:
        """Parse an answer without its name, so that outcomes of bundles repeat."""
        return AnswersMetric.read(self, structs.replace(answer, name=""))

    def score_answers(self, answers: Sequence[Answer]) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a bundle, with the names of its answers."""
        made = AnswersMetric.score_answers(self, answers)
        verdicts = zip(made.evidence.answers, answers, strict=True)
        named = tuple([structs.replace(verdict, name=each.name) for verdict, each in verdicts])
        return made._replace(evidence=AnswersEvidence(answers=named))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices(_OfClips):
    """A metric of questions with four choices."""

    @classmethod
    def remarks(cls, items: Sequence[AnswersItem]) -> Iterator[str]:
        """Yield how many questions have other choices than A to D."""
        choices = [(item.id, answer.options) for item in items for answer in item.answers]
        others = [(name, [*each]) for name, each in choices if each and sorted(each) != [*"ABCD"]]
        for name, letters in others[:1]:
            shown = ", ".join(letters)
            yield (
                f"{len(others)} of {len(items)} questions have other choices than A, B, C, D: "
                f"{shown} in {name}"
            )


BINARY = ClosedQuestions(
    name="vidhalluc-bqa",
    title="VidHalluc: questions about an action that are right for all their clips.",
    unit="questions",
    keys=Keys(
        response=("response", "prediction", "answer", "a"),
        label=("label", "truth", "gt"),
        media=("video", "video_id"),
        fields={
            "question_id": ("question_id", "id"),
            "clip": ("clip", "clip_id"),
            **{key: (key,) for key in _COLUMNS},
        },
        optional=tuple(_COLUMNS),
    ),
    bundle=Bundling(by=("question_id",), name=("clip",)),
    question_files="binary_qa.json",
    base=_Clips,
    unfold=_questions,
    variants=_variants(
        compared_by(yes_no_before_marks, "before marks"),
        compared_by(first_yes_no, "first yes or no"),
    ),
    scores=(
        all_right("accuracy", "right questions / questions", own=True),
        unparsed_rate("answers", "answers of clips"),
    ),
    ranked_by=("accuracy",),
    trial=AnswersItem(id="1", answers=(Answer(response="Yes.", label="yes", name="1"),)),
)
"""Binary questions."""
CHOICES = structs.replace(
    BINARY,
    name="vidhalluc-mcq",
    title="VidHalluc: clips whose actions are all chosen, and no others.",
    keys=Keys(
        response=("Model Answer", "response", "prediction"),
        label=("Correct Answer", "label", "answer"),
        options=("Choices", "choices", "options"),
        media=("video", "video_id"),
    ),
    labels=(),
    base=_Choices,
    bundle=Bundling(),
    question_files="",
    unfold=_clips,
    complete=with_order,
    asking=plain("{{question}}\n{{options}}\nAnswer with the letters of all right ones."),
    variants=_variants(choices_published, all_chosen("ABCD", "letters, or choices")),
    trial=AnswersItem(
        id="1", answers=(Answer(response="A", label="A", options={"A": "running", "B": "sitting"}),)
    ),
)
"""Multiple choice questions."""
ORDER = structs.replace(
    CHOICES,
    name="vidhalluc-tsh",
    title="VidHalluc: videos whose two actions are put in the right order.",
    labels=("AB", "BA"),
    # CHOICES has both, and they are about options, which orders do not have.
    base=None,
    complete=None,
    asking=plain(
        "{{question}}\nAnswer AB if action A comes first, and BA if action B comes first."
    ),
    unfold=None,
    variants=_variants(
        compared_by(order_by_patterns, "patterns"),
        compared_by(order_of_two, "words"),
    ),
    trial=AnswersItem(id="1", answers=(Answer(response="AB", label="AB"),)),
)
"""Orders of two actions."""
BENCHMARKS = (BINARY, CHOICES, ORDER, scene_changes.BENCHMARK)
VidhallucBqaMetric, VidhallucMcqMetric, VidhallucTshMetric, VidhallucSthMetric = map(
    metric_of, BENCHMARKS
)
