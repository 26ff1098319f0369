"""What the spec of a run is made of: graphs, group keys, intervals; and notes on its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec, known_metric
from hallujudge.judge_service.installation import is_whole
from hallujudge.metrics import IntervalSettings, Item

from .. import runs
from ..errors import InvalidInputError

# Enough to find a word that a metric's rules miss; larger archives are not read twice for it.
_FIRST_ITEMS = 1_000
# The role of a metric's only graph, and the first one of a metric with several.
_FIRST_ROLE = "objects"


def graph_sources(
    metric: str, graph: str | Path | Mapping[str, str] | None
) -> dict[str, GraphSource]:
    """Return role -> graph.

    Args:
        metric: The metric's name.
        graph: A shipped name or a file, for the metric's first role; or role -> either.

    Raises:
        NotFoundError: The metric or a graph is unknown.
        InvalidInputError: A graph file can't be read.
    """
    known_metric(metric)
    if isinstance(graph, (str, Path)):
        graph = {_FIRST_ROLE: str(graph)}
    return {role: runs.graph_source(name) for role, name in (graph or {}).items()}


def group_keys(metric: str, group_by: Sequence[str]) -> tuple[str, ...]:
    """Return the keys to report groups by: the metric's own, then those that were given.

    Raises:
        NotFoundError: The metric is unknown.
    """
    if isinstance(group_by, str):
        raise InvalidInputError(f"group_by is the text {group_by!r}; give a list, [{group_by!r}]")
    return tuple(dict.fromkeys((*known_metric(metric).group_by, *group_by)))


def interval_settings(confidence: float) -> IntervalSettings:
    """Return how intervals are made.

    Raises:
        InvalidInputError: A number is out of range.
    """
    try:
        return IntervalSettings(confidence=confidence)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err


def input_notes(spec: ScoreSpec, items: Iterable[Item]) -> tuple[str, ...]:
    """Return notes for the report on its archive, and on words of references and responses.

    Notes on words need the graph and the rules of the metric, which a client alone does not have.

    Args:
        spec: How the items are scored.
        items: The items; those of an archive know the words of its references.
    """
    about_archive: tuple[str, ...] = getattr(items, "about_scores", ())
    if not is_whole():
        return about_archive
    entry = runs.metric_entry(spec.metric)
    names: frozenset[str] = getattr(items, "reference_names", frozenset)()
    about_references = entry.reference_notes(spec, names) if names else ()
    about_responses = entry.response_notes(spec, islice(items, _FIRST_ITEMS))
    return (*about_archive, *about_references, *about_responses)
