"""The metric of a benchmark of closed questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

from msgspec import structs

from ..errors import OptionError
from ..framework.arrays import FloatArray, np
from ..framework.asking import Shown
from ..framework.columns_and_scores import Column, ScoreDefinition, checked_counts
from ..framework.metric import SOFT, SoftMetric
from ..framework.results import Item, ScoredItem, UnscoredReason
from ..framework.signature import declarations
from ..responses.thoughts import Division
from .answer_items import (
    UNANSWERED,
    Answer,
    AnswersEvidence,
    AnswersItem,
    AnswerVerdict,
    HeldAnswers,
)
from .answer_scores import Bundle, Count, ReadAnswer
from .closed_questions import AnswerFault, AnswerVariant, ClosedQuestions, Parsed, SpecialItem
from .uncounted_answers import (
    ENDS,
    NamedParser,
    OtherParsers,
    disagrees,
    ends_of,
    how_parsed,
    missing_note,
    open_row,
)
from .yes_no import PARSER_DIVISIONS

_EvidenceT = TypeVar("_EvidenceT")
# Outcomes repeat: two answers have a few dozen.
_MOST_KEPT = 1 << 16
# So do their places, unless each item has its own.
_MOST_PLACED = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersMetric(SoftMetric):
    """Base class of the metrics of closed questions; :func:`metric_of` makes one of a benchmark."""

    benchmark: ClassVar[ClosedQuestions]
    """The declaration."""
    counts: ClassVar[tuple[Count, ...]]
    """What the scores are made of, in the order of the columns."""
    codes: ClassVar[Mapping[str, Mapping[str, int]]]
    """Field of a mean -> its values as numbers."""
    open_columns: ClassVar[tuple[str, ...]]
    """Columns of scores with bounds, in benchmarks of partial bundles."""
    place_columns: ClassVar[tuple[Column, ...]] = ()
    """The columns of :meth:`places` that a base class adds."""
    text_scores: ClassVar[tuple[str, ...] | None] = ()
    soft_scores: ClassVar[str] = ""
    drops_unknown: ClassVar[frozenset[str]] = frozenset()
    """Variants that leave out answers to questions which the labels lack, and do not refuse them.
    """
    extraction_prompts: ClassVar[dict[str, str]] = {}
    """Variant -> the prompt, with the slots of the judge's, by which a judge first extracts from a
    response the answer that it judges."""
    verdict_prompts: ClassVar[dict[str, str]] = {}
    """Variant -> the prompt to which a judge replies with a text in place of a choice. The text is
    the verdict, which the parser reads."""
    outcomes_repeat: ClassVar[bool] = True
    """Whether outcomes depend on the responses, labels, names and ``seen`` fields of answers alone,
    so that those of equal answers are remembered; false also where answers hardly repeat."""
    all_parsers: ClassVar[OtherParsers | None]
    """The parsers that may parse what another one can't; None without a choice."""

    judge: str = ""

    _variant: AnswerVariant = field(init=False, repr=False, compare=False)
    _others: OtherParsers | None = field(init=False, repr=False, compare=False)
    _made: dict[tuple[object, ...], ScoredItem[AnswersEvidence]] = field(
        init=False, repr=False, compare=False
    )
    _placed: dict[tuple[int, tuple[float, ...]], tuple[ScoredItem[Any], ScoredItem[Any]]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # slots=True creates a new class, so super() without arguments does not work here.
        SoftMetric.__post_init__(self)
        variant = self.benchmark.variant(self.variant)
        # The outcome of unparsed answers may be an option of the metric.
        unparsed = getattr(self, "unparsed", variant.unparsed)
        object.__setattr__(self, "_variant", structs.replace(variant, unparsed=unparsed))
        others = self.all_parsers and self.all_parsers.seen_from(self.parser_name)
        object.__setattr__(self, "_others", others)
        for cache_name in ("_made", "_placed"):
            object.__setattr__(self, cache_name, {})

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores with the formulas of this variant."""
        return tuple(each.definition for each in self._variant.scores) or self.score_definitions

    @property
    def parser_name(self) -> str:
        """The name of the answer parser: the variant, or the value of the option that chooses."""
        return self.variant

    def disagrees(self, item: Item, thought: str) -> bool | None:
        """Return whether a thought's last clear answer is another one than the item's."""
        if self.is_open(item) or not isinstance(item, AnswersItem) or len(item.answers) != 1:
            return None
        if self.benchmark.judged is not None:
            return None
        # Variants that take any text for an answer leave this to the strictest parser.
        parsers = self.all_parsers.parsers if self.all_parsers is not None else ()
        return disagrees(
            parsers[0].parse if parsers else self._variant.parse, *item.answers, thought
        )

    @property
    def division(self) -> Division | None:
        """How the tool of the parser tells thoughts from answers; None for the common rules."""
        return PARSER_DIVISIONS.get(self.parser_name)

    def is_open(self, item: Item) -> bool:
        """Return whether an item is a caption or a description, not an answer to a question."""
        return type(item) is not AnswersItem or self.unit == "captions"

    @classmethod
    def choosable_parsers(cls, benchmark: ClosedQuestions) -> Sequence[NamedParser]:
        """Return the answer parsers that a user can choose: those of the variants."""
        variants = benchmark.variants
        return [NamedParser(v.name, v.parse, f"the variant {v.name}") for v in variants]

    @classmethod
    def fault(cls, answer: Answer, record: Mapping[str, object]) -> AnswerFault | None:  # noqa: ARG003
        """Return why an answer of a file would be unscored for a reason of this benchmark alone."""
        return None

    @classmethod
    def lacks(cls, answer: Answer, record: Mapping[str, object]) -> Iterable[tuple[str, str]]:  # noqa: ARG003
        """Return what an answer lacks and may lack, for a note, each with the tried keys."""
        return ()

    @classmethod
    def task(cls, record: Mapping[str, object]) -> str:  # noqa: ARG003
        """Return the task of a record: questions of one without any answer need none."""
        return ""

    @classmethod
    def listed(cls, name: str, content: Mapping[str, object]) -> Iterable[Mapping[str, str]]:  # noqa: ARG003
        """Return the questions of a released list, as records; answers that none has are noted.

        Args:
            name: Name of the list's file without its ending.
            content: What the file holds.

        Raises:
            ValueError: It is not such a list; with the next step.
        """
        return ()

    @classmethod
    def held_answers(cls, record: Mapping[str, object]) -> HeldAnswers | None:  # noqa: ARG003
        """Return the answers that a record of a bundle holds; None if it is one of them itself.

        Raises:
            ValueError: It can't be used; with the next step.
        """
        return None

    @classmethod
    def conditions(cls, record: Mapping[str, object]) -> tuple[str, ...]:  # noqa: ARG003
        """Return the names of a bundle's answers that a question is asked under, the base first.

        Such as degraded videos; empty if each question is asked once.
        """
        return ()

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:  # noqa: ARG003
        """Return what a model is shown of a record besides its question.

        Raises:
            ValueError: It can't be asked; with the fault and the next step.
        """
        return Shown()

    @classmethod
    def is_question(cls, record: Mapping[str, object]) -> bool:  # noqa: ARG003
        """Return whether a record is a question, whose label is read."""
        return True

    @classmethod
    def may_lack(cls, record: Mapping[str, object]) -> bool:  # noqa: ARG003
        """Return whether the bundle of a record may lack answers, and then is unscored."""
        return False

    @classmethod
    def item_maker(cls, tables: Mapping[str, object]) -> SpecialItem | None:  # noqa: ARG003
        """Return what makes items of records that are no questions; None if they stay as they are.

        Args:
            tables: The ``whole`` and ``lines`` tables by name.

        Raises:
            ValueError: A table is missing, or can't be used.
        """
        return None

    @classmethod
    def own_table(cls, records: Iterable[Mapping[str, object]]) -> Mapping[Any, object]:
        """Return what all records get of the records of the table whose form is ``own``.

        Raises:
            ValueError: A record can't be used; with the next step.
        """
        raise NotImplementedError

    @classmethod
    def remarks(cls, items: Sequence[AnswersItem]) -> Iterable[str]:  # noqa: ARG003
        """Return notes on how an archive differs from the benchmark's."""
        return ()

    def extracts(self, item: AnswersItem) -> bool:  # noqa: ARG002 - few benchmarks do
        """Return whether a judge extracts an item's answer, for which the variant has a prompt."""
        return False

    def leaves_out(self, item: AnswersItem) -> bool:  # noqa: ARG002 - few benchmarks do
        """Return whether an item counts in no score of this variant."""
        return False

    def problem(self, item: AnswersItem) -> tuple[UnscoredReason, str] | None:  # noqa: ARG002
        """Return why a bundle can't be scored for a reason that only this benchmark has."""
        return None

    def derived_fields(self, item: AnswersItem) -> Mapping[str, str]:  # noqa: ARG002
        """Return the fields of a result that are made of its item."""
        return {}

    def counts_missing(self, item: AnswersItem) -> bool:
        """Return whether answers of an item that are missing count, as unparsed ones."""
        if self.leaves_out(item):
            return False
        how, answers = self._variant.missing, item.answers
        absent = how == "wrong in part" and all(each.response is None for each in answers)
        return how != "unscored" and not absent and not any(UNANSWERED in a.fields for a in answers)

    @classmethod
    def trial_value(cls, score: ScoreDefinition) -> float:
        """Return a score of the trial item: the best value, unless a base class has another."""
        return score.low if score.direction == "lower" else score.high

    def cluster(self, item: AnswersItem) -> str:  # noqa: ARG002
        """Return the cluster of an item that names none; empty for its own."""
        return ""

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the hash of a declaration from outside, the metric's options, and the judge."""
        digest = declarations.get(self.name, "")
        declared = (("decl", digest),) if digest else ()
        own = [(each.name, getattr(self, each.name)) for each in self.options if each.name != SOFT]
        judge = (("judge", self.judge),) if self.judge else ()
        return (*declared, *own, *self.soft_fields(), *judge)

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return how many answers have a verdict: those of the share that has their credits."""
        scores = (s for s in self.benchmark.scores if not all(each.integral for each in s.counts))
        return next((int(totals[score.counts[-1].name]) for score in scores), 0)

    def parse(self, answer: Answer) -> Parsed:
        """Return what the variant's parser makes of an answer."""
        return self._variant.parse(answer)

    def read(self, answer: Answer) -> ReadAnswer:
        """Parse an answer that has a response."""
        value, right, how, unsure, counts, credit = self.parse(answer)
        how = how_parsed(self._variant, answer, value) or how
        unparsed = self._variant.unparsed if value is None else "" if counts else "unscored"
        seen = tuple([(name, answer.fields.get(name, "")) for name in self.benchmark.seen])
        other = self._others.parsed(answer, value) if self._others else None
        parsed = (answer.name, value, answer.label, right, how, unparsed)
        return ReadAnswer(*parsed, unparsed != "unscored", seen, other, unsure, False, credit)

    def seen_of(self, answer: Answer) -> tuple[str | None, ...]:
        """Return all that parsers and counts see of an answer that is like others."""
        declared = self.benchmark
        said: tuple[str | None, ...] = (answer.response, answer.label, answer.name)
        if answer.response is None:
            said = (*said, answer.fields.get(UNANSWERED))
        return (*said, *map(answer.fields.get, declared.seen)) if declared.seen else said

    def score_part(
        self, answers: Sequence[Answer], problems: Mapping[int, str]
    ) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a partial bundle, without those of its place.

        Args:
            answers: The bundle.
            problems: Place of an answer that can't be scored -> reason.
        """
        bundle = [
            self._missing(answer, problems[place]) if place in problems else self.read(answer)
            for place, answer in enumerate(answers)
        ]
        return self.scored_once(tuple(bundle))

    def score_judged(
        self, answers: Sequence[Answer], probability: float | None = None
    ) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a bundle whose last answer may have been judged.

        Args:
            answers: The bundle.
            probability: Probability that this answer is right, if its judge states one.
        """
        if probability is None and not self.is_soft:
            return self.score_answers(answers)
        bundle, judged = list(map(self.read, answers)), self.benchmark.judged
        names = [answer.name for answer in bundle[-1:]]
        if self.is_soft and judged is not None and names == [self.benchmark.judged_name]:
            bundle[-1] = structs.replace(bundle[-1], soft=True, probability=probability)
        made = self._scored(bundle)
        return made._replace(evidence=structs.replace(made.evidence, probability=probability))

    def _missing(self, answer: Answer, reason: str) -> ReadAnswer:
        seen = tuple((name, answer.fields.get(name, "")) for name in self.benchmark.seen)
        return ReadAnswer(
            answer.name, None, answer.label, False, reason, counted=False, fields=seen
        )

    def score(self, item: AnswersItem) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a bundle whose answers all have a response and a label."""
        return self.placed(item, self.score_answers(item.answers))

    def score_answers(self, answers: Sequence[Answer]) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a bundle as :meth:`score` does, without those of its place."""
        return self.scored_once(tuple(map(self.read, answers)))

    def scored_once(self, bundle: tuple[ReadAnswer, ...]) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of answers, which many bundles have."""
        if (made := self._made.get(bundle)) is None:
            made = self._scored(bundle)
            if len(self._made) < _MOST_KEPT:
                self._made[bundle] = made
        return made

    def placed(self, item: AnswersItem, made: ScoredItem[_EvidenceT]) -> ScoredItem[_EvidenceT]:
        """Return the statistics of answers, which many bundles have, with those of a place."""
        if not (self.codes or self.place_columns) or not (places := self.places(item)):
            return made
        key = id(made), places
        if (known := self._placed.get(key)) is not None:
            return known[1]
        row = (*made.statistics, *places)
        placed = ScoredItem(row, made.scores, made.evidence, made.readable)
        if len(self._placed) < _MOST_PLACED:
            # With the value itself, so that no other one gets its id.
            self._placed[key] = made, placed
        return placed

    def places(self, item: AnswersItem) -> tuple[float, ...]:
        """Return the value of each mean's field as a number; 0 for other values.

        A base class may have further numbers of an item's place, whatever its answers.
        """
        if not self.codes:
            return ()
        fields = item.fields
        return tuple([codes.get(fields.get(name, ""), 0) for name, codes in self.codes.items()])

    def _scored(self, bundle: Bundle) -> ScoredItem[AnswersEvidence]:
        readable = self.counts_bundle(bundle)
        row = self._row(bundle, readable=readable)
        last = self._elsewhere(bundle, row)
        if self.open_columns:
            last += open_row(self.counts, self.open_columns, bundle, readable=readable)
        last += (int(not readable),) if self.codes else ()
        return ScoredItem(
            statistics=(*row, *last),
            scores=self._own_scores(row) if readable else {},
            evidence=AnswersEvidence(answers=tuple(map(_verdict, bundle))),
            readable=readable,
        )

    def _row(self, bundle: Bundle, *, readable: bool) -> tuple[float, ...]:
        # A condition is a truth value; the plus makes it a number.
        row = [+each.of(bundle) if readable or each.unread else 0 for each in self.counts]
        return checked_counts(self.name, self.columns, row)

    def _elsewhere(self, bundle: Bundle, row: Sequence[float]) -> tuple[float, ...]:
        if self._others is None:
            return ()
        return self._others.statistics(
            bundle, row, self.counts, lambda b: self._row(b, readable=self.counts_bundle(b))
        )

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return how many answers only another parser parses, if they are 1 % or more.

        Also how many missing ones count, how many count by verdict, and the benchmark's own notes.
        """
        others = self._others.notes(self.parser_name, totals) if self._others else ()
        missing = missing_note(self.benchmark, self.variant, totals)
        own = self._variant.notes(totals) if self._variant.notes else ()
        return (*SoftMetric.notes_on(self, totals), *others, *missing, *own)

    def counts_bundle(self, bundle: Bundle) -> bool:
        """Return whether a bundle is scored: all its answers count, or enough of a partial one."""
        if not self.benchmark.partial:
            return all(answer.counted for answer in bundle)
        counted = {answer.name for answer in bundle if answer.counted}
        return bool(counted) and counted.issuperset(self.benchmark.needed)

    def unscored_row(self, item: AnswersItem) -> tuple[float, ...]:  # noqa: ARG002
        """Return the statistics of an item that does not count; usually it has none."""
        return ()

    def _own_scores(self, row: Sequence[float]) -> dict[str, float | None]:
        numbers = dict(zip((each.name for each in self.counts), row, strict=True))
        numbers[self.unit] = 1
        scores = (score.definition for score in self.benchmark.scores if score.own)
        found = {score.name: cast("Any", score.value).of(numbers) for score in scores}
        known = {name: None if math.isnan(value) else value for name, value in found.items()}
        partly = self.benchmark.partial and self.benchmark.needed
        return {n: v for n, v in known.items() if v is not None} if partly else known

    def rows(self, answers: Iterable[str], labels: Iterable[str]) -> Counter[tuple[float, ...]]:
        """Return the statistics of many single answers, without a result for each.

        Every distinct answer is parsed once.

        Args:
            answers: What the model wrote.
            labels: The right answers, one for each answer.

        Returns:
            Row -> how many answers have it.

        Raises:
            OptionError: A label is not one of the benchmark's, or the numbers differ.
        """
        said, right = list(answers), list(labels)
        allowed = self.benchmark.labels
        for label in set(right).difference(allowed) if allowed else ():
            known = " nor ".join(map(repr, allowed))
            raise OptionError(self.name, "label", f"{label!r} is neither {known}")
        if len(said) != len(right):
            raise OptionError(
                self.name, "labels", f"there are {len(right)} labels for {len(said)} answers"
            )
        rows: Counter[tuple[float, ...]] = Counter()
        for (text, label), number in Counter(zip(said, right, strict=True)).items():
            bundle = (self.read(Answer(response=text, label=label)),)
            rows[self._scored(bundle).statistics] += number
        return rows

    def totals(self, rows: Mapping[tuple[float, ...], int]) -> dict[str, float]:
        """Return the sums of all columns, those of single values included.

        Args:
            rows: Statistics of items -> how many have them.
        """
        times = np.array(list(rows.values()), dtype=np.float64)
        columns = zip(*rows, strict=True) if rows else ((),) * len(self.columns)
        items = {self.unit: times} | {
            column.name: np.array(numbers, dtype=np.float64) * (1 if column.label else times)
            for column, numbers in zip(self.columns, columns, strict=True)
        }
        return {
            name: float(column.sum()) for name, column in {**items, **self.expand(items)}.items()
        }

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every answer that does not count right, or wrong."""
        return {**items, **{n: items[f"{n}@{ENDS[best]}"] for n in self.open_columns}}

    def ends(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Return the counts of a bundle of answers at their worst, and at their best."""
        return ends_of(self.benchmark, self.counts)

    def columns_of(self, item: AnswersItem) -> Mapping[str, float]:
        """Return the counts of an example."""
        bundle = list(map(self.read, item.answers))
        return {each.name: float(each.of(bundle)) for each in self.counts}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return a bundle of right answers, or the worst of wrong ones for each column."""
        return self.ends()[best]


def _verdict(answer: ReadAnswer) -> AnswerVerdict:
    correct = answer.right if answer.counted else None
    return AnswerVerdict(answer.name, answer.value, answer.label, correct, answer.how)
