"""NaturalBench: two questions on two images, whose answers are the other way round.

Li et al., 2024; the released ``naturalbench_vqa.py``, whose functions lmms-eval and VLMEvalKit
carry too. A group has four answers: each question about each image.

* ``accuracy`` = right answers / answers
* ``question_accuracy`` = questions right about both images / questions
* ``image_accuracy`` = images with both questions right / images
* ``group_accuracy`` = groups with four right answers / groups
* ``unparsed_rate`` = answers that could not be parsed / answers

``published`` follows the released script. The first of the words yes and no is the answer, or of A
and B where the question has options, in any letter case: the article in "It shows a kite, so B." is
the letter A, and "No, wait: yes" is no. An answer without either is wrong, "Nope" and "Yeah" too,
and so is an empty one. Right is yes or A, no or B, no or B, yes or A: the script never reads the
stored answers, and a note says of how many groups they are others.

``corrected`` compares with the stored answers, and reads a clear yes or no, or a letter that is no
article. A group with another answer, such as both, is unscored, so that it has no effect.

A list of texts, which the released script writes, has the answers of a group one after the other,
and an lmms-eval log numbers them in this order by ``doc_id``; since 0.7 it has no ``doc``. Both are
joined with the groups of ``-R`` by ``Index``, and must be in its order. Other records have
``Index``, ``combination`` (``q0_i0``, ``q0_i1``, ``q1_i0`` or ``q1_i1``), ``Question_Type``,
``answer`` and ``response``. An incomplete group is an error. Pictures are found as ``INDEX_0`` and
``INDEX_1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .answers.answer_scores import (
    AnswerScore,
    Bundle,
    Count,
    accuracy,
    all_right,
    are_right,
    noting,
    share,
    unparsed_rate,
)
from .answers.choices import read_choice
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
    Parsed,
)
from .answers.yes_no import YES_NO_PARSERS
from .framework.asking import plain

COMBINATIONS = {f"q{q}_i{i}": f"question {q} about image {i}" for q in (0, 1) for i in (0, 1)}
"""The answers of a group, in their order -> what they are about."""
TYPES = {"yes_no": ("yes", "no"), "multiple_choice": ("A", "B")}
"""Type of a question -> its two answers."""
# Which of the two answers is right, in every released group.
_PATTERN = dict(zip(COMBINATIONS, (0, 1, 1, 0), strict=True))
# What numbers the answers of an archive, over all groups.
_NUMBERS = ("doc_id", "index")


def _expected(name: str, kind: str) -> str:
    return TYPES[kind][_PATTERN.get(name, 0)]


_WORDS = {
    kind: re.compile(rf"\b(?:({a})|({b}))\b", re.IGNORECASE) for kind, (a, b) in TYPES.items()
}


def _published(answer: Answer) -> Parsed:
    kind = answer.fields.get("type") or "yes_no"
    found = _WORDS[kind].search(answer.response or "")
    value = TYPES[kind][(found.lastindex or 1) - 1] if found else None
    return Parsed(value, value == _expected(answer.name, kind), "first word")


def _corrected(answer: Answer) -> Parsed:
    text = answer.response or ""
    value: str | None = YES_NO_PARSERS["strict"](text)
    if answer.fields.get("type") == "multiple_choice":
        # The texts of options are part of the question, so that only letters are known.
        value = read_choice(text, {"A": "", "B": ""}).choice
    return Parsed(value, value == answer.label, "a clear answer")


def _one_answer_each(
    records: Sequence[Mapping[str, object]], key: str
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the four questions of each group, and answers with their group and combination."""
    if key == "label":
        known = [str(each.get("Index")) for each in records if "Question_0" in each]
        # Tables have whole numbers as texts or decimals, such as "7" and 7.0.
        indexes = [float(each) for each in known if each.removesuffix(".0").isdecimal()]
        # Answers without ids are joined by their number, which follows the order of the groups.
        if indexes != sorted(indexes):
            raise ValueError("groups are not in the order of Index", "Sort them by it")
    for place, record in enumerate(records):
        if "combination" in record:
            yield place, record
        elif "Question_0" in record:
            yield from ((place, each) for each in _questions(record, place))
        else:
            yield place, _placed(record, place)


