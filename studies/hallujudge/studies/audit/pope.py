"""POPE: ways of counting answers, from a tool's to ours."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import one_answer
from hallujudge.metrics.pope import BENCHMARK, PopeMetric
from hallujudge.sdk.archives.layouts.archive_reader import mapping_at
from hallujudge.sdk.archives.question_files import given_label, label_of
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.archives.split_files import questions_of_file

from .waterfall import AuditOptions, Counts, Ratio, Row, Scored, ScoredRow, Stage, stages_of

RATIOS: Mapping[str, Ratio] = {
    "accuracy": Ratio(numerator=("right",), denominator=("answered",)),
    "precision": Ratio(numerator=("tp",), denominator=("tp", "fp")),
    "recall": Ratio(numerator=("tp",), denominator=("tp", "fn")),
    # 2 tp / (2 tp + wrong), so that a change of F1 can be shared out among rows.
    "f1": Ratio(numerator=("tp", "tp"), denominator=("tp", "tp", "wrong")),
    "yes_ratio": Ratio(numerator=("yes",), denominator=("answered",)),
}
"""Score -> its definition in our metric, over the columns of :func:`counted`."""
PARSERS: Mapping[str, str] = {
    "pope": "published",
    "llava": "published",
    "opera": "opera",
    "lmms-eval": "lmms-eval",
    "vlmevalkit": "vlmevalkit",
}
"""Tool -> its answer parser."""

_COLUMNS = {column.name: place for place, column in enumerate(PopeMetric.columns)}
# The numbers of a row that our metric's statistics have under the same name.
_KEPT = ("answered", "tp", "fp", "fn", "wrong")
_LMMS_SCORES = ("pope_accuracy", "pope_precision", "pope_recall", "pope_f1_score")
# Their scripts zip the answers with the labels, so that a missing row shifts all that follow.
_JOINED_BY_ORDER = ("pope", "llava", "opera")
# An empty or missing response, which tools parse like any other text.
_NO_RESPONSE = frozenset(["RESPONSE_EMPTY", "RESPONSE_MISSING"])


class _Copied(NamedTuple):
    """A verdict that the archive carries."""

    answer: str
    right: bool


class _Answer(NamedTuple):
    """What is known of one row."""

    scored: ScoredRow
    row: Row
    copied: _Copied | None
    by_order: str | None
    """The label that the scripts give it."""


_COPIED, _YES_OF_LABELS, _BY_ORDER, _REPEATED, _CATEGORIES, _FAILED, _EMPTY = (
    "copied verdicts",
    "yes ratio of labels",
    "labels by order",
    "repeated rows",
    "categories",
    "failure texts",
    "empty responses",
)
# Another order would share the difference out differently, with the same sum.
_RULES = {
    # VLMEvalKit's verdicts may be those of a language model, where its rules find no answer.
    _COPIED: "the archive's own verdicts are replaced by those of the tool's answer parser",
    _YES_OF_LABELS: ("lmms-eval's yes ratio is the share of the label yes, not of the answer yes"),
    # One lost answer among 3,000 shifts all later ones: an accuracy fell from 0.859 to 0.497.
    _BY_ORDER: "answers were joined with labels by their order, and are now joined by id",
    _REPEATED: "a row whose id was counted before is left out",
    _CATEGORIES: "a question counts once, not once for each of its comma-joined categories",
    _FAILED: "a tool's failure text is unscored, not an answer",
    _EMPTY: "an empty or missing response is unscored, not an answer",
}
"""Rule that tools have and we do not -> what leaving it out means."""
_TOOLS: Mapping[str, Sequence[str]] = {
    _COPIED: ("lmms-eval", "vlmevalkit"),
    _YES_OF_LABELS: ("lmms-eval",),
    _BY_ORDER: _JOINED_BY_ORDER,
    _CATEGORIES: ("vlmevalkit",),
}
"""Rule -> the tools that have it, where not all do."""


def counted(
    scored: Scored, harness: str, options: AuditOptions
) -> tuple[tuple[Row, ...], tuple[Stage, ...]]:
    """Return the rows that count, and the ways of counting them.

    Args:
        scored: The archive, with our results.
        harness: The tool.
        options: The options of the audit.
    """
    answers = [a for a in _answers(scored, harness, options) if _in(options.category, a.row)]
    metric = PopeMetric(variant=PARSERS[harness])
    rules = {rule: text for rule, text in _RULES.items() if harness in _TOOLS.get(rule, PARSERS)}
    # A tool's line for a category counts each question of it once.
    repeats = _CATEGORIES in rules and not options.category
    # Our own VLMEvalKit variant counts a question once for each category, as the tool does.
    expanded = repeats and options.variant == "vlmevalkit"
    if expanded:
        del rules[_CATEGORIES]

    def count(answer: _Answer, kept: Collection[str]) -> Counts:
        weight = _weight(answer.row) if repeats and (expanded or _CATEGORIES in kept) else 1
        return _times(_count(answer, kept, metric), weight)

    stages = stages_of("tool", rules, answers, count)
    theirs, ours = PARSERS[harness], options.variant or PopeMetric.variant_names()[0]
    last = Stage(
        "answer parser",
        f"answers are parsed by {ours} instead of {theirs}",
        [_times(_ours(a.scored), _weight(a.row) if expanded else 1) for a in answers],
    )
    return tuple(a.row for a in answers), (*stages, last)


def _in(category: str, row: Row) -> bool:
    return not category or category in row.category.split(",")


def _weight(row: Row) -> int:
    return len(row.category.split(","))


def _times(counts: Counts, weight: int) -> Counts:
    return {name: number * weight for name, number in counts.items()}


def _count(answer: _Answer, rules: Collection[str], metric: AnswersMetric) -> Counts:
    """Return how rules count one answer; empty if they leave it out."""
    label = answer.by_order if _BY_ORDER in rules else answer.row.label
    if label is None or (answer.scored.is_repeated and _REPEATED not in rules):
        return {}
    reason = answer.scored.result.reason
    if reason == "RESPONSE_FAILED" and _FAILED not in rules:
        return {}
    if reason in _NO_RESPONSE and _EMPTY not in rules:
        return {}
    copied = answer.copied if _COPIED in rules else None
    text = answer.row.response if copied is None else copied.answer
    statistics = metric.score(one_answer(id="", response=text, label=label)).statistics
    counts = _with_sums({name: int(statistics[_COLUMNS[name]]) for name in _COLUMNS})
    if copied is not None:
        # The archive's own verdict, which need not follow from its answer.
        counts["right"] = int(copied.right)
    if _YES_OF_LABELS in rules:
        # lmms-eval sums the labels where it prints a yes ratio.
        counts["yes"] = int(label == "yes")
    return counts


def _ours(scored: ScoredRow) -> Counts:
    counts = {} if scored.is_repeated else scored.counts(_COLUMNS)
    return _with_sums(counts) if counts else {}


def _with_sums(columns: Mapping[str, int]) -> dict[str, int]:
    return {
        "rows": columns["answered"],
        "right": columns["tp"] + columns["tn"],
        "yes": columns["tp"] + columns["fp"],
        **{name: columns[name] for name in _KEPT},
    }


def _answers(scored: Scored, harness: str, options: AuditOptions) -> Iterator[_Answer]:
    categories = [each.result.fields.get("category", "") for each in scored.rows]
    by_order = list(_labels_by_order(scored, harness, options, categories))
    for each, category, ordered in zip(scored.rows, categories, by_order, strict=True):
        known = label_of(BENCHMARK, each.label)
        if known is not None:
            row = Row(id=each.result.id, response=each.response, label=known, category=category)
            yield _Answer(each, row, _copied(each.record), ordered)


def _copied(record: Record) -> _Copied | None:
    """Return the verdict that an archive carries: lmms-eval's score, VLMEvalKit's extraction."""
    values = record.values
    scores = (mapping_at(values, name) for name in _LMMS_SCORES)
    own = next((score for score in scores if "prediction" in score), None)
    if own is not None and "score" in own:
        return _Copied(answer=str(own["prediction"]), right=_is_true(own["score"]))
    if "extracted" in values and "score" in values:
        return _Copied(answer=str(values["extracted"]), right=_is_true(values["score"]))
    return None


def _is_true(value: object) -> bool:
    """Return a cell's truth value, which tables write in several ways."""
    return str(value).strip().casefold() in ("1", "1.0", "true")


def _labels_by_order(
    scored: Scored, harness: str, options: AuditOptions, categories: Sequence[str]
) -> Iterator[str | None]:
    """Yield each answer's label as the released scripts join it: by order, within its category.

    An answer after the last label counts in no score of the scripts.
    """
    if harness not in _JOINED_BY_ORDER or not options.references:
        yield from (label_of(BENCHMARK, each.label) for each in scored.rows)
        return
    # The scripts join the answers of a category with the file of labels of that category.
    queues = _queues(options.references, by_category=len(set(categories)) > 1)
    for category in categories:
        # Answers of one category have one queue, whatever its name.
        queue = queues.get(category, queues.get("", iter(())))
        yield next(queue, None)


def _queues(references: Sequence[str | Path], *, by_category: bool) -> dict[str, Iterator[str]]:
    """Return the labels in the order of their files, by category or all under an empty name."""
    labels: dict[str, list[str]] = {}
    for path in map(Path, references):
        for record in questions_of_file(BENCHMARK.split_files, path):
            if (label := label_of(BENCHMARK, given_label(BENCHMARK, record))) is not None:
                category = str(record.values.get("category", "")) if by_category else ""
                labels.setdefault(category, []).append(label)
    return {category: iter(of) for category, of in labels.items()}
