"""The specification of a scoring run, its header, and items and claims as they are read by it.

Of an item's responses, thoughts are left out. A client reads items again as the server read them,
so that reports show answers alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Struct, structs

from hallujudge.metrics import Answer, AnswersItem, IntervalSettings, Item, ItemResult, Metric
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import broken_benchmarks, metric_named, metric_names
from hallujudge.metrics.framework.response_traits import SCORED, with_thought_scores
from hallujudge.metrics.framework.signature import before_items, signature_field
from hallujudge.metrics.responses import MARKS, THOUGHTS, Reading, ResponseReader, is_plain
from hallujudge.metrics.responses.thoughts import Division
from hallujudge.metrics.responses.thoughts import with_thought as joined

from ..errors import InvalidInputError, NotFoundError, Violation

# Help pages of commands load this module, and no report.
if TYPE_CHECKING:
    from hallujudge.metrics import Report, Tally

# Short answers repeat, and reading one takes as long as scoring it.
_REPEATING_CHARS = 60
# So many different short answers hardly repeat; what is known of them is then forgotten.
_MOST_REPEATING = 1 << 14

_response = attrgetter("response")

GraphLayout: TypeAlias = Literal["json", "table", "auto"]


class ShippedGraph(Struct, frozen=True, kw_only=True):
    """A graph that ships with Hallujudge."""

    name: str
    """The name, such as ``coco``."""


class InlineGraph(Struct, frozen=True, kw_only=True):
    """A graph that the caller provides."""

    name: str
    """The name of the graph in signatures."""
    text: str
    """The content of the graph file."""
    layout: GraphLayout = "auto"
    """The layout of the content."""


GraphSource: TypeAlias = ShippedGraph | InlineGraph


class ScoreSpec(Struct, frozen=True, kw_only=True):
    """The specification of a scoring run. Equal specs give equal signatures."""

    metric: str
    """The metric's name."""
    variant: str = ""
    """The variant; empty for the metric's default."""
    graphs: Mapping[str, GraphSource] = {}
    """Role -> graph."""
    options: Mapping[str, str] = {}
    """The metric's options by name."""
    group_by: tuple[str, ...] = ()
    """The item fields by which results are grouped."""
    interval: IntervalSettings = msgspec.field(default_factory=IntervalSettings)
    """The settings of confidence intervals."""
    claims: int = 0
    """About how many claims the run has; 0 if unknown. It says of which part of them a judge is
    asked how likely it would write one of the choices."""


def known_metric(name: str) -> type[Metric]:
    """Return a metric.

    Raises:
        NotFoundError: No metric has this name.
    """
    found = metric_named(name)
    if found is None:
        raise NotFoundError(
            f"metric {name!r} does not exist; {choose_from(name, metric_names())}. Benchmarks of "
            "your own are added by add_benchmarks, on a server by its owner's setting 'benchmarks'"
            + "".join(f". Not usable: {why}" for why in broken_benchmarks().values()),
            reason="METRIC_UNKNOWN",
            metadata={"metric": name},
        )
    return found


class RunHeader(Struct, frozen=True, kw_only=True):
    """What is known of a run before its first item."""

    metric: Metric
    """The metric; from a server it lacks the fields that only the signature has."""
    signature: str
    """The signature up to what depends on the items."""
    settings: Mapping[str, str]
    """The settings behind the signature, in full."""
    notes: tuple[str, ...]
    """What limits the use of the scores, whatever the items are."""
    release: str
    """The release that scores."""

    def read(self, items: Sequence[Item], results: Sequence[ItemResult]) -> Sequence[Item]:
        """Return scored items as they were read: with answers in place of responses."""
        return read_items(self.metric, self.settings, items, results)

    def report(self, tally: Tally, interval: IntervalSettings) -> Report:
        """Return the report over all items of a tally.

        Args:
            tally: The statistics of the items.
            interval: How intervals are made.
        """
        made = tally.finish(
            interval, version=self.release, settings=dict(self.settings), notes=self.notes
        )
        # A metric from a server lacks fields of the signature, so the header's signature replaces
        # that part; the fields that depend on the items follow it.
        own = str(self.metric.signature)
        return replace(made, signature=self.signature + made.signature.removeprefix(own))


def metric_of(name: str, variant: str, settings: Mapping[str, str]) -> Metric:
    """Return a metric as a run used it, without fields that only the signature has.

    Args:
        name: Its name.
        variant: Its variant.
        settings: The settings of the run's report.

    Raises:
        NotFoundError: The metric is unknown.
        MetricError: The variant or an option is unknown.
    """
    declared = known_metric(name)
    options = {
        option.name: settings[option.name] for option in declared.options if option.name in settings
    }
    options |= {name: settings[name] for name in (THOUGHTS, MARKS) if name in settings}
    # Fields that only the signature has are left empty: they change no score.
    labels = {
        entry.name: ""
        for entry in fields(declared)
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING
    }
    metric = declared(**labels | options, variant=variant)
    return with_thought_scores(metric) if options.get(THOUGHTS) == SCORED else metric


