"""Types by which a metric family registers with the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hallujudge.metrics import Item, ItemResult, Metric
from hallujudge.metrics.framework.claims import Modality, Triplet
from hallujudge.metrics.framework.metric import MetricBase, OptionDefinition
from hallujudge.synonym_graphs import Mention

from .resources import Resources
from .responses import LANGUAGE_OPTION, RESPONSE_OPTIONS
from .spec import ScoreSpec

__all__ = ["LLM_JUDGES", "ClaimValue", "Extract", "FoundClaim", "MetricEntry", "Pipeline", "Trial"]

ClaimValue: TypeAlias = Mention | Triplet | str
"""An object mention, a triplet, or a keyword in its root form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClaim:
    """A claim and its place in a text."""

    start: int
    """The first character."""
    end: int
    """One past the last character."""
    claim: ClaimValue
    """The claim."""
    kind: str = ""
    """The kind of a keyword: ``objects`` or ``behaviors``."""
    modality: Modality | None = None
    """How the text puts a triplet; None if the extractor does not tell."""


class Pipeline(Protocol):
    """A metric with the graphs, extractors and judges that it needs to score items."""

    @property
    def metric(self) -> Metric:
        """The metric."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the signature in full, for the report."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report about what limits the use of its numbers."""
        ...

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; an item that fails is unscored."""
        ...


LLM_JUDGES = ("llm", "router")
"""The judges that call a language model: one, or those of ``judge_order`` one after the other."""

Extract: TypeAlias = (
    "Callable[[ScoreSpec, Sequence[str], Resources], Awaitable[list[list[FoundClaim]]]]"
)
"""A function that extracts claims from texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A small example with a known score, with which ``hallujudge doctor`` checks a metric."""

    item: Item
    """The item; scoring it needs everything that a default run of the metric needs."""
    score: str
    """The name of the score."""
    value: float
    """The expected value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """The registration of a metric; most properties come from the metric's own declaration."""

    metric: type[MetricBase]
    """The metric: name, papers, variants, options, statistics and scores."""
    item_type: type[Item]
    """The type of its items."""
    trial: Trial
    """A small example with a known score."""
    graph_roles: tuple[str, ...] = ()
    """The roles of its synonym graphs."""
    engine_options: tuple[OptionDefinition, ...] = ()
    """The options of its extractors and judges."""
    extract: Extract | None = None
    """Extracts claims from texts; None: the metric has no claims."""
    judges: bool = False
    """Whether a judge decides its claims."""
    judge_option: str = ""
    """The option that names the judge; empty: no judge is asked."""
    judge_trial: Trial | None = None
    """A small example with a clear judgement, for a language model that ``judge_option`` names."""
    reads_english: bool = False
    """Whether its extractor or synonym graph supports English only."""
    group_by: tuple[str, ...] = ()
    """The fields by which results are grouped by default."""
    parses: Callable[[ScoreSpec], bool] = lambda _: False
    """Returns whether a run parses sentences by rules, which takes a hundred times as long."""
    loads_models: Callable[[ScoreSpec], bool] = lambda _: False
    """Returns whether a run loads models, such as sentence encoders."""
    reference_notes: Callable[[ScoreSpec, Collection[str]], tuple[str, ...]] = lambda *_: ()
    """Returns notes on words of the references, such as those that its graph does not know."""
    open: Callable[[ScoreSpec, Resources], Pipeline]
    """Builds the pipeline of a validated spec."""

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    @property
    def description(self) -> str:
        """The summary, and the paper that defines the metric."""
        paper = self.metric.papers[0]
        return f"{self.metric.summary} ({paper.authors} {paper.year})"

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of its variants, the default first."""
        return self.metric.variant_names()

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of its scores."""
        return tuple(score.name for score in self.metric.score_definitions)

    @property
    def options(self) -> tuple[OptionDefinition, ...]:
        """All options: the metric's, the engine's, and those of every metric."""
        language = (LANGUAGE_OPTION,) if self.reads_english else ()
        return (*self.metric.options, *self.engine_options, *RESPONSE_OPTIONS, *language)

    def asks_llm(self, spec: ScoreSpec) -> bool:
        """Return whether a language model judges in a run."""
        return spec.options.get(self.judge_option) in LLM_JUDGES

    def calls_models(self, spec: ScoreSpec) -> bool:
        """Return whether language models judge or extract in a run."""
        return self.asks_llm(spec) or spec.options.get("extractor") == "llm"

    def extracts_with_models(self, spec: ScoreSpec) -> bool:
        """Return whether a language model or a parser extracts claims in a run."""
        return spec.options.get("extractor") in ("llm", "spacy")

    def needs_models(self, spec: ScoreSpec) -> bool:
        """Return whether a run calls or loads models; others only need a processor."""
        return self.calls_models(spec) or self.loads_models(spec)

    def own_options(self, spec: ScoreSpec) -> dict[str, str]:
        """Return the spec's values of the metric's own options."""
        known = {option.name for option in self.metric.options}
        return {name: value for name, value in spec.options.items() if name in known}
