"""The pipeline of closed questions: each answer is parsed and compared with its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from hallujudge.metrics import Evidence, ItemResult, Outcome
from hallujudge.metrics.answers.answer_text import MAX_KEPT_CHARS
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import (
    Answer,
    AnswersEvidence,
    AnswersItem,
    ClosedQuestions,
)
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason

from .pipelines import TextPipeline, scored_result, unscored_result
from .registry import MetricEntry, declared_trial
from .resources import Resources
from .responses import Problem, ResponseCheck
from .spec import ScoreSpec

_SHOWN_CHARS = 80
# How many outcomes are remembered: two answers have a few dozen.
_MOST_KNOWN = 1 << 16
# How many mappings of derived fields.
_MOST_FIELDS = 1 << 12
# Problems for which a benchmark may count the answer as wrong, instead of leaving it out.
_MISSING = (
    UnscoredReason.RESPONSE_MISSING,
    UnscoredReason.RESPONSE_EMPTY,
    UnscoredReason.RESPONSE_FAILED,
)


class AnswersPipeline(TextPipeline[AnswersItem, AnswersMetric]):
    """Parses the answers of a bundle."""

    item_type = AnswersItem

    def __init__(
        self, metric: AnswersMetric, responses: ResponseCheck, notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(metric, responses, notes)
        declared = metric.benchmark
        # Looked up once: most benchmarks have none of these, and they have many answers.
        self._own = declared.variant(metric.variant)
        self._makes_fields = metric.overrides("derived_fields")
        self._may_leave_out = metric.overrides("leaves_out")
        self._clusters = metric.overrides("cluster")
        self._moves = self._makes_fields or self._clusters
        self._alone = declared.alone
        self._one_label = metric.overrides("conditions")
        self._places = [name for name in declared.limits if name not in declared.seen]
        # Attributes of the pipeline, because each answer would look them up through the metric.
        self._limits = declared.limits
        self._needed, self._partial = declared.needed, declared.partial
        self._repeats = metric.outcomes_repeat
        # Otherwise equal answers may have other places, and statistics of these.
        own_places = metric.overrides("places")
        self._knows_place = not own_places and metric.codes.keys() <= {*self._places}
        self._known: dict[tuple[object, ...], ScoredItem[Evidence]] = {}
        self._fields: dict[tuple[object, ...], tuple[Mapping[str, str], Mapping[str, str]]] = {}

    @property
    def settings(self) -> Mapping[str, str]:
        """The variant's parser, the options, and how often an item of several groups counts."""
        # Where verdicts decide, an option says how they are read.
        parser = {} if self.metric.benchmark.judged else {"parser": self.metric.variant}
        settings = {**parser, **super().settings}
        if self.metric.repeated_by:
            settings["overall"] = f"one row for each {self.metric.repeated_by} of a question"
        return settings

    def result(self, item: AnswersItem) -> ItemResult:
        """Return the result of a bundle."""
        if self._may_leave_out and self.metric.leaves_out(item):
            # It counts in no score.
            group, made = self._place_of(item)
            return ItemResult(id=item.id, group_id=group, outcome=Outcome.SCORED, fields=made)
        key = self.key_of(item)
        known = None if key is None else self._known.get(key)
        if known is None:
            if (problem := self.problem(item)) is not None:
                return self.unscored(item, *problem)
            known = self.score(item)
            if self._knows_place:
                known = self.metric.placed(item, known)
            # Pipelines with an extractor weigh the characters of their own size().
            short = AnswersPipeline.size(self, item) <= MAX_KEPT_CHARS
            if key is not None and short and len(self._known) < _MOST_KNOWN:
                self._known[key] = known
        return self._finished(item, known) if self._knows_place else self.made_result(item, known)

    def key_of(self, item: AnswersItem) -> tuple[object, ...] | None:
        """Return all that the outcome of a bundle depends on; None if it hardly repeats."""
        if not self._repeats:
            return None
        seen: list[object] = [*map(item.fields.get, self._places)] if self._places else []
        for answer in item.answers:
            # A parser reads an answer by its options, which differ from question to question.
            if answer.options:
                return None
            seen.append(self.metric.seen_of(answer))
        return tuple(seen)

    def size(self, item: AnswersItem) -> int:
        """Return the number of characters of all responses."""
        answers = item.answers
        # The usual bundle has one answer, for which no list is made.
        if len(answers) == 1:
            return len(answers[0].response or "")
        return sum([len(answer.response or "") for answer in answers])

    def made_result(self, item: AnswersItem, made: ScoredItem[Evidence]) -> ItemResult:
        """Return the result of a bundle with its statistics, and those of its place."""
        return self._finished(item, self.metric.placed(item, made))

    def _finished(self, item: AnswersItem, made: ScoredItem[Evidence]) -> ItemResult:
        if made.readable:
            return scored_result(item, made, self._place_of(item) if self._moves else None)
        return self.placed(item, self.unread_result(item, made))

    def unscored(self, item: AnswersItem, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of a bundle that can't be scored, which may have a row."""
        result = self.placed(item, unscored_result(item, reason, detail))
        row = self.metric.unscored_row(item)
        return structs.replace(result, statistics=row) if row else result

    def placed(self, item: AnswersItem, result: ItemResult) -> ItemResult:
        """Return a result with its cluster, and the fields that are derived from the item."""
        group, made = self._place_of(item)
        return structs.replace(result, group_id=group or result.group_id, fields=made)

    def _place_of(self, item: AnswersItem) -> tuple[str, Mapping[str, str]]:
        """Return the cluster and the fields of an item."""
        group, own = item.group_id, item.fields
        if self._clusters:
            # A derived cluster never replaces one that the item has.
            group = group or self.metric.cluster(item)
        if not self._makes_fields or not (made := self.metric.derived_fields(item)):
            return group, own
        # Lines of items encode the same mapping once; many kinds of them hardly repeat.
        key = id(own), *made.items()
        if (known := self._fields.get(key)) is not None:
            return group, known[1]
        # The same mapping where nothing is new: results then share it with their item.
        fields = own if made.items() <= own.items() else {**own, **made}
        if len(self._fields) < _MOST_FIELDS:
            # With the item's fields, so that no others get their id.
            self._fields[key] = own, fields
        return group, fields

    def unread_result(self, item: AnswersItem, made: ScoredItem[Evidence]) -> ItemResult:
        """Return the result of a bundle with an unparsed answer, which a score may count."""
        result = super().unread_result(item, made)
        verdicts = made.evidence.answers if isinstance(made.evidence, AnswersEvidence) else ()
        if why := [v.how for v in verdicts if v.answer is not None and v.correct is None]:
            # The parser says why an answer that it read does not count.
            result = structs.replace(result, detail=why[0])
        counts = any(each.unread for each in self.metric.counts) or self.metric.codes
        return structs.replace(result, statistics=made.statistics) if counts else result

    def problem(self, item: AnswersItem) -> Problem | None:
        """Return why a bundle can't be scored, or None if it can."""
        if self._limits and (problem := self.place_problem(item)) is not None:
            return problem
        answers = item.answers
        if self._partial and (problem := self._name_problem([answer.name for answer in answers])):
            return problem
        if (problem := self.metric.problem(item)) is not None:
            return problem
        if self._one_label and answers and (problem := self._other_label(answers)):
            return problem
        if self._alone:
            return self.problem_within(item, answers[0]) if len(answers) == 1 else ONE_EACH
        if self._partial:
            return self._partial_problem(answers)
        names = [answer.name for answer in answers]
        for name in self._needed or names:
            # Two answers of one name: which of them counts can't be known.
            if names.count(name) != 1:
                return _miscounted(name, names.count(name))
            if problem := self.problem_within(item, answers[names.index(name)]):
                return problem
        # Last, so that an answer that is missing is named before one that is too many.
        if self._needed and (others := sorted(set(names) - set(self._needed))):
            detail = f"the answer {others[0]!r} is not one of {', '.join(self._needed)}"
            return UnscoredReason.PLACE_INVALID, detail
        return None if answers else _NO_ANSWERS

    def place_problem(self, item: AnswersItem) -> Problem | None:
        """Return why the place of an item, or of its answers, is not one of the benchmark's."""
        declared = self.metric.benchmark
        for field, allowed in self._limits.items():
            for each in item.answers if field in declared.seen else (item,):
                if (value := each.fields.get(field, "")) not in allowed:
                    known = ", ".join(filter(None, allowed))
                    detail = f"the {field} {value!r:.60} is not one of {known}"
                    return UnscoredReason.PLACE_INVALID, detail
        return None

    def _name_problem(self, names: Sequence[str]) -> Problem | None:
        """Return which name the answers of a partial bundle may not have, or lack."""
        declared = self.metric.benchmark
        if (known := declared.names) and (unknown := sorted(set(names).difference(known))):
            noun = f"{declared.bundle.name[0]}s"
            detail = f"{', '.join(map(repr, unknown))}; {noun} are {', '.join(known)}"
            return UnscoredReason.OPERATOR_UNKNOWN, detail
        if lacking := next((name for name in self._needed if name not in names), ""):
            detail = f"there is no {lacking} answer to compare others with"
            return UnscoredReason.BASE_MISSING, detail
        return None

    def _other_label(self, answers: Sequence[Answer]) -> Problem | None:
        """Return which answer has another label than those of one question may have."""
        base = next((a for a in answers if a.name in self._needed), answers[0])
        for answer in answers:
            if answer.label != base.label:
                labels = f"{base.label!r:.40} and {answer.label!r:.40}"
                return UnscoredReason.LABEL_INVALID, f"the labels {labels} are of one question"
        return None

    def _partial_problem(self, answers: Sequence[Answer]) -> Problem | None:
        """Return why a partial bundle can't be scored: a required answer, or every one."""
        problems = list(map(self.answer_problem, answers))
        names = [answer.name for answer in answers]
        for name in self._needed:
            if problem := problems[names.index(name)]:
                return problem
        # One usable answer is enough for a partial bundle.
        return None if None in problems else next(iter(problems), _NO_ANSWERS)

    def answer_problem(self, answer: Answer) -> Problem | None:
        """Return why an answer can't be scored: its response or its label."""
        if self.responses.problem(answer.response) is None:
            return self.label_problem(answer)
        # Few answers have a problem, and only its sentence needs the name.
        what = f"the {answer.name} answer" if answer.name else "the answer"
        return self.responses.problem(answer.response, what)

    def problem_within(self, item: AnswersItem, answer: Answer) -> Problem | None:
        """Return why an answer of a bundle can't be scored; missing ones may count."""
        problem = self.answer_problem(answer)
        # Even an answer that counts as wrong needs a label, which says what would have been right.
        if problem is None or problem[0] not in _MISSING or not self.metric.counts_missing(item):
            return problem
        return self.label_problem(answer)

    def label_problem(self, answer: Answer) -> Problem | None:
        """Return why the label of an answer can't be used, or None if it can."""
        labels = self.metric.benchmark.labels
        if answer.label in labels or (answer.label and not labels):
            return None
        which = f"{answer.name} " if answer.name else ""
        if not answer.label:
            return UnscoredReason.REFERENCE_MISSING, f"no {which}label for this question"
        known = " or ".join(labels)
        return (
            UnscoredReason.LABEL_INVALID,
            f"the {which}label is {answer.label!r:.80}; give {known}",
        )

    def score(self, item: AnswersItem) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a bundle, without those of its place."""
        answers = item.answers
        if self._own.missing != "unscored":
            # An error's text is not parsed as an answer.
            answers = tuple(map(self._without_failure, answers))
        if not self._partial:
            return self.metric.score_answers(answers)
        # By place, since two answers of a partial bundle may have one name.
        found = enumerate(map(self.answer_problem, answers))
        return self.metric.score_part(answers, {n: p[0].value for n, p in found if p is not None})

    def _without_failure(self, answer: Answer) -> Answer:
        """Return an answer without its response, if that is missing, empty or a failure text."""
        problem = self.responses.problem(answer.response)
        return answer if problem is None else structs.replace(answer, response=None)

    def unread(self, item: AnswersItem) -> Problem:
        """Return why a bundle with an answer that could not be parsed is unscored."""
        shown = " and ".join(f"{(a.response or '')[:_SHOWN_CHARS]!r}" for a in item.answers)
        if self._partial and self._needed:
            # Without the base's answer, no other of the bundle can be compared.
            base = self._needed[0]
            said = next((a.response or "" for a in item.answers if a.name == base), "")
            detail = f"the {base} answer {said[:_SHOWN_CHARS]!r} can't be parsed"
            return UnscoredReason.BASE_UNPARSED, detail
        labels = self.metric.benchmark.labels or ("answer",)
        if len(item.answers) > 1:
            detail = f"{shown} are not a clear {' or a clear '.join(labels)} each"
        elif len(labels) == 1:
            detail = f"{shown} is not a clear {labels[0]}"
        else:
            detail = f"{shown} is neither a clear {' nor a clear '.join(labels)}"
        return UnscoredReason.ANSWER_UNPARSED, detail


_NO_ANSWERS: Problem = (UnscoredReason.RESPONSE_MISSING, "there is no answer")
ONE_EACH: Problem = (
    UnscoredReason.PLACE_INVALID,
    "the item does not have exactly one answer; give each question an item of its own",
)
"""The problem of an item with several answers, in a benchmark where each counts alone."""


def _miscounted(name: str, count: int) -> Problem:
    if count:
        return UnscoredReason.PLACE_INVALID, f"there are {count} {name} answers; give one"
    return UnscoredReason.RESPONSE_MISSING, f"there is no {name} answer"


def declared_entry(benchmark: ClosedQuestions) -> MetricEntry:
    """Return the registration of a benchmark of closed questions."""
    metric = metric_of(benchmark)

    def opened(spec: ScoreSpec, resources: Resources) -> AnswersPipeline:  # noqa: ARG001
        responses = ResponseCheck(spec.options)
        return AnswersPipeline(entry.metric_for(spec, responses), responses)

    entry = MetricEntry(
        metric=metric,
        item_type=AnswersItem,
        trial=declared_trial(benchmark, metric),
        open=opened,
    )
    return entry
