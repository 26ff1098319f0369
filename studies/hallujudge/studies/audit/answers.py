"""NaturalBench, CRPE and VLMs are Biased: ways of counting answers, from a harness's to ours.

VLMEvalKit counts CRPE by four rows of a table that follow each other, which are one question. This
is after ``vlmeval/dataset/utils/crpe.py`` and the class ``CRPE`` of
``vlmeval/dataset/image_vqa.py``, as the package ms-vlmeval 0.0.20 has them (May 2026). Commits
before pull request 1205 (opened in August 2025) count each row by itself; their numbers are not
explained here.

* A row is right if the prediction is one character, or begins with A, B, C or D, and its first
  character is that of the table's answer.
* Another prediction is right if it has the answer's text from its fifth character on, in any case.
  Of an answer of four characters or fewer, such as a letter alone, nothing is left: every such
  prediction is right then.
* Rows are taken by fours, whatever was asked; the tool stops where the last four are not whole. It
  looks at no row after the first wrong one, whose category is the question's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from msgspec import structs

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem
from hallujudge.metrics.responses.thoughts import divided
from hallujudge.sdk.errors import InvalidInputError

from .waterfall import AuditOptions, Counts, Ratio, Row, Scored, Stage

_ACCURACY = Ratio(numerator=("right",), denominator=("answered",))
RATIOS: Mapping[str, Mapping[str, Ratio]] = {
    "naturalbench": {
        "accuracy": _ACCURACY,
        "question_accuracy": Ratio(numerator=("right_questions",), denominator=("questions",)),
        "image_accuracy": Ratio(numerator=("right_images",), denominator=("images",)),
        "group_accuracy": Ratio(
            numerator=("group_accuracy_right",), denominator=("group_accuracy_groups",)
        ),
    },
    "crpe": {"accuracy": _ACCURACY},
    "vlms-are-biased": {
        "accuracy": _ACCURACY,
        "bias_ratio": Ratio(numerator=("biased",), denominator=("answered",)),
    },
}
"""Metric -> score -> its definition over the columns of :func:`counted`."""
THEIRS: Mapping[str, str] = {
    "naturalbench": "published",
    "crpe": "lmms-eval",
    "vlms-are-biased": "lmms-eval",
}
"""Metric -> the variant that counts as both harnesses do."""
NOT_PRINTED = (
    "lmms-eval prints no plain accuracy of naturalbench: its YAML lists naturalbench_ACC, and its "
    "code yields naturalbench_Acc"
)
"""Why a number is missing in lmms-eval's results."""
# CRPE asks each question four times, with the options rolled on by one.
_TIMES = 4
_LETTERS = frozenset("ABCD")
# The answer's text follows its letter and a mark, as in "(B) cart".
_TEXT = 4
# What pandas reads in an empty cell, as the tool writes it.
_EMPTY = "nan"
# Texts that pandas 3.1 takes for an empty cell.
_EMPTY_TEXTS = {"", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None"}
_EMPTY_TEXTS |= {"NaN", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What both ways make of an item."""

    item: AnswersItem
    repeated: bool
    theirs: Counts
    ours: Counts


def counted(
    scored: Scored, harness: str, options: AuditOptions
) -> tuple[tuple[Row, ...], tuple[Stage, ...]]:
    """Return the items, and the ways of counting them."""
    name, variant = scored.report.metric, scored.report.variant
    every, rule = _items(scored, name), THEIRS[name]
    theirs, ours = [c.theirs for c in every], [{} if c.repeated else c.ours for c in every]
    # lmms-eval counts each answer of CRPE by itself.
    whole = name == "crpe" and harness == "vlmevalkit"
    if whole:
        rule = "VLMEvalKit's rule"
        theirs = rows_of([each.record.values for each in scored.rows])
    once = [{} if c.repeated else counts for c, counts in zip(every, theirs, strict=True)]
    # Benchmarks call it category, topic or type.
    places = [n for n, c in enumerate(every) if options.category in ("", *c.item.fields.values())]

    def shown(counts: Sequence[Counts]) -> list[Counts]:
        if whole:
            # Whatever was asked: the tool takes four rows that follow each other for a question.
            counts = _by_question(counts, [at // _TIMES for at in range(len(counts))], stops=True)
        return [counts[place] for place in places]

    stages = [
        Stage("re-derived", "by the tool's rules, from the archive", shown(theirs)),
        Stage("repeated rows", "a row whose id was counted before is left out", shown(once)),
        Stage("answer parser", f"answers are parsed by {variant} instead of {rule}", shown(ours)),
    ]
    items, ours = [every[place].item for place in places], [ours[place] for place in places]
    # The paper's mean is over topics, which have different numbers of questions.
    if name == "vlms-are-biased" and variant == "paper":
        by_topic = _by_topic(ours, [item.fields.get("topic", "") for item in items])
        stages.append(Stage("means over topics", "every topic has the same weight", by_topic))
    if name == "crpe" and variant != THEIRS[name]:
        keys = _questions(items, in_order=variant == "published")
        meaning = "a question counts, not each answer"
        if whole:
            meaning = "four answers of a category, or to what was asked, not any four rows"
        meaning += "; of all categories together without --category"
        counts = _by_question(ours, keys, stops=whole)
        stages.append(Stage("four to a question", meaning, counts))
    elif whole:
        stages.append(Stage("each answer", "each answer counts, not four as a question", ours))
    rows = tuple(Row(id=i.id, response=_text(i), label=i.label, category=_kind(i)) for i in items)
    return rows, tuple(stages)


def _text(item: AnswersItem) -> str:
    return " | ".join(answer.response or "" for answer in item.answers)


def _kind(item: AnswersItem) -> str:
    names = ("category", "topic", "type")
    return next((text for name in names if (text := item.fields.get(name))), "")


def _items(scored: Scored, name: str) -> Sequence[_Counted]:
    kind = metric_entry(name).metric
    assert issubclass(kind, AnswersMetric), "these are benchmarks of closed questions"
    theirs = kind(variant=THEIRS[name])
    places = {column.name: place for place, column in enumerate(kind.columns)}
    kept = {n: places[n] for r in RATIOS[name].values() for n in (*r.numerator, *r.denominator)}
    return [
        _Counted(
            item=item,
            repeated=each.is_repeated,
            # Harnesses count every row, so that theirs is counted even where ours is unscored.
            theirs={"rows": 1, **_kept(theirs, item, kept)},
            ours=each.counts(kept),
        )
        for each in scored.rows
        # Our variant may take thoughts off that the harness leaves.
        if isinstance(item := each.whole, AnswersItem)
    ]


def _kept(metric: AnswersMetric, item: AnswersItem, kept: Mapping[str, int]) -> Counts:
    answers = [_answered(metric, answer) for answer in item.answers]
    statistics = metric.score_answers(answers).statistics
    return {name: int(statistics[place]) for name, place in kept.items()}


def _answered(metric: AnswersMetric, answer: Answer) -> Answer:
    """Return an answer without its thought, as the harness takes it off."""
    divide = metric.division or divided
    return structs.replace(answer, response=divide(answer.response or "").answer)


def _by_topic(counts: Sequence[Counts], topics: Sequence[str]) -> list[Counts]:
    """Return counts in which every topic weighs the same."""
    sizes = Counter(topic for row, topic in zip(counts, topics, strict=True) if row)
    # The common multiple keeps counts whole, so that shares stay exact.
    whole = lcm(*sizes.values()) if sizes else 1
    return [
        {name: n if name == "rows" else n * whole // sizes[topic] for name, n in row.items()}
        for row, topic in zip(counts, topics, strict=True)
    ]


def _questions(items: Sequence[AnswersItem], *, in_order: bool) -> list[object]:
    """Return the question of each answer: four of a category in order, or by what was asked."""
    before: dict[str, int] = defaultdict(int)
    keys: list[object] = []
    metric = metric_entry("crpe").metric(variant="corrected")
    assert isinstance(metric, AnswersMetric), "it is one of closed questions"
    for item in items:
        category = item.fields.get("category", "")
        number = before[category] // _TIMES
        # The released script takes every four answers of a category for one question.
        keys.append((category, number) if in_order else metric.places(item)[-1])
        before[category] += 1
    return keys


# CRPE of VLMEvalKit -------------------------------------------------------------------------------


def is_right(answer: str, prediction: str) -> bool:
    """Return whether the tool takes a prediction for right."""
    first = prediction[:1]
    if len(prediction) == 1 or first in _LETTERS:
        return first == answer[:1]
    return answer[_TEXT:].lower() in prediction.lower()


def rows_of(records: Sequence[Mapping[str, object]]) -> list[Counts]:
    """Return how the tool counts each row of a table by itself.

    Raises:
        InvalidInputError: The last four rows are not whole, where the tool stops.
    """
    if len(records) % _TIMES:
        raise InvalidInputError(
            f"the table has {len(records):,} rows: VLMEvalKit stops where they are not a multiple "
            f"of {_TIMES}; give the whole table that it wrote"
        )
    return [
        {
            "rows": 1,
            "answered": 1,
            "right": int(is_right(_cell(each.get("answer")), _cell(each.get("prediction")))),
        }
        for each in records
    ]


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return _EMPTY if text in _EMPTY_TEXTS else text


def _by_question(
    counts: Sequence[Counts], keys: Sequence[object], *, stops: bool = False
) -> list[Counts]:
    """Return counts in which one answer to a question stands for all four.

    Args:
        counts: The counts of each answer; empty for one that is left out, with its question.
        keys: The question of each.
        stops: Whether it is the first wrong answer, or the last one; otherwise it is the first.
    """
    groups: dict[object, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    made: list[Counts] = [{} for _ in counts]
    for places in groups.values():
        if len(places) != _TIMES or not all(counts[place] for place in places):
            continue
        wrong = next((place for place in places if not counts[place]["right"]), None)
        last = places[-1] if wrong is None else wrong
        at = last if stops else places[0]
        made[at] = {"rows": 1, "answered": 1, "right": int(wrong is None)}
    return made
