"""AMBER: object words in descriptions of images, and yes/no questions about images.

Wang et al., 2023; the released ``inference.py``.

Descriptions, over their object words (nouns in the association table):

* ``chair`` = words that are neither true, nor associated with a true object, nor safe / words
* ``cover`` = named true objects / true objects
* ``hal`` = descriptions with a hallucinated word / descriptions
* ``cog`` = named hallucination targets / hallucination targets

Questions, with no as the positive class: ``accuracy``, ``precision``, ``recall`` and ``f1``
over all and, as ``existence_accuracy`` and so on, for each dimension.

* ``amber_score`` = (1 - ``chair`` + ``f1``) / 2. The paper introduces it as the "AMBER Score",
  1/2 x (1 - CHAIR + F1); written here after lmms-eval's task ``amber_g``, which quotes it so.
  The released script does not print it.

``published`` reproduces the script:

* Only the answers ``Yes`` and ``No`` are parsed; "No." and "no" are wrong.
* 0.001 is added to each denominator (0.003 for attribute, the sum of three).
* F1 is computed from precision and recall rounded to 0.1 %, with 0.0001 (existence: 0.001)
  added to their sum.
* A word counts for one object only: the first one that it is associated with, or else the one
  that it names. The word "man" may cover "person" and leave "man" uncovered.
* A duplicate annotated object can be covered only once.
* A safe word covers no object, not even the one that it names.

``corrected`` uses the parser ``strict``, and unparsed answers are unscored. It adds and rounds
nothing. A word covers every object that it names or is associated with, also a safe word.
Duplicate annotations count once.

The script finds nouns with nltk, and also compares word vectors (cosine above 0.8). The source
of nouns ``published`` does both; the others compare words by equality only. With vectors, a
word that is similar to a true one is true. The variant ``published`` counts a target as said
before it compares the word with true ones by vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from ..answers.answer_scores import (
    AnswerScore,
    Condition,
    ReadAnswer,
    combined,
    count,
    is_any,
    is_right,
    share,
    unparsed_rate,
)
from ..answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    InputTable,
    Keys,
    SpecialItem,
    compared_by,
)
from ..answers.declared_metrics import metric_of
from ..answers.yes_no import YES_NO_PARSERS
from ..framework.arrays import FloatArray, np
from ..framework.asking import Shown, plain
from ..framework.columns_and_scores import Sums
from .descriptions import (
    ADDED,
    DESCRIPTION_SCORES,
    GENERATIVE,
    OPTIONS,
    RELEASED_DESCRIPTION_SCORES,
    TABLES,
    DescriptionsMetric,
    description_maker,
    ratio_of,
    with_added,
    with_formulas,
)

KINDS = ("existence", "state", "number", "action", "relation")
"""The kinds of questions; state, number and action are attributes."""
# AMBER's type of an annotation -> our kind of question.
_KINDS = {
    "generative": GENERATIVE,
    "discriminative-hallucination": "existence",
    "discriminative-attribute-state": "state",
    "discriminative-attribute-number": "number",
    "discriminative-attribute-action": "action",
    "discriminative-relation": "relation",
    "relation": "relation",
}


# Equal fields are one value, of which there is one for every answer.
_FIELDS = {kind: {"kind": kind} for kind in ("", *_KINDS.values())}


def _released(text: str) -> str | None:
    return {"Yes": "yes", "No": "no"}.get(text)


_RESPONSE = ("response", "answer", "prediction", "output", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Items(DescriptionsMetric):
    """A metric of descriptions and questions."""

    @classmethod
    def task(cls, record: Mapping[str, object]) -> str:
        """Return the kind of a record; empty if its type is unknown."""
        return _KINDS.get(str(record.get("type")), "")

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return how a question is to be answered, with which the released script can parse it."""
        asks = str(record.get("query", record.get("question", ""))).rstrip().endswith("?")
        return Shown(slots={"instruction": "\nAnswer with one word, Yes or No." if asks else ""})

    @classmethod
    def is_question(cls, record: Mapping[str, object]) -> bool:
        """Return whether a record is not a description."""
        return str(record.get("type")) != GENERATIVE

    @classmethod
    def item_maker(cls, tables: Mapping[str, object]) -> SpecialItem:
        """Return what makes descriptions of records."""
        return description_maker(tables)


