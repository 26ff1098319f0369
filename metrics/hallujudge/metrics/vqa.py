"""VQA by judge: open answers about images that agree with an answer of people.

Li et al., 2023 (POPE), section 5.4, Table 6 and appendix E. A judge reads the model's response and
the answers of people (10 in A-OKVQA and VQAv2, one in GQA), and names the one that the response
agrees with, or none. An item is a response.

* ``vqa_score`` = mean of the VQA score (Antol et al., 2015) of the named answer. Each person is
  left out in turn: the mean of min(1, number of others with this answer / 3). With the answer of
  one person it is 1 for a response that agrees, which is the accuracy that Table 6 prints for GQA.
* ``accuracy`` = responses that agree with an answer of people / judged responses
* ``unparsed_rate`` = judgements that name no answer of people and not none / judgements

There is no released script, so the one variant is the paper's: ``judgement`` is the reply of its
judge, which is the text of one of the answers or ``<NAN>``. Differences:

* Letter case and punctuation do not count where a judgement and answers are compared.
* A judgement that is neither an answer of people nor ``<NAN>`` leaves its response unscored. The
  paper does not say what became of them.
* With a judge of ours, the prompt is our own. It offers each answer once, under a letter, the most
  frequent first and ten at most, so that no text of a response can become a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase
from typing import ClassVar

from .answers.answer_items import with_lists
from .answers.answer_scores import count, credit, is_right, share, unparsed_rate
from .answers.answer_text import (
    folded,
    listed_texts,
    most_frequent,
    text_of_list,
    texts_in,
)
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    Answer,
    AnswerVariant,
    ClosedQuestions,
    JudgedAnswers,
    Keys,
    Parsed,
    one_answer,
)
from .framework.asking import plain
from .framework.metric import verdicts_option

NO_MATCH = "<NAN>"
"""The judgement that a response agrees with no answer, in the paper's words."""
_KEYS = ("direct_answers", "answers", "accepted")
# VQA's questions have ten people's answers; the most frequent ones are offered by letters.
_OFFERED = 10
# Stands for an answer's place among the offered ones; a judgement of the file is its text.
_PLACE = re.compile(r"#(\d+)")


# Ten people have few patterns of agreement, and there are many responses.
@lru_cache(maxsize=4096)
def vqa_score(same: tuple[bool, ...]) -> float:
    """Return the VQA score (Antol et al. 2015) of the answer that a response agrees with.

    Args:
        same: Whether each person gave this answer; some did.
    """
    if len(same) == 1:
        return 1.0
    # Each person in turn is left out; three who agree among the others make a full score.
    return sum(min(1.0, (sum(same) - mine) / 3) for mine in same) / len(same)


def _parse(answer: Answer) -> Parsed:
    """Return the answer of people that a judgement names, or ``<NAN>``."""
    # Judges quote the answer that they name, or end it with a full stop.
    said = answer.fields.get("judgement", "").strip().strip("\"'.")
    if said.upper() in (NO_MATCH, NO_MATCH.strip("<>")):
        return Parsed(NO_MATCH, False, "judgement")
    people = texts_in(answer.fields.get("accepted", ""))
    if place := _PLACE.fullmatch(said):
        # A slice: a verdict of a file may name a place that no answer has.
        said = "".join(most_frequent(people)[int(place[1]) - 1 : int(place[1])])
    # People often give the same answer.
    wanted, given = folded(said), {text: folded(text) for text in set(people)}
    same = tuple([given[text] == wanted for text in people])
    if not wanted or True not in same:
        return Parsed(None, False, "judgement")
    return Parsed(people[same.index(True)], True, "judgement", credit=vqa_score(same))


def _with_answers(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer with those of people, the most frequent of which is its label."""
    held = with_lists(record, _KEYS)
    given = next((value for key in _KEYS if (value := held.get(key)) is not None), None)
    texts = listed_texts(given, "answer")
    said = list(map(folded, texts))
    if not said or not all(said):
        raise ValueError(
            "answers of people are not texts",
            "Write a text, or a list of texts or of objects with the key answer",
            given,
        )
    fields = {**answer.fields, "accepted": text_of_list(texts)}
    # As in most_frequent(), of which only the first is needed.
    label = texts[said.index(max(dict.fromkeys(said), key=said.count))]
    return Answer(answer.response, label, answer.name, answer.question, answer.options, fields)


def _offer(answer: Answer) -> str:
    offered = most_frequent(texts_in(answer.fields.get("accepted", "")))
    # Of more answers the rarest ones have no letter.
    lines = zip(ascii_lowercase[:_OFFERED], offered, strict=False)
    return "; ".join(f"{letter}: {text}" for letter, text in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Responses(AnswersMetric):
    """A metric that looks at the answers of people, which hardly repeat."""

    outcomes_repeat: ClassVar[bool] = False


_JUDGED = count("judged", "judged responses")

BENCHMARK = ClosedQuestions(
    name="vqa",
    title="VQA by judge: open answers about images that agree with an answer of people.",
    unit="answers",
    keys=Keys(
        response=("response", "prediction", "model_answer", "output", "text"),
        label=(),
        media=("image", "image_id", "imageId"),
        options=(),
        fields={"accepted": _KEYS, "judgement": ("judgement", "judgment")},
        optional=("judgement",),
    ),
    labels=(),
    base=_Responses,
    question_files="questions.json",
    asking=plain("{{question}}\nAnswer with a word or a short phrase."),
    complete=_with_answers,
    variants=(
        AnswerVariant(
            name="paper",
            meaning="The judge names an answer of people, or none; other judgements do not count.",
            parse=_parse,
            unparsed="unscored",
        ),
    ),
    options=(verdicts_option("judgements", "Judgements of responses.", "those of the file"),),
    judged=JudgedAnswers(
        choices={
            **{letter: f"#{n}" for n, letter in enumerate(ascii_lowercase[:_OFFERED], 1)},
            "none": NO_MATCH,
        },
        prompts={"": "vqa"},
        slots={"question": "question", "accepted": _offer, "response": "response"},
    ),
    scores=(
        share(
            "vqa_score",
            "mean VQA score of the answers that responses agree with",
            count("points", "VQA scores", credit, integral=False),
            _JUDGED,
            own=True,
        ),
        share(
            "accuracy",
            "responses that agree with an answer of people / judged responses",
            count("matched", "responses that agree with an answer of people", is_right),
            _JUDGED,
        ),
        unparsed_rate("judgements", "judgements", noun="judgements"),
    ),
    ranked_by=("vqa_score",),
    trial=one_answer(
        id="1",
        question="What is the man holding?",
        response="He holds a surfboard.",
        label="surfboard",
        answer_fields={
            "judgement": "surfboard",
            "accepted": text_of_list(["surfboard"] * 8 + ["board"] * 2),
        },
    ),
)
"""The declaration."""
