"""ChartHal: answers about charts, which a judge marks with 0 or 1.

Wang et al., 2025; released scripts ``evaluate.py``, which reads a mark in the judge's text, and
``get_result.py``, which counts marks. Questions have a type (``desc``, ``reason``, ``open``) and a
relation to their chart (``irrel``, ``inexist``, ``contra``, ``normal``).

* ``accuracy`` = answers marked 1 / answers marked 0 or 1; the script's overall_score / 100
* ``exception_rate`` = answers without such a mark / answers

Groups are ``q_type``, ``q_relation`` and ``q_type_q_relation``, such as ``desc/irrel``. Answers
without a mark of 0 or 1 are unscored in all variants: exceptions, which leave every denominator.

* ``published`` follows ``get_result.py``: only ``score`` is read, and a number (or true, false)
  equal to 0 or 1 is a mark. The text "1" is none.
* ``evaluated`` reads the judge's text as ``evaluate.py`` does, whatever ``score`` is: in the first
  three lines the number after the word score, else a number before "/10", else the first lone
  number from 0 to 10; limited to 0 to 10 and rounded, halves to even. "Score: 0.6" is 1, and "The
  chart has 4 series. So the mark is 1." is 4.
  A language model that judges then replies with a text, as the released judge does.
* ``corrected`` takes the last "score: N" of the judge's text, and ``score`` where there is none.
  Values between 0 and 1 are not marks.

Differences from the script: it divides by zero, and stops, unless each of the twelve pairs of type
and relation has a mark. Here, a group without one has no score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from .answers.answer_scores import accuracy, unparsed_rate
from .answers.answer_text import MAX_KEPT_CHARS
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    Answer,
    AnswerParser,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    JudgedAnswers,
    Keys,
    Parsed,
    one_answer,
)
from .framework.asking import plain
from .framework.metric import verdicts_option

TYPES = ("desc", "reason", "open")
"""The types of questions."""
RELATIONS = ("irrel", "inexist", "contra", "normal")
"""The relations of questions to their charts."""
MARKS = ("0", "1")
"""What the judge writes of a wrong and of a right answer."""
_MOST, _LINES, _HUGE = 10, 3, 1e300
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
# As in the released script, one after the other.
_RELEASED = (
    re.compile(rf"\bscore\b\s*[:\-]?\s*{_NUMBER}", re.IGNORECASE),
    re.compile(rf"{_NUMBER}\s*/\s*10"),
    re.compile(r"(?<!\d)(10|[0-9])(?!\d)"),
)
# "Score: 1", "**Score:** 1" and "score 1."; not the end of another word.
_STATED = re.compile(rf"\bscore\b[\s*]*[:\-]?[\s*]*{_NUMBER}", re.IGNORECASE)


def _released(text: str) -> str:
    """Return the mark that the released script reads; -1 for none."""
    # As the script, which looks for a mark in the first lines only.
    head = "\n".join(text.splitlines()[:_LINES])
    found = next((match for each in _RELEASED if (match := each.search(head))), None)
    return str(round(min(_MOST, float(found[1])))) if found else "-1"


# Marks and the texts of judges repeat.
@lru_cache(maxsize=1 << 12)
def _judgement(score: float | str | None, text: str) -> str:
    """Return a score, the mark that the released script reads in a text, and the last it states."""
    found = _STATED.findall(text)
    # "Score: 1.0" states the mark 1, and "Score: 0.5" none.
    stated = str(found[-1]).removesuffix(".0") if found else ""
    return f"score={_shown(score)} evaluated={_released(text)} stated={stated}"


def _shown(score: float | str | None) -> str:
    """Return a score as text: True, 1.0 and -0.0 are 1 and 0, and a text is none of them."""
    if score is None or isinstance(score, str):
        return "" if score is None else "text"
    # A whole number of hundreds of digits is not a mark, and not a float.
    # Adding 0.0 turns -0.0, whose text is "-0", into the 0 that the script takes it for.
    return "inf" if abs(score) > _HUGE else f"{score + 0.0:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marked(AnswersMetric):
    """A metric whose judge may write texts with marks."""

    verdict_prompts: ClassVar[dict[str, str]] = {"evaluated": "charthal_score"}

    def derived_fields(self, item: AnswersItem) -> Mapping[str, str]:
        """Return type and relation of a question."""
        kind, relation = item.fields.get("q_type", ""), item.fields.get("q_relation", "")
        return {"q_type_q_relation": f"{kind}/{relation}"}


def _with_judgement(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer with what its record says of its mark: the score, and what a text states."""
    score, text = record.get("score"), record.get("eval_resp")
    said = text if isinstance(text, str) else ""
    # Without either the answer waits for a judge; an empty judgement would be an exception.
    if score is None and not said:
        return answer
    # A cache of long texts would take much memory, and they hardly repeat.
    judged = _judgement if len(said) <= MAX_KEPT_CHARS else _judgement.__wrapped__
    # A score may be a list or an object in a damaged file, which is not a key of a cache.
    held = score if score is None or isinstance(score, (int, float)) else "text"
    fields = {**answer.fields, "judgement": judged(held, said)}
    return Answer(answer.response, "", answer.name, answer.question, answer.options, fields)


