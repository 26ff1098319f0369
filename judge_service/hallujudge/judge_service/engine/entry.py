"""What a metric is to the engine, and what its parts are; values and protocols alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hallujudge.metrics import Item, ItemResult, Metric
from hallujudge.metrics.framework.triplets import Triplet
from hallujudge.synonym_graphs import Mention

from .resources import Resources
from .spec import ScoreSpec

__all__ = ["ClaimValue", "Extract", "FoundClaim", "MetricEntry", "OptionEntry", "Pipeline"]

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
class OptionEntry:
    """An option of a metric."""

    name: str
    """Its name."""
    default: str
    """What it is unless told."""
    choices: tuple[str, ...] = ()
    """The values it may take; empty: see the description."""
    description: str = ""
    """What it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """A metric as the engine knows it."""

    name: str
    """Its name."""
    description: str
    """What it measures and where it is defined."""
    variants: tuple[str, ...]
    """Its variants, the default first."""
    score_names: tuple[str, ...]
    """Names of its scores."""
    item_type: type[Item]
    """The shape of its items."""
    graph_roles: tuple[str, ...] = ()
    """Graphs that it takes, by role."""
    options: tuple[OptionEntry, ...] = ()
    """Its options."""
    extract: Extract | None = None
    """Takes claims out of texts; None where there are none to take."""
    judges: bool = False
    """Whether its claims are decided by a judge."""
    group_by: tuple[str, ...] = ()
    """Fields that groups are reported by unless told."""
    open: Callable[[ScoreSpec, Resources], Pipeline]
    """Makes the pipeline of a checked spec."""
