"""The registry of metrics: how a metric family registers, and the lookup of metrics by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import starmap
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from hallujudge.metrics import Item, Metric, MetricError
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import (
    DECLARATION,
    FAMILIES,
    OUTSIDE,
    benchmarks_of,
    declaration_hash,
    families,
    has_module,
)
from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.signature import ASKED, PROMPTS
from hallujudge.metrics.responses import MARKS, THOUGHTS

from ..errors import InvalidInputError, Violation
from .pipelines import Pipeline as Pipeline
from .pipelines import ReadingPipeline
from .resources import Resources
from .responses import LANGUAGE_OPTION, RESPONSE_OPTIONS, ResponseCheck
from .spec import ScoreSpec, known_metric

if TYPE_CHECKING:
    from hallujudge.metrics.answers.answers_metric import AnswersMetric

    from .found_claims import FoundClaim

# The option is declared where judges are, which a client doesn't import.
_SHARE = "min_choice_share"

Extract: TypeAlias = (
    "Callable[[ScoreSpec, Sequence[str], Resources], Awaitable[list[list[FoundClaim]]]]"
)
"""A function that extracts claims from texts."""


class Trial(Struct, frozen=True, kw_only=True):
    """A small example with a known score, with which ``hallujudge doctor`` checks a metric."""

    item: Item
    """The item; scoring it needs everything that a default run of the metric needs."""
    score: str
    """The name of the score."""
    value: float
    """The expected value."""


def declared_trial(
    benchmark: ClosedQuestions, metric: type[AnswersMetric], *, judged: bool = False
) -> Trial:
    """Return a benchmark's trial, for which a score is at its best unless the benchmark says else.

    Args:
        benchmark: The benchmark.
        metric: Its metric.
        judged: Whether the score is to show that a judge works: one of judged answers alone.
    """
    of_judge = (name for column in metric.judged for name in column.scores if judged)
    name = next(of_judge, benchmark.main_score)
    [known] = (each for each in metric.score_definitions if each.name == name)
    return Trial(item=benchmark.trial, score=name, value=metric.trial_value(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """The registration of a metric; most properties come from the metric's own declaration."""

    metric: type[Metric]
    """The metric: name, papers, variants, options, statistics and scores."""
    item_type: type[Item]
    trial: Trial
    """A small example with a known score."""
    graph_roles: tuple[str, ...] = ()
    """The roles of its synonym graphs."""
    engine_options: tuple[OptionDefinition, ...] = ()
    """The options of its extractors and judges."""
    extract: Extract | None = None
    """Extracts claims from texts; None for a metric without claims."""
    judges: bool = False
    """Whether a judge decides its claims."""
    judge_trial: Trial | None = None
    """A small example with a clear judgement, for a language model that ``judge_option`` names."""
    reads_english: bool = False
    """Whether its extractor or synonym graph supports English only."""
    parses: Callable[[ScoreSpec], bool] = lambda _: False
    """Returns whether a run parses sentences, which takes a hundred times as long as matching."""
    reference_notes: Callable[[ScoreSpec, Collection[str]], tuple[str, ...]] = lambda *_: ()
    """Returns notes on words of the references, such as those that its graph does not know."""
    response_notes: Callable[[ScoreSpec, Iterable[Any]], tuple[str, ...]] = lambda *_: ()
    """Returns notes on the responses of the first items, such as words that its rules miss."""
    open: Callable[[ScoreSpec, Resources], Pipeline]
    """Builds the pipeline of a validated spec."""

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    @property
    def description(self) -> str:
        """The summary, and the paper that defines the metric, if there is one."""
        sources = [f" ({paper.authors} {paper.year})" for paper in self.metric.papers[:1]]
        return "".join([self.metric.summary, *sources])

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of its variants, the default first."""
        return self.metric.variant_names()

    @property
    def options(self) -> tuple[OptionDefinition, ...]:
        """All options: the metric's, the engine's, and those of every metric."""
        language = (LANGUAGE_OPTION,) if self.reads_english else ()
        return (*self.metric.options, *self.engine_options, *RESPONSE_OPTIONS, *language)

    @property
    def measures_shares(self) -> bool:
        """Whether it can be measured how likely a judge would write one of the choices."""
        return any(option.name == _SHARE for option in self.engine_options)

    @property
    def judge_option(self) -> str:
        """The option that names the judge; empty if the metric has no judge."""
        return self.metric.judge_option

    def asks_llm(self, spec: ScoreSpec) -> bool:
        """Return whether a language model judges in a run."""
        return self.metric.asks_llm(spec.options)

    def calls_models(self, spec: ScoreSpec) -> bool:
        """Return whether language models judge or extract in a run."""
        return self.metric.calls_models(spec.options)

    def extracts_with_models(self, spec: ScoreSpec) -> bool:
        """Return whether a language model or a parser extracts claims in a run."""
        return spec.options.get(self.metric.extractor_option) in ("llm", "spacy")

    def needs_models(self, spec: ScoreSpec) -> bool:
        """Return whether a run calls or loads models; others only need a processor."""
        return self.metric.needs_models(spec.options)

    def own_options(self, spec: ScoreSpec) -> dict[str, str]:
        """Return the spec's values of the metric's own options, and how the model was asked."""
        named = {PROMPTS, ASKED, THOUGHTS, MARKS}
        known = {*(option.name for option in self.metric.options), *named}
        return {name: value for name, value in spec.options.items() if name in known}

    def metric_for(self, spec: ScoreSpec, responses: ResponseCheck, **more: str) -> Any:
        """Return the metric of a run.

        Args:
            spec: The run's spec.
            responses: Recognises missing responses.
            more: What signatures name besides the metric's own options.
        """
        made: Callable[..., Metric] = self.metric
        known = {**self.own_options(spec), **more}
        return made(variant=spec.variant, responses=responses.signature, **known)


def entries() -> Mapping[str, MetricEntry]:
    """Return the metrics of all families by name."""
    families()
    return _entries((*FAMILIES, *OUTSIDE.values()))


@cache
def _entries(_known: tuple[object, ...]) -> Mapping[str, MetricEntry]:
    return {entry.name: entry for family in FAMILIES for entry in _entries_of(family)}


def entry_of(name: str) -> MetricEntry | None:
    """Return a metric. Only families whose name it begins with are imported, if one has it."""
    return _entry_of(name, (*FAMILIES, *OUTSIDE.values()))


# Each call of a server asks six times. Callers choose names, so that only the last ones are kept.
@lru_cache(64)
def _entry_of(name: str, _known: tuple[object, ...]) -> MetricEntry | None:
    families_of = (each for each in FAMILIES if name.startswith(each.replace("_", "-")))
    own = (entry for family in families_of for entry in _entries_of(family))
    return next((entry for entry in own if entry.name == name), None) or entries().get(name)


def _entries_of(family: str) -> Sequence[MetricEntry]:
    declared = benchmarks_of(family)
    own = f"{__package__}.families.{family}"
    own_module = not declared or has_module(f"{__package__}.families", family)
    module = import_module(own) if own_module else None
    # A declared benchmark has a pipeline of its own where it has other items than questions.
    if declared and not hasattr(module, "ENTRIES"):
        return tuple(map(_declared_entry, declared))
    made: Sequence[MetricEntry] = getattr(module, "ENTRIES", ())
    return made


def _declared_entry(declared: ClosedQuestions) -> MetricEntry:
    # Imported by name, as these modules need the registry.
    shared = "answers" if declared.judged is None else "judging"
    module = import_module(f".{shared}_pipeline", __package__)
    made: MetricEntry = module.declared_entry(declared)
    return made


def metric_entry(name: str) -> MetricEntry:
    """Return the entry of a metric.

    Raises:
        NotFoundError: No metric has this name.
    """
    found = entry_of(name)
    # Without an entry there is no such metric, which `known_metric` says.
    return found or entries()[known_metric(name).name]


def checked_entry(spec: ScoreSpec) -> MetricEntry:
    """Return the entry of a spec's metric, after validating the spec's names and values.

    Raises:
        NotFoundError: The metric is unknown.
        InvalidInputError: The variant, a graph role or an option is invalid; the error lists all
            violations.
    """
    entry = metric_entry(spec.metric)
    violations = tuple(starmap(_violation, _problems(spec, entry)))
    if violations:
        raise InvalidInputError(
            "; ".join(violation.description for violation in violations), violations=violations
        )
    return entry


def open_pipeline(spec: ScoreSpec, resources: Resources) -> Pipeline:
    """Return the pipeline of a spec, after validating the spec.

    Raises:
        NotFoundError: The metric or a graph is unknown.
        InvalidInputError: The variant, a graph role or an option is invalid; the error lists all
            violations.
    """
    entry = checked_entry(spec)
    try:
        opened = entry.open(spec, resources)
    except MetricError as err:
        raise InvalidInputError(str(err)) from err
    return ReadingPipeline(opened, spec.options, keeps=not entry.needs_models(spec))


def _violation(field: str, description: str) -> Violation:
    return Violation(field=f"spec.{field}", description=description)


def _problems(spec: ScoreSpec, entry: MetricEntry) -> Iterator[tuple[str, str]]:
    """Yield each invalid field of a spec, and what is wrong with it."""
    name = entry.name
    if spec.variant and spec.variant not in entry.variants:
        known = choose_from(spec.variant, entry.variants)
        yield "variant", f"{name} has no variant {spec.variant!r}; {known}"
    for role in spec.graphs:
        if role not in entry.graph_roles:
            known = choose_from(role, entry.graph_roles)
            yield f"graphs[{role!r}]", f"{name} has no graph role {role!r}; {known}"
    for option, value in spec.options.items():
        named = option in (DECLARATION, PROMPTS, ASKED)
        if not named and (problem := _option_problem(option, value, entry)):
            yield f"options[{option!r}]", problem
    # Another declaration under the name is refused: its numbers would be of another benchmark.
    here, given = declaration_hash(name), spec.options.get(DECLARATION, "")
    if given and given != here:
        yield (
            f"options[{DECLARATION!r}]",
            f"{name} is declared in another way here (hash {here or 'unknown'}) than by the "
            f"caller (hash {given}); use the same file in both places, or give one another name",
        )


def _option_problem(name: str, value: str, entry: MetricEntry) -> str:
    options = {option.name: option for option in entry.options}
    if name not in options:
        return f"{entry.name} has no option {name!r}; {choose_from(name, options)}"
    allowed = options[name].choices
    if allowed and value not in allowed:
        return f"the option {name} is {value!r}; {choose_from(value, allowed)}"
    return ""