def _read(how: str, *names: str) -> AnswerParser:
    """Return the parser that takes the first of some parts of a judgement that is not empty."""

    def parse(answer: Answer) -> Parsed:
        said = answer.fields.get("judgement", "")
        # No part has a blank: each is a number, or the word "text".
        held = dict(part.partition("=")[::2] for part in said.split(" "))
        # A judge's own mark, or text, is the whole judgement.
        in_file = said.startswith("score=")
        found = next(filter(None, map(held.get, names)), "") if in_file else _released(said)
        return Parsed(found if found in MARKS else None, found == "1", how)

    return parse


def _notes(totals: Mapping[str, float]) -> Iterator[str]:
    """Yield how many answers leave the denominator, and the accuracy if they counted as 0."""
    marked, right, exceptions = (totals[name] for name in ("marked", "right", "exceptions"))
    if exceptions and marked:
        yield (
            f"{exceptions:,.0f} of {marked + exceptions:,.0f} answers have no mark of 0 or 1, and "
            f"leave the denominator; counted as 0, accuracy is {right / (marked + exceptions):.4f},"
            f" not {right / marked:.4f}"
        )


def _variant(name: str, meaning: str, parse: AnswerParser) -> AnswerVariant:
    return AnswerVariant(name=name, meaning=meaning, parse=parse, unparsed="unscored", notes=_notes)


BENCHMARK = ClosedQuestions(
    name="charthal",
    title="ChartHal: answers about charts, marked 0 or 1 by a judge.",
    unit="answers",
    keys=Keys(
        id=("id", "question_id"),
        response=("response", "prediction", "output"),
        label=(),
        media=("figure_path", "figure_id"),
        fields={
            **{name: (name,) for name in ("q_type", "q_relation")},
            "reference": ("ref_answer", "reference"),
            "judgement": ("judgement", "score", "eval_resp"),
        },
        optional=("judgement",),
    ),
    seen=("judgement",),
    labels=(),
    places={"q_type": TYPES, "q_relation": RELATIONS},
    question_files="questions.json",
    complete=_with_judgement,
    asking=plain("{{question}}"),
    variants=(
        _variant("published", "get_result.py: a score equal to 0 or 1.", _read("score", "score")),
        _variant("evaluated", "evaluate.py: its mark of the text.", _read("text", "evaluated")),
        _variant(
            "corrected",
            "The last mark that the judge's text states, else the score.",
            _read("stated", "stated", "score"),
        ),
    ),
    options=(verdicts_option("judgements", "Judgements of answers.", "those of the file"),),
    judged=JudgedAnswers(
        choices={mark: mark for mark in MARKS},
        prompts={"": "charthal"},
    ),
    scores=(
        accuracy("answers marked 1 / answers marked 0 or 1", among="marked"),
        unparsed_rate(
            "answered", "answers", name="exception_rate", column="exceptions", noun="marks"
        ),
    ),
    ranked_by=("accuracy",),
    trial=one_answer(
        id="1",
        question="What is the value of the red line?",
        response="There is no red line.",
        fields={"q_type": TYPES[0], "q_relation": RELATIONS[1]},
        answer_fields={"judgement": "1", "reference": "The chart has no red line."},
    ),
    group_by=("q_type", "q_relation", "q_type_q_relation"),
    base=_Marked,
)
"""The declaration."""
