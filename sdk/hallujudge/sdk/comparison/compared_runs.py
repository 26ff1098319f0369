"""Runs as comparisons need them, and the options of comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.metrics import (
    IntervalSettings,
    ItemResult,
    Metric,
    Outcome,
    Report,
    ScoreDefinition,
    Tally,
)
from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.comparison import ComparisonSettings
from hallujudge.metrics.framework.response_traits import without_thought_scores
from hallujudge.metrics.framework.signature import (
    REFERENCES,
    SIGNATURE_FIELDS,
    differing_fields,
    media_name,
    parsed_signature,
    shown_apart,
)

from ..errors import ArchiveError, InvalidInputError
from ..runs.run_report import RunReport
from ..runs.stored_runs import read_run
from .named_runs import RunLabel, RunSource, run_names

# Fields such as judges may be long; a message shows where they differ.
_VALUE_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """How runs are compared."""

    scores: Sequence[str] = ()
    """Names of the scores that are compared; empty for all."""
    names: Sequence[str] = ()
    """Names of the runs, one for each; empty for the names of their folders."""
    model_names: Mapping[str, str] = field(default_factory=dict)
    """Name of a model, which is that of its runs -> its name in tables."""
    allow: Sequence[str] = ()
    """Fields of the signature that may differ, such as ``v`` for the release."""
    confidence: float = 0.95
    """Confidence level of the intervals; 1 minus the level of the tests."""
    replicates: int = 10_000
    """Number of replicates of the bootstrap, and of random swaps of the permutation test."""
    seed: int = 0
    """Seed of the random numbers."""

    def settings(self) -> ComparisonSettings:
        """Return the statistical settings.

        Raises:
            InvalidInputError: A number is out of range.
        """
        try:
            return ComparisonSettings(
                confidence=self.confidence, replicates=self.replicates, seed=self.seed
            )
        except ValueError as err:
            raise InvalidInputError(str(err)) from err


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """A run with the results of its items."""

    label: RunLabel
    """Name, folder, signature and counts."""
    metric: Metric
    """The metric, as the run used it."""
    fields: Mapping[str, str]
    """The fields of the signature."""
    results: Mapping[str, ItemResult] = field(repr=False)
    """Item id in the first run -> result, in the order of the responses."""
    original: Report = field(repr=False)
    """The report of the run, over all its items."""
    pairing: tuple[str, ...] = ()
    """Notes on how its items were paired with those of the first run."""
    calibration: Calibration | None = None
    """Its scores corrected by human labels; None without labels."""
    comparable: bool = True
    """Whether it was scored as the runs that it is shown with, so that they can be compared."""

    @property
    def name(self) -> str:
        """The run's name."""
        return self.label.name

    def counts(self, identifier: str) -> bool:
        """Return whether an item counts; one that its variant leaves out has no statistics."""
        result = self.results[identifier]
        return result.outcome is Outcome.UNSCORED or bool(result.statistics)

    def scored(self, identifier: str) -> bool:
        """Return whether an item is scored."""
        return self.results[identifier].outcome is Outcome.SCORED

    def report(self, confidence: float, group_by: Sequence[str] = ()) -> Report:
        """Return the report of its results, with intervals of a confidence.

        Raises:
            ArchiveError: A score is out of its range, so that the items were changed by hand.
        """
        settings = IntervalSettings(confidence=confidence)
        # Without hashes of items and references: leaderboards put unscored results of other runs
        # here.
        tally = Tally.of(self.metric, self.results.values(), group_by, signed=False)
        items = Path(self.label.source, "items.jsonl")
        with ArchiveError.of_content(f"{items}: not the items of a run", "score it again"):
            return tally.finish(settings, version=self.fields.get("v", ""))


