"""A benchmark of your own: is an object on the left or on the right of the image?"""

from hallujudge.metrics.answers.answer_scores import count, is_right, share
from hallujudge.metrics.answers.answer_text import words_of
from hallujudge.metrics.answers.closed_questions import (
    AnswerVariant,
    ClosedQuestions,
    Keys,
    compared_by,
    one_answer,
)

SIDES = ("left", "right")


def exact(response: str) -> str | None:
    """Return the side that is the whole answer."""
    text = response.strip(" .").casefold()
    return text if text in SIDES else None


def by_word(response: str) -> str | None:
    """Return the only side that an answer names."""
    found = [side for side in SIDES if side in words_of(response)]
    return found[0] if len(found) == 1 else None


ANSWERS = count("answers", "answers that count")
RIGHT = count("right", "right answers", is_right)

BENCHMARK = ClosedQuestions(
    name="my-sides",
    title="My sides: whether an object is left or right.",
    unit="questions",
    keys=Keys(response=("answer", "response"), label=("side",), media=("image",)),
    labels=SIDES,
    variants=(
        AnswerVariant(
            name="exact",
            meaning="The whole answer is a side; any other answer is wrong.",
            parse=compared_by(exact, "exact"),
        ),
        AnswerVariant(
            name="word",
            meaning="The answer names one side; any other answer is unscored.",
            parse=compared_by(by_word, "word"),
            unparsed="unscored",
        ),
    ),
    scores=(share("accuracy", "right answers / answers", RIGHT, ANSWERS, own=True),),
    ranked_by=("accuracy",),
    trial=one_answer(id="1", response="Left.", label="left"),
)
