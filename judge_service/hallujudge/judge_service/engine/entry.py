"""What a metric is to the engine, and what its parts are; values and protocols alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hallujudge.metrics import Item, ItemResult, Metric
from hallujudge.metrics.framework.base import MetricBase
from hallujudge.metrics.framework.definitions import OptionDefinition
from hallujudge.metrics.framework.triplets import Triplet
from hallujudge.synonym_graphs import Mention

from .resources import Resources
from .responses import LANGUAGE_OPTION, RESPONSE_OPTIONS
from .spec import ScoreSpec

__all__ = ["ClaimValue", "Extract", "FoundClaim", "MetricEntry", "Pipeline", "Trial"]

ClaimValue: TypeAlias = Mention | Triplet | str
"""An object mention, a triplet, or a keyword in its root form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClaim:
    """A claim and where it stands in its text."""

    start: int
    """First character."""
    end: int
    """One past the last."""
    claim: ClaimValue
    """What was found."""
    kind: str = ""
    """What a keyword names: ``objects`` or ``behaviors``."""


class Pipeline(Protocol):
    """A metric with everything it needs to score items: graphs, matchers, judges."""

    @property
    def metric(self) -> Metric:
        """The metric."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings that stand in the signature, in full, for the report."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report that a reader must know before quoting a number."""
        ...

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """One result for each item, in order. An item's trouble is its result, never an error."""
        ...


Extract: TypeAlias = (
    "Callable[[ScoreSpec, Sequence[str], Resources], Awaitable[list[list[FoundClaim]]]]"
)
"""Takes claims out of texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A small example with a known score, by which ``hallujudge doctor`` checks a metric."""

    item: Item
    """The item, which needs everything that a default run of the metric needs."""
    score: str
    """Name of the score."""
    value: float
    """What it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """A metric as the engine knows it; what the metric declares itself is taken from there."""

    metric: type[MetricBase]
    """The metric: name, papers, variants, options, statistics and scores."""
    item_type: type[Item]
    """The shape of its items."""
    trial: Trial
    """A small example with a known score."""
    graph_roles: tuple[str, ...] = ()
    """Graphs that it takes, by role."""
    engine_options: tuple[OptionDefinition, ...] = ()
    """Options of its extractors and judges."""
    extract: Extract | None = None
    """Takes claims out of texts; None where there are none to take."""
    judges: bool = False
    """Whether its claims are decided by a judge."""
    reads_english: bool = False
    """Whether its extractor or synonym graph knows English only."""
    group_by: tuple[str, ...] = ()
    """Fields that groups are reported by unless told."""
    open: Callable[[ScoreSpec, Resources], Pipeline]
    """Makes the pipeline of a checked spec."""

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    @property
    def description(self) -> str:
        """What it measures, and the paper that defines it."""
        paper = self.metric.papers[0]
        return f"{self.metric.summary} ({paper.authors} {paper.year})"

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of its variants, the default first."""
        return self.metric.variant_names()

    @property
    def score_names(self) -> tuple[str, ...]:
        """Names of its scores."""
        return tuple(score.name for score in self.metric.score_definitions)

    @property
    def options(self) -> tuple[OptionDefinition, ...]:
        """All its options: the metric's own, the engine's, and those that every metric has."""
        language = (LANGUAGE_OPTION,) if self.reads_english else ()
        return (*self.metric.options, *self.engine_options, *RESPONSE_OPTIONS, *language)

    def own_options(self, spec: ScoreSpec) -> dict[str, str]:
        """Return the spec's values of the metric's own options."""
        known = {option.name for option in self.metric.options}
        return {name: value for name, value in spec.options.items() if name in known}