def read_runs(
    sources: Sequence[RunSource], options: CompareOptions, *, least: int = 2
) -> tuple[RunData, ...]:
    """Read runs and check that they can be compared.

    Raises:
        InvalidInputError: There are too few runs, or they were scored in different ways.
        ArchiveError: A folder does not hold a complete run, or an id occurs twice in it.
    """
    names = run_names(sources, options.names, options.model_names)
    # Reports are read before the items, so that runs that can't be compared are refused at once.
    heads = [_Head.of(source) for source in sources]
    if len(sources) < least:
        raise InvalidInputError(
            f"{len(sources)} run given; a comparison needs at least {least}. Give another folder"
        )
    for head, name in zip(heads[1:], names[1:], strict=True):
        _refuse_other(heads[0], head, (names[0], name), options.allow)
    data = [head.data(name) for head, name in zip(heads, names, strict=True)]
    first, *others = _with_common_columns(data)
    paired = _with_known_images([first, *(_paired(first, other) for other in others)])
    return (paired[0], *(_checked_references(paired[0], run, options.allow) for run in paired[1:]))


def _with_common_columns(runs: Sequence[RunData]) -> Sequence[RunData]:
    """Return runs without the scores of thoughts, where only some of them have any."""
    if len({len(run.metric.columns) for run in runs}) == 1:
        return runs
    metrics = [without_thought_scores(run.metric) for run in runs]
    return [
        replace(
            run,
            metric=metric,
            results={
                # Columns of thoughts come last.
                key: structs.replace(result, statistics=result.statistics[: len(metric.columns)])
                for key, result in run.results.items()
            },
        )
        for run, metric in zip(runs, metrics, strict=True)
    ]


def metrics_of(sources: Sequence[RunSource]) -> list[str]:
    """Return the name of each run's metric.

    Raises:
        ArchiveError: A folder does not hold a complete run.
    """
    return [
        source.metric if isinstance(source, RunReport) else read_run(source).report.metric
        for source in sources
    ]


def checked_scores(metric: Metric, wanted: Sequence[str]) -> tuple[ScoreDefinition, ...]:
    """Return the definitions of scores by name; all of the metric if none is wanted.

    Raises:
        InvalidInputError: The metric has no such score.
    """
    known = {score.name: score for score in metric.scores}
    for name in wanted:
        if name not in known:
            raise InvalidInputError(
                f"{metric.name} has no score {name!r:.80}; {choose_from(name, known)}"
            )
    return tuple(known[name] for name in dict.fromkeys(wanted)) or tuple(metric.scores)


class _Head(NamedTuple):
    """What decides whether a run can be compared, before its items are read."""

    source: str
    metric: Metric
    report: Report
    results: Callable[[], Iterable[ItemResult]]
    calibration: Callable[[], Calibration | None]

    @classmethod
    def of(cls, source: RunSource) -> _Head:
        if isinstance(source, RunReport):
            if not source.holds_items:
                raise InvalidInputError(
                    f"the report holds {len(source.items)} of its {source.coverage.items} items; "
                    "score with keep_items=True to compare it"
                )
            metric = metric_of(source.metric, source.variant, source.settings)
            items = source.items
            return cls("", metric, source, lambda: (i.result for i in items), lambda: None)
        # Only the head is read here; its methods read the items when they are called.
        run = read_run(source)
        return cls(str(run.folder), run.metric, run.report, run.results, run.calibration)

    def data(self, name: str) -> RunData:
        # Items that a variant leaves out are written to the folder, and are not part of its data.
        results = _by_id((r for r in self.results() if not r.left_out), self.source or name)
        label = RunLabel(
            name=name,
            source=self.source,
            signature=self.report.signature,
            items=len(results),
            scored=sum(result.outcome is Outcome.SCORED for result in results.values()),
            notes=self.report.notes,
        )
        return RunData(
            label=label,
            metric=self.metric,
            fields=parsed_signature(self.report.signature),
            results=results,
            original=self.report,
            calibration=self.calibration(),
        )


def _by_id(results: Iterable[ItemResult], where: str) -> dict[str, ItemResult]:
    found: dict[str, ItemResult] = {}
    for result in results:
        if result.id in found:
            raise InvalidInputError(
                f"{where}: item {result.id!r:.80} appears twice, so items can't be joined by id; "
                "score the run without duplicates"
            )
        found[result.id] = result
    return found


