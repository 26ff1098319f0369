"""Claims without verdicts, and words without captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hallujudge.metrics.triplets import Triplet
from hallujudge.synonym_graphs import Mention

from ..errors import UnsupportedError
from .registry import metric_entry
from .resources import Resources
from .spec import GraphSource, ScoreSpec

__all__ = ["ClaimValue", "FoundClaim", "extract", "normalize"]

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


async def extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[FoundClaim]]:
    """Claims of texts, as the metric finds them.

    Raises:
        UnsupportedError: The metric takes no claims out of texts.
        NotFoundError: The metric or the graph is unknown.
    """
    entry = metric_entry(spec.metric)
    if entry.extract is None:
        raise UnsupportedError(f"metric {entry.name!r} takes no claims out of texts")
    return await entry.extract(spec, texts, resources)


def normalize(
    source: GraphSource, words: Sequence[str], resources: Resources
) -> tuple[str, list[tuple[str, ...]]]:
    """The graph's label and each word's roots: none where the graph doesn't know it."""
    graph = resources.graph(source)
    return graph.label, [graph.roots_of(word) for word in words]