def header_of(report: Report) -> RunHeader:
    """Return the header of the run that made a report of no items."""
    return RunHeader(
        metric=metric_of(report.metric, report.variant, report.settings),
        signature=before_items(report.signature),
        settings=report.settings,
        notes=report.notes,
        release=signature_field(report.signature, "v"),
    )


class ReadItem(NamedTuple):
    """An item whose responses were read."""

    item: Item
    """The item with answers in place of responses."""
    readings: tuple[Reading, ...]
    """Its responses; empty for an item whose responses are plain answers."""

    @property
    def traits(self) -> Mapping[str, int]:
        """The traits of all its responses, added up."""
        if len(self.readings) == 1:
            return self.readings[0].traits
        names = dict.fromkeys(name for reading in self.readings for name in reading.traits)
        return {name: sum(each.traits.get(name, 0) for each in self.readings) for name in names}

    def with_texts(self, texts: Iterable[str | None]) -> Item:
        """Return the item with other texts in place of its responses."""
        return _with_responses(self.item, list(texts))


class ItemReader:
    """Reads the responses of items.

    Args:
        metric: The metric.
        options: The spec's options.

    Raises:
        InvalidInputError: An option is invalid.
    """

    def __init__(self, metric: Metric, options: Mapping[str, str]) -> None:
        try:
            reader = ResponseReader.of(options)
        except ValueError as err:
            problem = f"the option thought_marks has a line that can't be used: {err}"
            field = "spec.options['thought_marks']"
            violation = Violation(field=field, description=problem)
            raise InvalidInputError(problem, violations=(violation,)) from err
        self._metric = metric
        closed = structs.replace(reader, division=cast("Division | None", metric.division))
        self._readers = {False: closed, True: structs.replace(closed, is_open=True)}
        # No response has no marks.
        self._plain: set[str | None] = {None}
        self._has_own_marks = bool(reader.own)

    def is_open(self, item: Item) -> bool:
        """Return whether an item's response is a text of sentences."""
        return self._metric.is_open(item)

    def marked(self, items: Sequence[Item]) -> dict[int, ReadItem]:
        """Return position -> item, of the items with more than plain answers."""
        found: dict[int, ReadItem] = {}
        known, has_own_marks = self._plain, self._has_own_marks
        for at, item in enumerate(items):
            # Most answers are a few short texts, and most captions are sentences without marks.
            answers: Sequence[Answer] = getattr(item, "answers", ())
            texts = [*map(_response, answers)] or [getattr(item, "response", None)]
            if known.issuperset(texts) and not item.thought:
                continue
            if item.thought or has_own_marks or not all(map(is_plain, texts)):
                read = self.read(item)
                if read.readings:
                    found[at] = read
                    continue
            if answers and not item.thought:
                if len(known) >= _MOST_REPEATING:
                    known.intersection_update({None})
                known.update([text for text in texts if len(text or "") <= _REPEATING_CHARS])
        return found

    def read(self, item: Item) -> ReadItem:
        """Return an item with its answers in place of its responses."""
        is_open = self._metric.is_open(item)
        if not isinstance(item, AnswersItem) or len(item.answers) == 1:
            text = getattr(item, "response", None)
            if item.thought:
                text = joined(item.thought, text, "thought")
            reading = self._reading(text, is_open=is_open)
            if reading is None:
                return ReadItem(item, ())
            return ReadItem(_with_responses(item, [reading.answer], reading.thought), (reading,))
        found = [self._reading(answer.response, is_open=is_open) for answer in item.answers]
        if not any(found):
            return ReadItem(item, ())
        texts = [answer.response for answer in item.answers]
        readings = [each or Reading(text) for each, text in zip(found, texts, strict=True)]
        answers = [each.answer for each in readings]
        pairs = zip(item.answers, readings, strict=True)
        thoughts = [f"{answer.name}: {each.thought}" for answer, each in pairs if each.thought]
        return ReadItem(_with_responses(item, answers, "\n".join(thoughts)), tuple(readings))

    def _reading(self, text: str | None, *, is_open: bool) -> Reading | None:
        """Return the reading of a response; None for a plain answer."""
        if text is None:
            return None
        found = self._readers[is_open].read(text)
        return found if found.traits else None


def _with_responses(item: Item, texts: Sequence[str | None], thought: str = "") -> Item:
    if isinstance(item, AnswersItem):
        pairs = zip(item.answers, texts, strict=True)
        answers = tuple([structs.replace(answer, response=text) for answer, text in pairs])
        return structs.replace(item, answers=answers, thought=thought)
    changes: dict[str, Any] = {"response": texts[0], "thought": thought}
    return structs.replace(item, **changes)


def read_items(
    metric: Metric,
    options: Mapping[str, str],
    items: Sequence[Item],
    results: Sequence[ItemResult],
) -> Sequence[Item]:
    """Return scored items as they were read: with answers in place of responses, thoughts apart.

    Args:
        metric: The metric.
        options: The options, or the settings, of the run.
        items: The items.
        results: Their results; items whose result has no traits are plain answers.
    """
    if not any(result.traits for result in results):
        return items
    reader = ItemReader(metric, options)
    return [
        reader.read(item).item if result.traits else item
        for item, result in zip(items, results, strict=True)
    ]