def _completed(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return an answer with its kind.

    Raises:
        ValueError: The type of its annotation is unknown.
    """
    kind = _Items.task(record)
    if not kind and "type" in record:
        raise ValueError(
            "annotations have an unknown type", f"Use one of {', '.join(_KINDS)}", record["type"]
        )
    # Nouns alone are under a key of responses, and are not a text.
    response = None if record.keys().isdisjoint(_RESPONSE) else answer.response
    return structs.replace(answer, response=response, fields=_FIELDS[kind])


_DIMENSIONS = ("all", "existence", "attribute", "state", "number", "action", "relation")
"""All questions, then the dimensions; attribute is state, number and action together."""
_ATTRIBUTES = frozenset({"state", "number", "action"})

_COUNTS_ADDED = {"attribute": 3}
"""Number of counts that a denominator sums up; 1 for other dimensions."""
_EPSILON = {"existence": 0.001}
"""Addition to precision + recall in the released script; 0.0001 for other dimensions."""

_COUNTS: Mapping[str, tuple[str, Condition]] = {
    "asked": ("questions", is_any),
    "right": ("right answers", is_right),
    "no": ("questions whose answer is no", lambda a: a.label == "no"),
    "said_no": ("answers that say no", lambda a: a.value == "no"),
    "right_no": ("answers that rightly say no", lambda a: a.right and a.value == "no"),
}


def _within(dimension: str, when: Condition) -> Condition:
    """Return the condition of answers to a dimension's questions."""

    def holds(answer: ReadAnswer) -> bool:
        kind = answer.field("kind")
        known = ("all", kind, "attribute" if kind in _ATTRIBUTES else "")
        return dimension in known and when(answer)

    return holds


def _dimension_scores(dimension: str) -> tuple[AnswerScore, ...]:
    asked, right, no, said_no, right_no = (
        count(f"{dimension}_{name}", f"{meaning}: {dimension}", _within(dimension, when))
        for name, (meaning, when) in _COUNTS.items()
    )
    of_all = dimension == "all"
    prefix, within = ("", "") if of_all else (f"{dimension}_", f", {dimension} only")
    rows = (
        ("accuracy", "right answers / questions", right, asked),
        ("precision", "right no answers / no answers", right_no, said_no),
        ("recall", "right no answers / questions whose answer is no", right_no, no),
        ("f1", "harmonic mean of precision and recall", (right_no, right_no), (said_no, no)),
    )
    own = "accuracy" if of_all else ""
    shares = (
        share(f"{prefix}{name}", f"{meaning}{within}", of, among, n=asked, own=name == own)
        for name, meaning, of, among in rows
    )
    # Intervals are over all questions of a dimension.
    return tuple(map(_with_all, shares))


def _with_all(score: AnswerScore) -> AnswerScore:
    known = score.definition
    columns = tuple(dict.fromkeys((*known.columns, known.count)))
    return structs.replace(score, definition=replace(known, columns=columns))


def _released_dimension_scores(dimension: str) -> Iterator[AnswerScore]:
    added = ADDED * _COUNTS_ADDED.get(dimension, 1)
    *shares, f1 = _dimension_scores(dimension)
    yield from (with_added(score, added) for score in shares)
    ratio, epsilon = ratio_of(f1), _EPSILON.get(dimension, 0.0001)

    def of_printed(sums: Sums) -> FloatArray:
        """Return F1 from precision and recall in percent, rounded to one decimal as printed."""
        parts = [sums[ratio.upper[0]] / (sums[name] + added) for name in ratio.lower]
        # Python's rounding is exact in decimals; NumPy's is not.
        precision, recall = (
            np.array([round(x * 100, 1) / 100 for x in part.tolist()]) for part in parts
        )
        result: FloatArray = 2 * precision * recall / (precision + recall + epsilon)
        return result

    yield with_formulas(f1, of_printed, ratio)


def _scores(
    descriptions: tuple[AnswerScore, ...], answers: tuple[AnswerScore, ...]
) -> tuple[AnswerScore, ...]:
    """Return the scores of descriptions, those of answers by dimension, and of both."""
    # Those of all questions come first, and f1 is the fourth of them.
    chair, f1 = descriptions[0], answers[3]
    both = combined(
        "amber_score",
        "(1 - chair + f1) / 2",
        lambda chair, f1: (1 - chair + f1) / 2,
        (chair, f1),
        # It rests on items of both kinds, so that neither part's number would be right.
        n="",
    )
    return (*descriptions, *answers, both, unparsed_rate("questions", "questions"))


BENCHMARK = ClosedQuestions(
    name="amber",
    title="AMBER: hallucinated object words in descriptions, and wrong yes/no answers.",
    unit="items",
    keys=Keys(
        # Descriptions are scored from their nouns alone where there is no text.
        response=(*_RESPONSE, "nouns"),
        label=("truth",),
        id=("id", "question_id"),
        media=("image", "image_id"),
        fields={"kind": ("type",)},
    ),
    seen=("kind",),
    # The descriptions' instruction is in AMBER's file of queries, as the questions are.
    asking=plain("{{question}}{{instruction}}"),
    question_files="annotations.json",
    tables=(
        InputTable(
            name="questions",
            meaning="AMBER's query_all.json: id to image.",
            form="asked",
        ),
        *TABLES,
    ),
    complete=_completed,
    base=_Items,
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released script; words are equal or not, unless nouns are published.",
            parse=compared_by(_released, "published"),
            scores=_scores(
                RELEASED_DESCRIPTION_SCORES,
                tuple(
                    score
                    for dimension in _DIMENSIONS
                    for score in _released_dimension_scores(dimension)
                ),
            ),
        ),
        AnswerVariant(
            name="corrected",
            meaning="Parses whole answers, rounds and adds nothing, covers every named object.",
            parse=compared_by(YES_NO_PARSERS["strict"], "strict"),
            unparsed="unscored",
        ),
    ),
    options=OPTIONS,
    scores=_scores(
        DESCRIPTION_SCORES,
        tuple(score for dimension in _DIMENSIONS for score in _dimension_scores(dimension)),
    ),
    ranked_by=("amber_score", "chair", "accuracy"),
    trial=AnswersItem(
        id="1", answers=(Answer(response="No", label="no", fields={"kind": KINDS[0]}),)
    ),
)
"""The declaration; descriptions add to the columns of the questions."""
AmberMetric = metric_of(BENCHMARK)
"""The metric."""