def _paired(first: RunData, other: RunData) -> RunData:
    """Return a run with its items under the ids that the first run has for them.

    Items are paired by id. If ids contradict each other, or no id is in both runs, the items are
    paired by image and question, where these name one item of each run, or by the order of their
    questions, where both runs have the same.

    Raises:
        InvalidInputError: An id names an item of another image, and questions pair too few items.
    """
    # Two archives may number their items from 1 and be about other images.
    clash = next((pair for pair in pairs_of(first, other) if not _may_be_one(*pair)), None)
    if clash is None and any(True for _ in pairs_of(first, other)):
        return other
    names = _names_by_question(first, other)
    # A few rare questions pair items that do not stand for the runs.
    if 2 * len(names) >= min(len(first.results), len(other.results)):
        return _renamed(first, other, names, "image and question")
    if names := _names_by_order(first, other):
        return _renamed(first, other, names, "the order of their questions")
    if clash is None:
        return other
    raise InvalidInputError(
        f"item {clash[0].id!r:.80} belongs to {clash[0].group_id!r:.80} in {first.name} and to "
        f"{clash[1].group_id!r:.80} in {other.name}; give runs over the same images, "
        "with the images or equal ids in both"
    )


def pairs_of(first: RunData, other: RunData) -> Iterator[tuple[ItemResult, ItemResult]]:
    """Yield both results of each id that two runs have."""
    theirs = other.results
    return ((one, theirs[key]) for key, one in first.results.items() if key in theirs)


def _may_be_one(one: ItemResult, other: ItemResult) -> bool:
    """Return whether results with one id can be of one item: their known images are the same."""
    if media_name(one.group_id) == media_name(other.group_id):
        return True
    # Two unknown questions are both the empty text, and are not the same one.
    same_question = one.question_hash == other.question_hash != ""
    return same_question and not (_has_image(one) and _has_image(other))


def _has_image(result: ItemResult) -> bool:
    # The engine puts an item without an image in a cluster of its own.
    return result.group_id != result.id


def _names_by_question(first: RunData, other: RunData) -> dict[str, str]:
    """Return the ids of items by the ids of the first run's items with the same question."""
    pair = (first.results, other.results)
    # Where a run does not know all its images, they pair nothing: questions alone do.
    images = all(_has_image(result) for results in pair for result in results.values())
    mine, theirs = (_unique_questions(results, images=images) for results in pair)
    return {key: mine[place] for place, key in theirs.items() if place in mine}


def _unique_questions(
    results: Mapping[str, ItemResult], *, images: bool
) -> dict[tuple[str, str], str]:
    """Return image and question -> id, where only one item has both."""
    places = {
        key: (media_name(result.group_id) if images else "", result.question_hash)
        for key, result in results.items()
        if result.question_hash
    }
    counts = Counter(places.values())
    # A question that is asked twice of an image could pair either item.
    return {place: key for key, place in places.items() if counts[place] == 1}


def _names_by_order(first: RunData, other: RunData) -> dict[str, str]:
    """Return the same where both runs have the same questions in the same order.

    A question that is asked of most images says nothing about their order.
    """
    mine, theirs = (
        [result.question_hash for result in run.results.values()] for run in (first, other)
    )
    # POPE asks of nearly every image about the same few objects.
    if mine != theirs or "" in mine or 2 * max(Counter(mine).values()) > len(mine):
        return {}
    return dict(zip(other.results, first.results, strict=True))


def _renamed(first: RunData, other: RunData, names: Mapping[str, str], by: str) -> RunData:
    taken = first.results.keys()
    note = (
        f"{len(names):,} items of {other.name} are paired with items of {first.name} by {by}, "
        "because their ids differ."
    )
    results = {
        # An id of another item must not pair it.
        names.get(key, f"{other.name}: {key}" if key in taken else key): result
        for key, result in other.results.items()
    }
    return _noted(replace(other, results=results), note)


