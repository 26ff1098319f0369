"""VLMs are Biased: counting in pictures that were changed, and how often memory answers.

Vo et al., 2025. The pictures show well-known things with another number of parts, such as a logo
with a further stripe. A question has the right answer and the expected bias: what one remembers.

* ``accuracy`` = right answers / answers
* ``bias_ratio`` = answers that are the expected bias / answers
* ``mean_accuracy``, ``mean_bias_ratio``: their plain means over the topics that have an answer
* ``unparsed_rate`` = answers that could not be parsed / answers

Archives are lmms-eval's sample logs, and the authors' list of results with ``api_response``. Logs
since lmms-eval 0.7 hold neither topic nor expected bias: ``-R`` has the data set's rows, in their
order.

The authors release no scorer and point to lmms-eval, which takes ``<think>…</think>`` and
``<analysis>…</analysis>`` off, also where only the closing mark is there.

``lmms-eval`` compares an answer with the right one and the expected bias: all stripped, in lower
case, without braces at the ends. If it equals neither, the digits of each text are joined and
compared, so that "I count 5, not 4: {5}" is 545 and "{5.0}" is 50; "{five}" and "{Yes}." are wrong.
Empty answers and refusals are wrong, and not biased. ``paper`` reads answers in the same way, and
its ``accuracy`` and ``bias_ratio`` are means over topics, as the paper reports them over its seven
tasks (and VLMEvalKit as ``macro_acc``): 20.25 where the pooled figure is 14.58. The published rows
are the task means of the authors' page, ``mean_accuracy`` here.

``corrected`` reads the text in the last braces, else the whole answer: one number, in digits or in
words up to ninety-nine, or a clear yes or no. Numbers are compared as numbers. An answer with
several unequal numbers, with one of hundreds or more in words, or without any is unscored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from msgspec import structs

from .answers.answer_scores import (
    AnswerScore,
    accuracy,
    column_within,
    count,
    mean,
    share,
    unparsed_rate,
)
from .answers.answer_text import NUMBER_WORDS, folded, number_named, spaced
from .answers.closed_questions import (
    Answer,
    AnswerParser,
    AnswerVariant,
    ClosedQuestions,
    EachRecord,
    Keys,
    Parsed,
    one_answer,
)
from .answers.declared_metrics import MeansMetric
from .answers.yes_no import YES_NO_PARSERS
from .framework.arrays import FloatArray, np
from .framework.columns_and_scores import Sums, ratio
from .responses.thoughts import Division, lmms_eval_division

TOPICS = (
    *("Animals", "Logos", "Flags", "Chess Pieces"),
    *("Game Boards", "Optical Illusion", "Patterned Grid"),
)
"""The topics, which the paper reports one by one."""
PAPER, CORRECTED = "paper", "corrected"
# How a parser says that an answer is the expected bias, which may be the right one too.
_BIASED = " (the expected bias)"


_Found: TypeAlias = "tuple[str | None, str, Sequence[bool]]"
# What was parsed, how, and whether it is the right answer and the expected bias.


def _harness(text: str, wanted: Sequence[str]) -> _Found:
    text, *others = [each.strip().lower().strip("{}").strip() for each in (text, *wanted)]
    if text in others:
        return text, "equal", [text == each for each in others]
    digits, *known = ["".join(filter(str.isdigit, each)) for each in (text, *others)]
    # A text without digits equals nothing, so that no answer was read.
    return digits or None, "digits", [bool(digits) and digits == each for each in known]


_BRACES = re.compile(r"\{([^{}]*)\}")
# Digits within a word, as in "3D" and "v2", count nothing, and neither does "no one".
_NUMBER = re.compile(
    r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w)"
    rf"|\b(?<!\bno ){NUMBER_WORDS}\b"
)
# A number beside one of these is a part of another.
_LARGE = re.compile(r"\b(?:dozen|hundred|thousand|million)\b")


def _value(text: str) -> str | None:
    """Return the one number of a text, or else its clear yes or no."""
    text = text.lower()
    found = {number_named(each.replace(",", "")) for each in _NUMBER.findall(spaced(text))}
    if found:
        return f"{found.pop():g}" if len(found) == 1 and not _LARGE.search(text) else None
    return YES_NO_PARSERS["first-word"](text)


def _meant(text: str, wanted: Sequence[str]) -> _Found:
    inside = _BRACES.findall(text)
    text, how = (inside[-1], "braces") if inside else (text, "text")
    known = [_value(each) or folded(each) for each in wanted]
    value = _value(text) or (folded(text) if folded(text) in known else None)
    return value, how, [value == each for each in known]


def _parser(read: Callable[[str, Sequence[str]], _Found]) -> AnswerParser:
    def parse(answer: Answer) -> Parsed:
        wanted = answer.label, answer.fields.get("bias", "")
        value, how, (right, biased) = read(answer.response or "", wanted)
        return Parsed(value, right, how + _BIASED * biased)

    return parse


_AS_RELEASED, _AS_MEANT = _parser(_harness), _parser(_meant)
_ACCURACY = accuracy()
_BIAS = count("biased", "answers that are the bias", lambda a: a.how.endswith(_BIASED))
_BIAS_RATIO = "answers that are the expected bias / answers"
_POOLED = (
    _ACCURACY,
    share("bias_ratio", _BIAS_RATIO, _BIAS, _ACCURACY.counts[-1], direction="lower", own=True),
)
_RATE = unparsed_rate("answers", "answers, parsed or not")


def _over_topics(score: AnswerScore, *, named: bool = True) -> AnswerScore:
    """Return the mean of a share over the topics that have an answer, under its name or another."""
    made = mean(score, "topic", TOPICS, "topics")
    # The mean's own value needs an answer of every topic; here a topic without one is left out.
    shares = [ratio(*(column_within(each.name, t) for each in score.counts)) for t in TOPICS]

    def value(sums: Sums) -> FloatArray:
        known = np.stack([share(sums) for share in shares])
        with np.errstate(invalid="ignore"):
            # nanmean() would warn of a table in which no topic has an answer.
            found: FloatArray = np.nansum(known, axis=0) / (~np.isnan(known)).sum(axis=0)
        return found

    known = made if named else score
    definition = replace(made.definition, value=value, name=known.definition.name)
    return structs.replace(made, definition=definition)


_MEANS = tuple(map(_over_topics, _POOLED))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topics(MeansMetric):
    """A metric whose accuracy may be a mean over topics, unlike the answers that notes count."""

    @property
    def division(self) -> Division | None:
        """Take thoughts off as lmms-eval does, or by the common rules."""
        return None if self.variant == CORRECTED else lmms_eval_division

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return the shared notes, whose sums know no means over topics."""
        notes = MeansMetric.notes_on(self, totals)
        if self.variant != PAPER:
            return notes
        return tuple(note.replace(" accuracy ", " pooled accuracy ") for note in notes)