def _placed(record: Mapping[str, object], place: int) -> Mapping[str, object]:
    """Return an answer with its group and combination, which its number says."""
    numbers = [str(n) for k in _NUMBERS if (n := record.get(k)) is not None]
    # Texts of a plain list have no id: their place is their number.
    number = numbers[0] if numbers else str(place) if "listed_text" in record else ""
    if not number.isdecimal():
        return record
    index, at = divmod(int(number), len(COMBINATIONS))
    return {**record, "Index": index, "combination": [*COMBINATIONS][at]}


def _questions(values: Mapping[str, object], place: int) -> Iterator[Mapping[str, object]]:
    """Yield the four questions of a group."""
    index = values.get("Index", place)
    for name in COMBINATIONS:
        question, image = name[1], name[4]
        shown = values.get(f"Image_{image}")
        yield {
            "Index": index,
            "combination": name,
            "question": values.get(f"Question_{question}"),
            "answer": values.get(f"Image_{image}_Question_{question}"),
            "Question_Type": values.get("Question_Type"),
            # The data set holds pictures themselves, which a folder has under names.
            "image": shown if isinstance(shown, str) else f"{index}_{image}",
        }


def _pairs(name: str, noun: str, at: slice) -> AnswerScore:
    """Return the share of questions, or images, whose two answers are right."""

    def right(bundle: Bundle) -> int:
        # The slice cuts the question, or the image, out of a name such as q0_i1.
        parts = {answer.name[at] for answer in bundle}
        return sum(are_right([a for a in bundle if a.name[at] == part]) for part in parts)

    return share(
        name,
        f"{noun} with two right answers / {noun}",
        Count(name=f"right_{noun}", meaning=f"{noun} with two right answers", of=right),
        Count(name=noun, meaning=noun, of=lambda bundle: len({a.name[at] for a in bundle})),
        own=True,
    )


def _stored_otherwise(bundle: Bundle) -> bool:
    return any(a.label != _expected(a.name, a.field("type") or "yes_no") for a in bundle)


_STORED = Count(name="other_answers", meaning="groups that store others", of=_stored_otherwise)


def _never_read(totals: Mapping[str, float]) -> Iterator[str]:
    """Yield how many stored answers the released script does not look at."""
    if groups := totals[_STORED.name]:
        yield f"groups that store other answers, which the script never reads: {groups:,.0f}"


BENCHMARK = ClosedQuestions(
    name="naturalbench",
    title="NaturalBench: questions that two images answer the other way round.",
    unit="groups",
    keys=Keys(
        response=("response", "prediction", "output", "text", "listed_text"),
        label=("answer", "Answer", "label"),
        # The pictures of a group are its own, so that an archive without their names lacks nothing.
        id=("question_id", "id", "image"),
        media=("image",),
        fields={
            "group": ("Index", "group"),
            "combination": ("combination",),
            "type": ("Question_Type", "type"),
        },
    ),
    labels=("yes", "no", "A", "B"),
    bundle=Bundling(by=("group",), name=("combination",)),
    seen=("type",),
    places={"type": tuple(TYPES), "combination": COMBINATIONS},
    question_files="questions.json",
    unfold=_one_answer_each,
    asking=plain("{{question}}\nAnswer with yes or no, or with the letter of the option."),
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released script: the first word yes or no, or A or B, articles too.",
            parse=_published,
            missing="wrong",
            notes=_never_read,
        ),
        AnswerVariant(
            name="corrected",
            meaning="A clear answer, compared with the stored one; groups without are unscored.",
            parse=_corrected,
            unparsed="unscored",
        ),
    ),
    scores=(
        noting(accuracy(), _STORED),
        _pairs("question_accuracy", "questions", slice(2)),
        _pairs("image_accuracy", "images", slice(3, 5)),
        all_right("group_accuracy", "groups with four right answers / groups", own=True),
        unparsed_rate("answers", "answers, parsed or not"),
    ),
    ranked_by=("group_accuracy",),
    trial=AnswersItem(
        id="1",
        answers=tuple(
            Answer(label, label, name, fields={"type": "yes_no"})
            for name, label in zip(COMBINATIONS, ("yes", "no", "no", "yes"), strict=True)
        ),
    ),
    group_by=("type",),
)
"""The declaration."""