def _with_known_images(runs: Sequence[RunData]) -> Sequence[RunData]:
    """Return the runs with one cluster for each item: the image that one of them knows."""
    images: dict[str, str] = {}
    # Known images first: the place of an item without one is made of its id.
    for known in (True, False):
        for run in runs:
            for key, result in run.results.items():
                if _has_image(result) is known:
                    images.setdefault(key, result.group_id)
    return [
        replace(
            run,
            results={
                key: result
                if result.group_id == images[key]
                else structs.replace(result, group_id=images[key])
                for key, result in run.results.items()
            },
        )
        for run in runs
    ]


def differing_references(first: RunSource, second: RunSource, options: CompareOptions) -> list[str]:
    """Return the ids of items whose references differ between two runs, as the first names them.

    Raises:
        InvalidInputError: The runs can't be compared otherwise, or do not know their references.
        ArchiveError: A folder does not hold a complete run.
    """
    # Otherwise the very runs that this is about are refused.
    allowed = replace(options, allow=(*options.allow, REFERENCES))
    one, two = read_runs((first, second), allowed)
    if (equal := _equal_references(one, two)) is None:
        raise InvalidInputError(
            f"{one.name} or {two.name} was written without hashes of references; score both again"
        )
    return [key for key, same in equal.items() if not same]


def _equal_references(first: RunData, other: RunData) -> dict[str, bool] | None:
    """Return whether each item of both runs has equal references; None where hashes lack."""
    shared = (key for key in first.results if key in other.results)
    hashes = [(a.reference_hash, b.reference_hash) for a, b in pairs_of(first, other)]
    if not all(map(all, hashes)):
        return None
    return {key: one == two for key, (one, two) in zip(shared, hashes, strict=True)}


def _checked_references(first: RunData, other: RunData, allow: Sequence[str]) -> RunData:
    """Return a run, with a note where references differ or are unknown.

    Raises:
        InvalidInputError: The references of paired items differ, which is not allowed.
    """
    equal = _equal_references(first, other)
    # Runs from before references were hashed can be compared, at the reader's own risk.
    if equal is None:
        return _noted(
            other,
            f"It can't be checked whether {first.name} and {other.name} have the same references: "
            "their files were written without hashes of references. Score both again to check it.",
        )
    differing = [key for key, same in equal.items() if not same]
    if not differing:
        return other
    found = (
        f"references of {len(differing):,} of {len(equal):,} items differ between "
        f"{first.name} and {other.name}, such as those of item {differing[0]!r:.80}"
    )
    if REFERENCES in allow:
        more = "This may explain a difference as well as the models do."
        return _noted(other, f"The {found}. {more}")
    raise InvalidInputError(
        f"the {found} (hallujudge compare --show-differences lists them). Score both with the same "
        f"references, or allow the difference with CompareOptions(allow={REFERENCES})"
    )


def _noted(run: RunData, note: str) -> RunData:
    return replace(run, pairing=(*run.pairing, note))


def _refuse_other(first: _Head, second: _Head, names: Sequence[str], allow: Sequence[str]) -> None:
    """Refuse runs that were scored in different ways.

    Raises:
        InvalidInputError: A field of the signatures differs that may not.
    """
    if first.metric.name != second.metric.name:
        raise InvalidInputError(
            f"{names[0]} and {names[1]} can't be compared: the metrics are {first.metric.name} "
            f"and {second.metric.name}; give runs of one metric"
        )
    one, other = (parsed_signature(each.report.signature) for each in (first, second))
    if different := [key for key in differing_fields(one, other) if key not in allow]:
        fields = "; ".join(_in_words(key, one, other) for key in different)
        raise InvalidInputError(
            f"{names[0]} and {names[1]} can't be compared: {fields}. Score both in the same way, "
            f"or allow the difference with CompareOptions(allow={','.join(different)})"
        )


def _in_words(key: str, one: Mapping[str, str], other: Mapping[str, str]) -> str:
    word = f"{SIGNATURE_FIELDS[key]} ({key})" if key in SIGNATURE_FIELDS else key
    values = shown_apart(one.get(key, "none"), other.get(key, "none"), _VALUE_CHARS)
    return f"{word} {' and '.join(values)}"