def _with_place(record: Mapping[str, object], place: int, key: str) -> Mapping[str, object]:
    """Return a question with its place, which is the id of logs without the questions."""
    return {"doc_id": place, **record} if key == "label" else record


BENCHMARK = ClosedQuestions(
    name="vlms-are-biased",
    title="VLMs are Biased: counting in changed pictures, and answers from memory.",
    unit="questions",
    keys=Keys(
        response=("response", "prediction", "output"),
        label=("ground_truth", "label", "answer"),
        id=("doc_id", "ID", "id"),
        media=("image_path", "image"),
        fields={"topic": ("topic", "category"), "bias": ("expected_bias",)},
    ),
    labels=(),
    seen=("bias",),
    places={"topic": TOPICS},
    question_files="questions.json",
    unfold=EachRecord(_with_place),
    variants=(
        AnswerVariant(
            name="lmms-eval",
            meaning="lmms-eval's rule, over all answers: equal texts, else equal joined digits.",
            parse=_AS_RELEASED,
            missing="wrong",
        ),
        AnswerVariant(
            name=PAPER,
            meaning="The same reading; both scores are means over topics, as in the paper.",
            parse=_AS_RELEASED,
            missing="wrong",
            scores=(*(_over_topics(each, named=False) for each in _POOLED), *_MEANS, _RATE),
        ),
        AnswerVariant(
            name=CORRECTED,
            meaning="The number, yes or no in the last braces; several numbers are unscored.",
            parse=_AS_MEANT,
            unparsed="unscored",
        ),
    ),
    scores=(*_POOLED, *_MEANS, _RATE),
    ranked_by=("accuracy",),
    trial=one_answer(id="1", response="4", label="4", fields={"topic": TOPICS[0]}),
    group_by=("topic",),
    base=_Topics,
)
"""The declaration."""
